//! Generated from `wit/delivery.wit` and a world of this guest's own.
#![allow(unsafe_code, missing_docs, reason = "the generated glue passes pointers to the host")]

wit_bindgen::generate!({
    generate_all,
    path: "../../../wit",
    inline: "
        package example:guest;
        world guest {
            include switchbell:delivery/delivery-plugin@0.1.0;
            import shout: func(text: string);
        }
    ",
});

export!(Plugin with_types_in self);

use super::Plugin;
