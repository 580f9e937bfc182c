//! A plugin whose step never ends.

#![no_std]

extern crate alloc;

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::hint;

use switchbell_kit::Guest;
use switchbell_kit::types::{Action, Delivery, Destination, Effect, Json, Problem};

/// The plugin.
pub struct Spins;

impl Guest for Spins {
    fn describe() -> Json {
        r#"{"name":"spins","version":"1.0.0"}"#.to_owned()
    }

    fn check(_: Json) -> Result<Destination, Vec<Problem>> {
        Ok(Destination { label: "nowhere".to_owned(), lanes: vec![], extras: String::from("{}") })
    }

    fn step(_: Delivery, _: Vec<Effect>) -> Action {
        loop {
            hint::spin_loop();
        }
    }
}

switchbell_kit::plugin!(Spins);
