//! Which version of its plugin makes an attempt, and what it is handed of what another version wrote.

use semver::Version;

use super::past::is_resumed;
use crate::inbox::{Begun, Written};
use crate::notification::Name;
use crate::wasm::{Catalog, Manifest, Plugin};

/// Digits of a digest that a person is shown.
const DIGEST_SHOWN: usize = 12;

/// The version of a plugin that makes an attempt: the one that it began on, if something of it is kept, else the one that
/// runs. A wait forgets what was done, so that another version can go on after it where the one that began is not there.
///
/// # Errors
/// Why no version can.
pub(super) fn of(begun: Option<&Begun>, plugin: &Name, catalog: &Catalog) -> Result<Plugin, String> {
    let begun = begun.and_then(|begun| begun.plugin_digest.as_deref().map(|digest| (begun, digest)));
    if let Some((begun, digest)) = begun {
        let has_effects = has_effects(begun);
        let is_trusted = has_effects || !catalog.is_quarantined(plugin, digest);
        if let Some(version) = catalog.version(plugin, digest).filter(|_| is_trusted) {
            return Ok(version);
        }
        if has_effects {
            let digest = digest.get(..DIGEST_SHOWN).unwrap_or(digest);
            return Err(format!(
                "the version of plugin {plugin} that this attempt began on, {digest}, is not there any more, and no other \
                 can go on with what it did: the next attempt is made on the running version"
            ));
        }
    }
    catalog.get(plugin).ok_or_else(|| format!("plugin {plugin} is not loaded: see the log for why"))
}

/// Whether effects of the attempt are kept, or one may have begun after its last wait. The end of the wait is kept before
/// the first effect after it.
fn has_effects(begun: &Begun) -> bool {
    begun.past.iter().any(|kept| !is_resumed(kept)) || begun.cut_off && !begun.past.is_empty()
}

/// What a plugin is handed of something kept for it. A version that is older by a major number than the one that wrote it
/// may not understand it and is handed none; what a version writes in its place stands.
pub(in crate::send) fn handed(written: Option<&Written>, reader: &Manifest) -> Option<String> {
    let Written { value, plugin_version } = written?;
    let is_too_new = plugin_version.as_deref().is_some_and(|writer| is_older_by_major(&reader.version, writer));
    (!is_too_new).then(|| value.clone())
}

/// Versions that cannot be read are not compared.
fn is_older_by_major(version: &str, other: &str) -> bool {
    let major = |version: &str| Version::parse(version).ok().map(|version| version.major);
    major(version).zip(major(other)).is_some_and(|(version, other)| version < other)
}

#[cfg(test)]
mod tests {
    use super::is_older_by_major;

    #[test]
    fn a_version_is_older_by_a_major_number_or_it_is_not() {
        for (version, other, expected) in [
            ("1.9.9", "2.0.0", true),
            ("1.0.0", "2.0.0-rc.1", true),
            ("0.9.0", "1.0.0", true),
            ("1.0.0", "12.0.0", true),
            ("2.0.0", "1.9.9", false),
            ("1.0.0", "1.9.0", false),
            ("1.0.0", "1.0.0", false),
            ("2.0.0-rc.1", "2.0.0", false),
            ("0.1.0", "0.9.0", false),
            ("1.0.0+build.1", "2.0.0+build.1", true),
            ("9.0.0", "10.0.0", true),
            ("1.0", "2.0.0", false),
            ("1.0.0", "two", false),
            ("", "2.0.0", false),
            ("1.0.0", "", false),
            ("99999999999999999999.0.0", "2.0.0", false),
        ] {
            assert_eq!(is_older_by_major(version, other), expected, "{version:?} against {other:?}");
        }
    }
}
