//! The kinds of what is said of a configuration: stable names for scripts, and what each kind means.

/// Declares the kinds, each with its name and what it means.
macro_rules! codes {
    ($( $(#[doc = $about:literal])+ $variant:ident = $name:literal, )+) => {
        /// A kind of mistake or warning. Its name stays the same from version to version.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $( $(#[doc = $about])+ $variant, )+
        }

        impl Code {
            /// Every kind, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$( Self::$variant, )+];

            /// The name, in lower case with hyphens.
            pub fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $name, )+
                }
            }

            /// What it means, in one sentence.
            pub fn about(self) -> &'static str {
                match self {
                    $( Self::$variant => concat!($( $about ),+).trim_ascii(), )+
                }
            }
        }
    };
}

codes! {
    /// A file of the configuration cannot be read, or is no UTF-8 text.
    UnreadableFile = "unreadable-file",
    /// A file says nothing.
    EmptyFile = "empty-file",
    /// The text is no YAML.
    NotYaml = "not-yaml",
    /// YAML that has no place in a configuration: an alias, an anchor, a tag, a merge key, a second document.
    YamlFeature = "yaml-feature",
    /// A key stands twice in one mapping.
    DuplicateKey = "duplicate-key",
    /// A key that is not known in its place.
    UnknownKey = "unknown-key",
    /// A key of the documented configuration that this version does not have.
    UnsupportedKey = "unsupported-key",
    /// A key that is known elsewhere.
    MisplacedKey = "misplaced-key",
    /// A key that must be there is missing.
    MissingKey = "missing-key",
    /// Keys that exclude each other, or one that means nothing beside another.
    ConflictingKeys = "conflicting-keys",
    /// A list, a mapping, a text, a number or a boolean stands where another of these is wanted.
    WrongType = "wrong-type",
    /// A value is not of the form that its place wants.
    BadValue = "bad-value",
    /// A number, a duration, a length or a count is beyond its bounds.
    OutOfBounds = "out-of-bounds",
    /// Values that must grow from one to the next do not.
    OutOfOrder = "out-of-order",
    /// A variable (`${NAME}`) is not set, is unusable, or stands where variables are not read.
    BadVariable = "bad-variable",
    /// A folder or one of its files is not as it must be.
    BadFolder = "bad-folder",
    /// A path leads where it may not.
    BadPath = "bad-path",
    /// Two things in one place have the same name or are the same.
    Duplicate = "duplicate",
    /// There is no plugin of this name.
    UnknownPlugin = "unknown-plugin",
    /// There is no connector of this name.
    UnknownConnector = "unknown-connector",
    /// There is no secret of this name.
    UnknownSecret = "unknown-secret",
    /// There is no command of this name.
    UnknownCommand = "unknown-command",
    /// There is no entry of the catalog of this name.
    UnknownEntry = "unknown-entry",
    /// There is no member of this name.
    UnknownMember = "unknown-member",
    /// There is no workspace of this name.
    UnknownWorkspace = "unknown-workspace",
    /// There is no route of this name.
    UnknownRoute = "unknown-route",
    /// There is no target of this identity in the route.
    UnknownTarget = "unknown-target",
    /// The owner of a route is no admin.
    NotAnAdmin = "not-an-admin",
    /// The operator does not let this workspace use it, or not for this host.
    NotGranted = "not-granted",
    /// A secret is used for something else than its `in` says.
    MisplacedSecret = "misplaced-secret",
    /// The value of a secret cannot be had, or does not fit its place.
    BadSecret = "bad-secret",
    /// An address that may not be reached.
    UnreachableAddress = "unreachable-address",
    /// Something secret would travel unencrypted.
    Unencrypted = "unencrypted",
    /// Quiet hours that would never end.
    EndlessHold = "endless-hold",
    /// The patterns of a workspace cannot be matched all at once.
    PatternSetTooLarge = "pattern-set-too-large",
    /// The file of a plugin cannot be used.
    BadPlugin = "bad-plugin",
    /// A plugin does not take the settings of a target.
    BadSettings = "bad-settings",
    /// The folder of plugins is not there, so that no plugin was asked.
    NoPlugins = "no-plugins",
    /// There is no workspace, so that nothing is polled.
    NoWorkspace = "no-workspace",
    /// A manifest declares no outbox, so that none is polled.
    NoOutbox = "no-outbox",
    /// Something that is written has no effect.
    NoEffect = "no-effect",
    /// The program of a connector is not on this machine.
    NoProgram = "no-program",
    /// Mail goes nowhere: there is no relay, or it may go to nobody.
    NoMail = "no-mail",
    /// The secret of a connector may be sent to any server.
    AnyHost = "any-host",
    /// Every delivery to a target would be refused.
    DeliveryRefused = "delivery-refused",
    /// A route asks for a level that no connector it matches can have.
    LevelAboveCeilings = "level-above-ceilings",
    /// A pattern over connectors matches none.
    NoSuchSource = "no-such-source",
    /// A pattern matched nothing that came in the last 30 days.
    PatternUnseen = "pattern-unseen",
    /// A route can match nothing.
    MatchesNothing = "matches-nothing",
    /// Two routes deliver the same to the same target.
    RepeatedRoute = "repeated-route",
    /// Quiet hours that take up nearly the whole day.
    LongHold = "long-hold",
    /// `unless` stands where nothing is waited for.
    NothingToWaitFor = "nothing-to-wait-for",
    /// The sign of a time zone means the opposite of what it seems to.
    InvertedZone = "inverted-zone",
    /// A secret that nobody uses.
    UnusedSecret = "unused-secret",
    /// A command that no connector uses.
    UnusedCommand = "unused-command",
    /// An entry of the catalog that no connector uses.
    UnusedEntry = "unused-entry",
    /// A grant for a plugin that no target uses.
    UnusedGrant = "unused-grant",
    /// What looks like a credential is written out where a secret should stand.
    WrittenCredential = "written-credential",
}

/// What is said of a place, and of what kind it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub code: Code,
    pub text: String,
}

impl Code {
    /// Something of this kind.
    pub(super) fn says(self, text: impl Into<String>) -> Said {
        Said { code: self, text: text.into() }
    }
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Code::BadValue.says(text)
    }
}

impl From<&str> for Said {
    fn from(text: &str) -> Self {
        Code::BadValue.says(text)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_is_documented_in_its_own_words() {
        let documented = include_str!("../../docs/check.md");
        for code in Code::ALL {
            let row = format!("| `{}` | {} |\n", code.as_str(), code.about());
            assert!(documented.contains(&row), "docs/check.md lacks: {row}");
        }
        let rows =
            documented.split("\n## Codes\n").nth(1).unwrap().lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(rows, Code::ALL.len(), "docs/check.md has a code that is none");
    }

    #[test]
    fn every_kind_has_a_name_of_its_own_in_lower_case() {
        let names: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')));
    }
}
