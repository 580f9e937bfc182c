//! Scalars by the core schema of YAML 1.2 (§10.3.2): `no`, `on` and `15:00` are texts.

use std::borrow::Cow;

use super::credential;

/// Longest text that a message quotes, in characters: enough to recognise it on one line.
const QUOTED_CHARS_MAX: usize = 60;

/// A scalar as it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scalar {
    /// Its text, variables filled in.
    pub text: String,
    /// Whether it stands without quotes, and so may be more than a text.
    pub plain: bool,
    /// The text before variables were filled in, if there were any: only this may be shown.
    pub written: Option<String>,
}

/// What a scalar stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Typed {
    Null,
    Boolean(bool),
    /// A whole number; none when it has no place in 64 bits with sign, or without.
    Integer(Option<i128>),
    Float(f64),
    Text,
}

impl Scalar {
    /// What it stands for.
    pub(super) fn typed(&self) -> Typed {
        if self.plain { typed(&self.text) } else { Typed::Text }
    }

    /// Its text in quotes, short and harmless, for a message.
    pub(super) fn quoted(&self) -> String {
        let text = self.written.as_ref().unwrap_or(&self.text);
        // A credential in a wrong place is still one.
        quote_unless_secret(text)
    }
}

/// The same of a text that may be a credential: then it is not shown.
pub(super) fn quote_unless_secret(text: &str) -> String {
    if credential::is_plain(text) { quote("***") } else { quote(text) }
}

/// A text in double quotes, cut and escaped, for a message.
pub(super) fn quote(text: &str) -> String {
    if text.chars().nth(QUOTED_CHARS_MAX).is_none() {
        return format!("{text:?}");
    }
    let cut: String = text.chars().take(QUOTED_CHARS_MAX - 1).collect();
    format!("{:?}", cut + "…")
}

fn typed(text: &str) -> Typed {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Typed::Null,
        "true" | "True" | "TRUE" => return Typed::Boolean(true),
        "false" | "False" | "FALSE" => return Typed::Boolean(false),
        ".nan" | ".NaN" | ".NAN" => return Typed::Float(f64::NAN),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
        return Typed::Float(f64::INFINITY * sign);
    }
    if let Some(integer) = integer(text, unsigned) {
        return Typed::Integer(integer);
    }
    if is_float(unsigned) { text.parse().map_or(Typed::Text, Typed::Float) } else { Typed::Text }
}

/// Some when the text has the form of a whole number; its value where 64 bits hold it.
fn integer(text: &str, unsigned: &str) -> Option<Option<i128>> {
    let radix = |digits: &str, radix: u32| {
        let fits = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        fits.then(|| i128::from_str_radix(digits, radix).ok().filter(in_64_bits))
    };
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    let magnitude = radix(unsigned, 10)?;
    Some(magnitude.map(|value| if text.starts_with('-') { -value } else { value }).filter(in_64_bits))
}

fn in_64_bits(value: &i128) -> bool {
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(value)
}

/// `(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(unsigned: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => is_digits(fraction),
        Some((whole, fraction)) => is_digits(whole) && (fraction.is_empty() || is_digits(fraction)),
        None => is_digits(mantissa),
    };
    mantissa_fits && exponent.is_none_or(is_digits)
}

/// A character that may be shown in a terminal: not one that controls it or turns the direction of the text.
pub(super) fn is_harmless(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    !c.is_control() && !turns
}

/// A text with every harmful character replaced, one for one.
pub(super) fn harmless(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|c| if is_harmless(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_follow_the_core_schema_of_yaml_1_2() {
        for text in ["no", "on", "y", "15:00", "1_000", "0b1", "1h", "nil", "NuLL", ".", "+", "1e", "0x", "2026-01-01"]
        {
            assert_eq!(typed(text), Typed::Text, "{text}");
        }
        for (text, value) in [("12", 12), ("-3", -3), ("+3", 3), ("0o17", 15), ("0xfF", 255), ("007", 7)] {
            assert_eq!(typed(text), Typed::Integer(Some(value)), "{text}");
        }
        assert_eq!(typed("18446744073709551615"), Typed::Integer(Some(u64::MAX.into())));
        assert_eq!(typed("18446744073709551616"), Typed::Integer(None));
        assert_eq!(typed(&"9".repeat(50)), Typed::Integer(None));
        for (text, value) in [("1.5", 1.5), ("-.5", -0.5), ("1.", 1.0), ("1e3", 1000.0), ("-.inf", f64::NEG_INFINITY)] {
            assert_eq!(typed(text), Typed::Float(value), "{text}");
        }
        for text in ["", "~", "null", "NULL"] {
            assert_eq!(typed(text), Typed::Null, "{text}");
        }
        assert_eq!(typed("TRUE"), Typed::Boolean(true));
    }

    #[test]
    fn quoted_text_is_short_and_cannot_steer_a_terminal() {
        assert_eq!(quote("a\u{1b}[31m\u{202e}\""), r#""a\u{1b}[31m\u{202e}\"""#);
        assert_eq!(quote(&"x".repeat(60)).len(), 62);
        assert!(quote(&"x".repeat(61)).ends_with("…\""));
    }
}
