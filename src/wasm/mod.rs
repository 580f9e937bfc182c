//! The sandbox: plugins as WebAssembly components that compute and answer, and can do nothing else.
//!
//! It knows no network, no store and no secret. A [`Sandbox`] loads a component into a [`Plugin`]; a plugin begins an
//! [`Attempt`], which is asked step by step what to do next. The values of the contract (`wit/delivery.wit`) are
//! re-exported here as the generated code has them.
