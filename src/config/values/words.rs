//! Names, levels, roles, patterns and variable names.

use super::super::read::FromText;
use super::super::scalar::is_harmless;
use super::super::schema::{Form, Words, word};
use super::super::variables::is_variable_name;
use super::super::{Role, suggest};
use crate::notification::{Level, Name};
use crate::route::{PATTERN_CHARS_MAX, check_name_pattern, check_text_pattern};

impl FromText for Name {
    const WANTED: &'static str = "a name";
    const SEES_NUMBERS: bool = true;

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("{quoted} is no name: a name is 1 to 63 of a-z, 0-9 and inner hyphens"))
    }

    fn form() -> Form {
        Form::pattern(NAME, &["acme"]).or_number()
    }
}

impl FromText for Level {
    const WANTED: &'static str = "a level (info, attention or urgent)";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        word(text).ok_or_else(|| {
            let meant = match text.to_ascii_lowercase().as_str() {
                "high" | "critical" | "crit" | "error" | "fatal" | "emergency" | "alert" | "page" => Some("urgent"),
                "warning" | "warn" | "medium" | "important" | "notice" => Some("attention"),
                "low" | "normal" | "debug" | "information" | "all" | "any" => Some("info"),
                _ => suggest::closest(text, &Self::ALL.map(Self::as_str)),
            };
            let meant = meant.map_or_else(String::new, |meant| format!("; for {quoted} write {meant}"));
            format!("{quoted} is no level: the levels are info, attention and urgent{meant}")
        })
    }

    fn form() -> Form {
        Form::words::<Self>()
    }
}

impl FromText for Role {
    const WANTED: &'static str = "a role (admin or member)";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        word(text).ok_or_else(|| format!("{quoted} is no role: write admin (writes routes) or member (reads)"))
    }

    fn form() -> Form {
        Form::words::<Self>()
    }
}

impl Words for Level {
    fn words() -> Vec<(&'static str, Self, &'static str)> {
        let about = |level: Self| match level {
            Self::Info => "Worth knowing.",
            Self::Attention => "Somebody should look.",
            Self::Urgent => "Somebody should look now.",
        };
        Self::ALL.map(|level| (level.as_str(), level, about(level))).into()
    }
}

impl Words for Role {
    fn words() -> Vec<(&'static str, Self, &'static str)> {
        vec![("admin", Self::Admin, "May own routes."), ("member", Self::Member, "Reads.")]
    }
}

/// Who a member is: an address or another identifier without white space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::config) struct Member(pub String);

/// Longest identifier of a member, in bytes: that of a mail address (RFC 5321 §4.5.3.1.3).
const MEMBER_BYTES_MAX: usize = 254;

impl FromText for Member {
    const WANTED: &'static str = "a member such as `admin@example.com`";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        let fits =
            (1..=MEMBER_BYTES_MAX).contains(&text.len()) && text.chars().all(|c| is_harmless(c) && !c.is_whitespace());
        fits.then(|| Self(text.to_owned())).ok_or_else(|| {
            format!(
                "{quoted} is no member: write an address such as `admin@example.com`, without white space, at most \
                     {MEMBER_BYTES_MAX} bytes"
            )
        })
    }

    fn form() -> Form {
        let pattern = format!(
            r"[^\s\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]{{1,{MEMBER_BYTES_MAX}}}"
        );
        Form::pattern(pattern, &["admin@example.com"])
    }
}

/// A pattern over dotted names.
#[derive(Debug, Clone)]
pub(in crate::config) struct NamePattern(pub String);

impl FromText for NamePattern {
    const WANTED: &'static str = "a pattern such as `domain.*`";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        check_name_pattern(text).map_err(|error| format!("{quoted}: {error}"))?;
        Ok(Self(text.to_owned()))
    }

    fn form() -> Form {
        Form::pattern(format!(r"[A-Za-z0-9._*\-]{{1,{PATTERN_CHARS_MAX}}}"), &["domain.*", "campaign.**"])
    }
}

/// A pattern over a subject or a source.
#[derive(Debug, Clone)]
pub(in crate::config) struct TextPattern(pub String);

impl TextPattern {
    /// Whether it is a literal text.
    pub(in crate::config) fn is_literal(&self) -> bool {
        !self.0.contains(['*', '?'])
    }
}

impl FromText for TextPattern {
    const WANTED: &'static str = "a text or pattern such as `*.example`";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        check_text_pattern(text).map_err(|error| format!("{quoted}: {error}"))?;
        Ok(Self(text.to_owned()))
    }

    fn form() -> Form {
        Form::pattern(format!(r"[\s\S]{{1,{PATTERN_CHARS_MAX}}}"), &["*.example"])
    }
}

/// The name of an environment variable.
#[derive(Debug, Clone)]
pub(in crate::config) struct VariableName(pub String);

impl FromText for VariableName {
    const WANTED: &'static str = "the name of an environment variable";

    /// Never quotes the text: people write the value itself here.
    fn from_text(text: &str, _: &str) -> Result<Self, String> {
        is_variable_name(text).then(|| Self(text.to_owned())).ok_or_else(|| {
            "this is no name of an environment variable: write a name of letters, digits and `_`, not the value"
                .to_owned()
        })
    }

    fn form() -> Form {
        Form::pattern("[A-Za-z_][A-Za-z0-9_]*", &["SLACK_WEBHOOK"])
    }
}

/// The pattern of a name, for editors.
pub(super) const NAME: &str = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";

/// The pattern of a token, for editors.
pub(super) const TOKEN: &str = r"[A-Za-z0-9!#$%&'*+\-.^_`|~]+";

/// Whether a text is a token, as the names of headers are (RFC 9110 §5.6.2).
pub(super) fn is_token(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(fits)
}
