//! The versions of the contract (`wit/delivery.wit`) that this host speaks, and how a component of each is called.
//!
//! Versions below 1.0 that share major and minor are one line: their types are the same, and a patch changes nothing but
//! what is said about them. Everything outside this folder knows the values of the current line only. To speak another
//! line beside it, add
//! - a module like [`v0_1`], with bindings of its own generated from the frozen `tests/cases/contract/<version>/delivery.wit`,
//!   which converts a delivery and its past on the way in and an action on the way out,
//! - a variant of [`Exports`] and one of [`Step`],
//! - an entry in [`LINES`].

mod v0_1;

use std::sync::Arc;

use wasmtime::Engine;
use wasmtime::component::Component;

use super::bindings::switchbell::delivery::types::{Action, Delivery, Destination, Effect, Problem};
use super::fault::LoadError;
use super::instance::Instance;
use super::text::one_line;

/// The exported interface, without its version.
const PLUGIN_INTERFACE: &str = "switchbell:delivery/plugin";

/// One line of the contract.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Major and minor, such as `0.1`.
    name: &'static str,
    /// Its newest version.
    version: &'static str,
    find: fn(&Component, &str) -> Result<Exports, &'static str>,
}

/// The lines that this host speaks, the current one first.
const LINES: &[Line] = &[Line { name: "0.1", version: "0.1.0", find: v0_1::find }];

/// The functions of the plugin interface in one component, one variant for each line.
#[derive(Clone, Copy, Debug)]
pub(super) enum Exports {
    V0_1(v0_1::Exports),
}

/// The function `step` of one instance, one variant for each line. Finding it again would cost as much as a quick step.
#[derive(Clone, Copy)]
pub(super) enum Step {
    V0_1(v0_1::Step),
}

impl Exports {
    /// Finds the functions in a component, and the name of the interface that they are exported by.
    ///
    /// # Errors
    /// When it exports no version of the contract that this host speaks: what it exports instead, and what to do.
    pub(super) fn find(engine: &Engine, component: &Component) -> Result<(Self, String), LoadError> {
        let typed = component.component_type();
        let names: Vec<&str> = typed.exports(engine).map(|(name, _)| name).collect();
        let (line, interface) = choose(LINES, &names)?;
        let exports = (line.find)(component, interface)
            .map_err(|function| wrong_world(LINES, &format!("{interface} without {function}"), REBUILD.into()))?;
        Ok((exports, interface.to_owned()))
    }

    /// Whether the functions have the types of their line.
    ///
    /// # Errors
    /// Which has not, and where it differs.
    pub(super) fn conforms(&self, instance: &mut Instance) -> Result<(), LoadError> {
        let conforms = match self {
            Self::V0_1(exports) => exports.conforms(instance),
        };
        conforms.map_err(|(function, mismatch)| {
            let mismatch = one_line(&format!("{function}: {mismatch:#}"), 520);
            wrong_world(LINES, &format!("{PLUGIN_INTERFACE} with other types ({mismatch})"), REBUILD.into())
        })
    }

    pub(super) fn describe(&self, instance: &mut Instance) -> wasmtime::Result<String> {
        match self {
            Self::V0_1(exports) => exports.describe(instance),
        }
    }

    pub(super) fn check(
        &self,
        instance: &mut Instance,
        settings: String,
    ) -> wasmtime::Result<Result<Destination, Vec<Problem>>> {
        match self {
            Self::V0_1(exports) => exports.check(instance, settings),
        }
    }

    pub(super) fn step(&self, instance: &mut Instance) -> wasmtime::Result<Step> {
        match self {
            Self::V0_1(exports) => exports.step(instance).map(Step::V0_1),
        }
    }
}

impl Step {
    pub(super) fn call(
        &self,
        instance: &mut Instance,
        delivery: Arc<Delivery>,
        past: Arc<Vec<Effect>>,
    ) -> wasmtime::Result<Action> {
        match self {
            Self::V0_1(step) => v0_1::call(step, instance, delivery, past),
        }
    }
}

/// The newest line of these that one of the exports is of, and that export.
fn choose<'l, 'n>(lines: &'l [Line], exports: &[&'n str]) -> Result<(&'l Line, &'n str), LoadError> {
    let version = |name: &'n str| name.strip_prefix(PLUGIN_INTERFACE).and_then(|rest| rest.strip_prefix('@'));
    let of = |line: &Line| exports.iter().find(|name| version(name).is_some_and(|it| is_patch_of(line.name, it)));
    if let Some((line, name)) = lines.iter().find_map(|line| of(line).map(|name| (line, *name))) {
        return Ok((line, name));
    }
    let close = exports.iter().find_map(|name| version(name).map(|version| (*name, version)));
    Err(match (close, exports) {
        (Some((name, version)), _) => wrong_world(lines, name, other_version(lines, version)),
        (None, []) => wrong_world(lines, "nothing", REBUILD.into()),
        (None, names) => wrong_world(lines, &names.join(", "), REBUILD.into()),
    })
}

