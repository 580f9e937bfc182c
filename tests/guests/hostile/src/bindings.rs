//! Generated from `wit/delivery.wit`, with the WASI that a plugin can misuse directly, in its oldest version.
#![allow(unsafe_code, missing_docs, reason = "the generated glue passes pointers to the host")]

wit_bindgen::generate!({
    generate_all,
    path: "../../../wit",
    inline: "
        package example:guest;

        world guest {
            include switchbell:delivery/delivery-plugin@0.1.0;
            import wasi:cli/stderr@0.2.0;
            import wasi:clocks/monotonic-clock@0.2.0;
        }

        package wasi:io@0.2.0 {
            interface error {
                resource error {
                    to-debug-string: func() -> string;
                }
            }
            interface poll {
                resource pollable {
                    ready: func() -> bool;
                    block: func();
                }
                poll: func(in: list<borrow<pollable>>) -> list<u32>;
            }
            interface streams {
                use error.{error};
                use poll.{pollable};
                variant stream-error {
                    last-operation-failed(error),
                    closed,
                }
                resource input-stream {
                    read: func(len: u64) -> result<list<u8>, stream-error>;
                    blocking-read: func(len: u64) -> result<list<u8>, stream-error>;
                    skip: func(len: u64) -> result<u64, stream-error>;
                    blocking-skip: func(len: u64) -> result<u64, stream-error>;
                    subscribe: func() -> pollable;
                }
                resource output-stream {
                    check-write: func() -> result<u64, stream-error>;
                    write: func(contents: list<u8>) -> result<_, stream-error>;
                    blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>;
                    flush: func() -> result<_, stream-error>;
                    blocking-flush: func() -> result<_, stream-error>;
                    subscribe: func() -> pollable;
                    write-zeroes: func(len: u64) -> result<_, stream-error>;
                    blocking-write-zeroes-and-flush: func(len: u64) -> result<_, stream-error>;
                    splice: func(src: borrow<input-stream>, len: u64) -> result<u64, stream-error>;
                    blocking-splice: func(src: borrow<input-stream>, len: u64) -> result<u64, stream-error>;
                }
            }
        }

        package wasi:cli@0.2.0 {
            interface stderr {
                use wasi:io/streams@0.2.0.{output-stream};
                get-stderr: func() -> output-stream;
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

export!(Hostile with_types_in self);

use super::Hostile;
