//! A component that exports another version of the plugin interface.

mod bindings;

struct Plugin;

impl bindings::exports::switchbell::delivery::plugin::Guest for Plugin {
    fn describe() -> String {
        r#"{"name":"other-world","version":"1.0.0"}"#.into()
    }
}
