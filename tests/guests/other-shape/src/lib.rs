//! A component that exports the plugin interface with other types.

mod bindings;

struct Plugin;

impl bindings::exports::switchbell::delivery::plugin::Guest for Plugin {
    fn describe() -> String {
        r#"{"name":"other-shape","version":"1.0.0"}"#.into()
    }

    fn check(settings: String) -> String {
        settings
    }

    fn step(delivery: String) -> String {
        delivery
    }
}
