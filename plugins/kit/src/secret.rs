//! Placeholders of secrets.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

/// The longest name of a secret, in characters.
const NAME_MAX: usize = 63;

/// Whether the text is a placeholder, `switchbell-secret.<name>.<16 hex digits>`: a stand-in for a secret, in whose
/// place the host puts the value.
///
/// ```
/// assert!(switchbell_kit::secret::is_placeholder("switchbell-secret.slack-ops.0123456789abcdef"));
/// assert!(!switchbell_kit::secret::is_placeholder("https://hooks.slack.com/services/T/B/X"));
/// ```
#[inline(never)]
pub fn is_placeholder(text: &str) -> bool {
    let Some((name, digits)) = text.strip_prefix("switchbell-secret.").and_then(|rest| rest.split_once('.')) else {
        return false;
    };
    is_name(name) && digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// What tells one credential from another without showing it: the placeholder, or a hash (64-bit FNV-1a) of the value.
#[inline(never)]
pub fn identity(credential: &str) -> String {
    if is_placeholder(credential) {
        return credential.to_owned();
    }
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", credential.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
}

/// Names of secrets are 1–63 of a–z, 0–9 and inner hyphens.
fn is_name(text: &str) -> bool {
    let letters = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    letters && !text.is_empty() && text.len() <= NAME_MAX && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::is_placeholder;

    #[test]
    fn only_the_exact_form_is_a_placeholder() {
        let cases = [
            ("switchbell-secret.slack-ops.0123456789abcdef", true),
            ("switchbell-secret.a.ABCDEF0123456789", true),
            ("switchbell-secret.a.0123456789abcde", false),
            ("switchbell-secret.a.0123456789abcdefa", false),
            ("switchbell-secret.a.0123456789abcdeg", false),
            ("switchbell-secret..0123456789abcdef", false),
            ("switchbell-secret.-a.0123456789abcdef", false),
            ("switchbell-secret.A.0123456789abcdef", false),
            ("switchbell-secret.a b.0123456789abcdef", false),
            (" switchbell-secret.a.0123456789abcdef", false),
            ("switchbell-secret.a", false),
            ("", false),
        ];
        for (text, expected) in cases {
            assert_eq!(is_placeholder(text), expected, "{text:?}");
        }
    }
}
