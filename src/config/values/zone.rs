//! Time zones by their names in the IANA time zone database.

use jiff::tz::{self, TimeZone};

use super::super::read::FromText;
use super::super::scalar::quote;
use super::super::schema::Form;
use super::super::suggest;

/// The name of a time zone as it stands in the file. It is looked up once it is known how many there are: what is near to
/// one that is unknown takes a while to find.
#[derive(Debug, Clone)]
pub(in crate::config) struct ZoneName(pub String);

impl FromText for ZoneName {
    const WANTED: &'static str = "a time zone such as `Europe/Berlin`";
    const SEES_NUMBERS: bool = true;

    fn from_text(text: &str, _: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }

    fn form() -> Form {
        Form::pattern(r"[A-Za-z][A-Za-z0-9]*(?:[_\/+\-][A-Za-z0-9]+)*", &["Europe/Berlin", "America/New_York", "UTC"])
    }
}

/// Longest abbreviation of a time zone, in letters.
const ABBREVIATION_CHARS_MAX: usize = 5;

/// Names that stand for whatever the machine is set to, or for nothing.
const NOT_A_PLACE: [&str; 6] = ["localtime", "local", "system", "posixrules", "factory", "etc/unknown"];

/// The time zone of a name; upper and lower case are no difference.
///
/// # Errors
/// Says why it is none and what to write instead.
pub(in crate::config) fn zone(text: &str) -> Result<TimeZone, String> {
    let quoted = quote(text);
    if NOT_A_PLACE.contains(&text.to_ascii_lowercase().as_str()) {
        return Err(format!(
            "{quoted} does not say which time zone: write a name of the IANA time zone database such as Europe/Berlin"
        ));
    }
    let database = tz::db();
    database.get(text).map_err(|_| {
        let objection = if looks_like_offset(text) {
            ": an offset knows no daylight saving time".to_owned()
        } else if looks_like_abbreviation(text) {
            ": an abbreviation stands for more than one, or for half a year only".to_owned()
        } else {
            let names: Vec<String> = database.available().map(|name| name.as_str().to_owned()).collect();
            match closest(text, &names) {
                Some(meant) => return format!("{quoted} is no time zone: did you mean {meant}?"),
                None => String::new(),
            }
        };
        format!(
            "{quoted} is no time zone{objection}; write a name of the IANA time zone database such as Europe/Berlin"
        )
    })
}

/// Whether this is a zone whose name says the opposite of what it seems to: `Etc/GMT+1` is an hour behind UTC.
pub(in crate::config) fn is_inverted(zone: &TimeZone) -> bool {
    let hours =
        zone.iana_name().and_then(|name| name.strip_prefix("Etc/GMT")).and_then(|hours| hours.parse::<i8>().ok());
    hours.is_some_and(|hours| hours != 0)
}

/// `CET+1`, `UTC+01:00`, `+01:00`, `GMT-5`.
fn looks_like_offset(text: &str) -> bool {
    text.split_once(['+', '-', '−']).is_some_and(|(_, hours)| hours.starts_with(|c: char| c.is_ascii_digit()))
}

/// `CEST`, `PDT`.
fn looks_like_abbreviation(text: &str) -> bool {
    text.len() <= ABBREVIATION_CHARS_MAX && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// The name whose last part, the place, is or resembles that of the text: of several the shortest, which is the one that
/// is not filed under a part of a country.
fn closest<'a>(text: &str, names: &'a [String]) -> Option<&'a str> {
    let place = place(text).replace(' ', "_");
    let initial = place.chars().next()?;
    let begins_alike =
        |name: &&&str| self::place(name).chars().next().is_some_and(|c| c.eq_ignore_ascii_case(&initial));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let places: Vec<&str> = names.iter().filter(begins_alike).map(|name| self::place(name)).collect();
    let meant = places.iter().find(|other| other.eq_ignore_ascii_case(&place)).copied();
    let meant = meant.or_else(|| suggest::closest(&place, &places))?;
    names.into_iter().filter(|name| self::place(name) == meant).min_by_key(|name| name.len())
}

fn place(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        match (zone(text), expected) {
            (Ok(found), Ok(name)) => assert_eq!(found.iana_name(), Some(name), "{text}"),
            (Err(message), Err(part)) => assert!(message.contains(part), "{text}: {message}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn a_zone_is_named_as_in_the_iana_database() {
        check("Europe/Berlin", Ok("Europe/Berlin"));
        check("europe/berlin", Ok("Europe/Berlin"));
        check("America/Argentina/Buenos_Aires", Ok("America/Argentina/Buenos_Aires"));
        check("UTC", Ok("UTC"));
        check("Etc/GMT+1", Ok("Etc/GMT+1"));
    }

    #[test]
    fn what_is_no_zone_is_refused_with_what_was_meant() {
        check("Europe/Berln", Err("did you mean Europe/Berlin?"));
        check("Berlin", Err("did you mean Europe/Berlin?"));
        check("Germany/Berlin", Err("did you mean Europe/Berlin?"));
        check("New York", Err("did you mean America/New_York?"));
        check("America/NewYork", Err("did you mean America/New_York?"));
        for offset in ["CET+1", "UTC+01:00", "+01:00", "GMT-5", "CET-1CEST"] {
            check(offset, Err("an offset knows no daylight saving time"));
        }
        check("CEST", Err("an abbreviation"));
        for local in ["local", "localtime", "Etc/Unknown"] {
            check(local, Err("does not say which"));
        }
        for nothing in ["", "/", "../../etc/passwd", "/etc/localtime", "posix/Europe/Berlin/", "Middle-earth/Shire"] {
            check(nothing, Err("is no time zone"));
        }
    }

    #[test]
    fn a_zone_whose_sign_is_inverted_is_known() {
        for (name, expected) in [
            ("Etc/GMT+1", true),
            ("Etc/GMT-14", true),
            ("Etc/GMT", false),
            ("Etc/GMT+0", false),
            ("Europe/Berlin", false),
        ] {
            assert_eq!(is_inverted(&zone(name).unwrap()), expected, "{name}");
        }
    }
}
