//! Generated from `wit/delivery.wit`.
#![allow(unsafe_code, missing_docs, reason = "the generated glue passes pointers to the host")]

wit_bindgen::generate!({
    path: "../../../wit",
    world: "delivery-plugin",
});

export!(Versioned with_types_in self);

use super::Versioned;
