//! Generated from `wit/delivery.wit`, with WASI that the standard library has no name for, in its oldest version.
#![allow(unsafe_code, missing_docs, reason = "the generated glue passes pointers to the host")]

wit_bindgen::generate!({
    generate_all,
    path: "../../../wit",
    inline: "
        package example:guest;

        world guest {
            include switchbell:delivery/delivery-plugin@0.1.0;
            import wasi:random/random@0.2.0;
            import wasi:clocks/monotonic-clock@0.2.0;
        }

        package wasi:random@0.2.0 {
            interface random {
                get-random-bytes: func(len: u64) -> list<u8>;
                get-random-u64: func() -> u64;
            }
        }

        package wasi:io@0.2.0 {
            interface poll {
                resource pollable {
                    ready: func() -> bool;
                    block: func();
                }
                poll: func(in: list<borrow<pollable>>) -> list<u32>;
            }
        }

        package wasi:clocks@0.2.0 {
            interface monotonic-clock {
                use wasi:io/poll@0.2.0.{pollable};
                type instant = u64;
                type duration = u64;
                now: func() -> instant;
                resolution: func() -> duration;
                subscribe-instant: func(when: instant) -> pollable;
                subscribe-duration: func(when: duration) -> pollable;
            }
        }
    ",
});

export!(Puppet with_types_in self);

use super::Puppet;
