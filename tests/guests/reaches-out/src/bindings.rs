//! Generated from `wit/delivery.wit`.
#![allow(unsafe_code, missing_docs, reason = "the generated glue passes pointers to the host")]

wit_bindgen::generate!({ world: "delivery-plugin", path: "../../../wit" });

export!(Plugin with_types_in self);

use super::Plugin;
