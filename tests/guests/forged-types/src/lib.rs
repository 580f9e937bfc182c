//! A plugin that hides a function among the types it imports.

mod bindings;

use bindings::switchbell::delivery::types::shout;

struct Plugin;

impl bindings::exports::switchbell::delivery::plugin::Guest for Plugin {
    fn describe() -> String {
        shout();
        r#"{"name":"forged-types","version":"1.0.0"}"#.into()
    }
}
