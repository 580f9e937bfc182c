//! Generated from `wit/delivery.wit`, where every item is documented; nothing here is written by hand.
#![allow(missing_docs, unreachable_pub, reason = "generated code")]

wasmtime::component::bindgen!({
    world: "delivery-plugin",
    path: "wit",
    additional_derives: [PartialEq],
});