/// Whether `version` is `line` and a number: semantic versions below 1 are compatible within such a line.
pub(super) fn is_patch_of(line: &str, version: &str) -> bool {
    let patch = version.strip_prefix(line).and_then(|rest| rest.strip_prefix('.'));
    patch.is_some_and(|patch| !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What to do about a plugin that fits no version of the contract.
const REBUILD: &str = "build it against this host's wit/delivery.wit";

/// What to do about a version of the contract that none of these lines has.
fn other_version(lines: &[Line], version: &str) -> String {
    let numbers = |version: &str| version.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u64>>();
    let is_newer = lines.first().is_none_or(|current| numbers(version) >= numbers(current.version));
    let spoken = lines.iter().map(|line| line.name).collect::<Vec<_>>().join(" and ");
    let version = one_line(version, 100);
    if is_newer {
        format!(
            "it was built for a newer contract, {version}, and this host speaks {spoken}; update this host, or {REBUILD}"
        )
    } else {
        format!(
            "it was built for an older contract, {version}, and this host speaks {spoken}; build it again, against this \
             host's wit/delivery.wit"
        )
    }
}

fn wrong_world(lines: &[Line], found: &str, remedy: String) -> LoadError {
    let wanted = lines.first().map_or_else(String::new, |line| format!("{PLUGIN_INTERFACE}@{}", line.version));
    LoadError::WrongWorld { found: one_line(found, 700), wanted, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This line, and a newer one.
    const TWO: &[Line] = &[
        Line { name: "0.2", version: "0.2.3", find: v0_1::find },
        Line { name: "0.1", version: "0.1.0", find: v0_1::find },
    ];

    fn chosen(lines: &[Line], exports: &[&str]) -> String {
        match choose(lines, exports) {
            Ok((line, name)) => format!("{} by {name}", line.name),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_version_fits_its_own_line_only() {
        for (line, version, expected) in [
            ("0.2", "0.2.0", true),
            ("0.2", "0.2.12", true),
            ("0.2", "0.2", false),
            ("0.2", "0.2.", false),
            ("0.2", "0.3.0", false),
            ("0.2", "0.20.0", false),
            ("0.2", "0.2.0-rc.1", false),
            ("0.1", "0.1.0", true),
        ] {
            assert_eq!(is_patch_of(line, version), expected, "{version}");
        }
    }

    #[test]
    fn the_newest_line_that_a_component_speaks_is_taken() {
        for (exports, expected) in [
            (vec!["switchbell:delivery/plugin@0.1.0"], "0.1 by switchbell:delivery/plugin@0.1.0"),
            (vec!["other", "switchbell:delivery/plugin@0.1.9"], "0.1 by switchbell:delivery/plugin@0.1.9"),
            (vec!["switchbell:delivery/plugin@0.2.0"], "0.2 by switchbell:delivery/plugin@0.2.0"),
            (
                vec!["switchbell:delivery/plugin@0.1.0", "switchbell:delivery/plugin@0.2.1"],
                "0.2 by switchbell:delivery/plugin@0.2.1",
            ),
        ] {
            assert_eq!(chosen(TWO, &exports), expected);
        }
    }

    #[test]
    fn what_a_component_was_built_for_and_what_the_host_speaks_is_said() {
        let exports = "exports switchbell:delivery/plugin@";
        for (lines, version, expected) in [
            (
                LINES,
                "0.0.9",
                ", not switchbell:delivery/plugin@0.1.0: it was built for an older contract, 0.0.9, and this host \
                 speaks 0.1; build it again, against this host's wit/delivery.wit",
            ),
            (
                LINES,
                "0.2.0",
                ", not switchbell:delivery/plugin@0.1.0: it was built for a newer contract, 0.2.0, and this host speaks \
                 0.1; update this host, or build it against this host's wit/delivery.wit",
            ),
            (
                TWO,
                "1.0.0",
                ", not switchbell:delivery/plugin@0.2.3: it was built for a newer contract, 1.0.0, and this host speaks \
                 0.2 and 0.1; update this host, or build it against this host's wit/delivery.wit",
            ),
        ] {
            let name = format!("switchbell:delivery/plugin@{version}");
            assert_eq!(chosen(lines, &[&name]), format!("{exports}{version}{expected}"));
        }
        for (version, expected) in [("0.1.0-rc.1", "a newer"), ("0.9.0", "a newer"), ("0.0.1", "an older")] {
            assert!(other_version(LINES, version).starts_with(&format!("it was built for {expected} ")), "{version}");
        }
    }

    #[test]
    fn what_exports_no_plugin_is_told_what_to_export() {
        let wanted = "not switchbell:delivery/plugin@0.1.0: build it against this host's wit/delivery.wit";
        for (exports, expected) in [
            (vec![], "exports nothing, "),
            (vec!["wasi:cli/run@0.2.0", "other"], "exports wasi:cli/run@0.2.0, other, "),
            (vec!["switchbell:delivery/plugin"], "exports switchbell:delivery/plugin, "),
            (vec!["switchbell:delivery/plugins@0.1.0"], "exports switchbell:delivery/plugins@0.1.0, "),
        ] {
            assert_eq!(chosen(LINES, &exports), format!("{expected}{wanted}"));
        }
    }
}
