//! Generated from a world of this guest's own.
#![allow(unsafe_code, missing_docs, reason = "the generated glue passes pointers to the host")]

wit_bindgen::generate!({
    inline: "
        package switchbell:delivery@0.1.0;
        interface types {
            shout: func();
        }
        interface plugin {
            describe: func() -> string;
        }
        world delivery-plugin {
            import types;
            export plugin;
        }
    ",
});

export!(Plugin with_types_in self);

use super::Plugin;
