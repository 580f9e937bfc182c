//! The reader, compared with a known one.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::Value as Known;

use crate::json::{Kind, Value, quoted};

/// Whether both read the same, all the way down.
fn is_same(value: Value<'_>, known: &Known) -> bool {
    match known {
        Known::Null => value.kind() == Some(Kind::Null),
        Known::Bool(known) => value.kind() == Some(Kind::Bool) && value.is_true() == *known,
        Known::Number(known) => value.kind() == Some(Kind::Number) && value.raw() == known.to_string(),
        Known::String(known) => value.text().as_ref() == Some(known),
        Known::Array(known) => {
            let items: Vec<Value<'_>> = value.items().collect();
            items.len() == known.len() && items.iter().zip(known).all(|(item, known)| is_same(*item, known))
        }
        Known::Object(known) => {
            let fields: Vec<(String, Value<'_>)> = value.fields().collect();
            fields.len() == known.len() && fields.iter().all(|(name, value)| is_same(*value, &known[name]))
        }
    }
}

#[test]
fn every_value_is_read_as_others_read_it() {
    let cases = [
        "null",
        "true",
        " false ",
        "-12",
        "0",
        r#""""#,
        r#""text""#,
        r#""a \" b \\ c \/ d \b\f\n\r\t e""#,
        r#""\u00e9 \u20AC \ud83d\udd14 é 🔔""#,
        r#""\u0000""#,
        "[]",
        "[ ]",
        "{}",
        "\t{\n}\r",
        "[1,[2,[3,[]]],{}]",
        r#"{"a":1,"b":[true,null,{"c":"}]\"{["}],"d":{"e":{"f":"g"}}}"#,
        r#" { "a" : 1 , "b" : [ 1 , 2 ] } "#,
        r#"{"":{"":[""]},"a\"b":"c"}"#,
        r#"{"back\\":"slash\\","next":"\\"}"#,
    ];
    for case in cases {
        let known: Known = serde_json::from_str(case).unwrap();
        assert!(is_same(Value::new(case), &known), "{case}");
    }
}

#[test]
fn a_text_of_any_characters_is_written_so_that_others_read_it() {
    let all: String = (0..0x300).filter_map(char::from_u32).chain("\u{2028}€🔔\u{10ffff}".chars()).collect();
    for text in ["", "plain", "\"\\/\u{8}\u{c}\n\r\t\u{0}\u{1f}\u{7f}", &*all] {
        assert_eq!(serde_json::from_str::<String>(&quoted(text)).unwrap(), text);
        assert_eq!(Value::new(&quoted(text)).text().unwrap(), text);
    }
}

#[test]
fn half_a_surrogate_pair_is_a_replacement_character() {
    let cases = [
        (r#""\ud83d""#, "\u{fffd}"),
        (r#""\udd14""#, "\u{fffd}"),
        (r#""\ud83dx""#, "\u{fffd}x"),
        (r#""\ud83d\n""#, "\u{fffd}\n"),
        (r#""\ud83d\ud83d\udd14""#, "\u{fffd}🔔"),
    ];
    for (literal, expected) in cases {
        assert_eq!(Value::new(literal).text().as_deref(), Some(expected), "{literal}");
    }
}

#[test]
fn what_was_cut_tells_what_stood_before_the_cut() {
    let whole = r#"{"id":"run-1","status":"completed","output":[{"text":"a \"long\" answer"}]}"#;
    for length in 0..whole.len() {
        let cut = Value::new(&whole[..length]);
        let id = cut.text_at(&["id"]);
        assert!(length < 13 || id.as_deref() == Some("run-1"), "{length}");
        // No cut is read without an end, and none panics.
        let _ = (cut.at(&["output"]).map(|output| output.items().count()), cut.fields().count());
    }
}

#[test]
fn what_is_no_json_has_no_fields() {
    let cases =
        ["", "<!DOCTYPE html>", "OK", "]", "}", ",", ":", "{", "{\"", "{\"a", "{\"a\"", "{\"a\":", "{a:1}", "\\"];
    for case in cases {
        let value = Value::new(case);
        assert!(value.get("a").is_none() && value.items().next().is_none(), "{case:?}");
    }
}

#[test]
fn no_depth_of_nesting_is_too_much() {
    let deep = format!(r#"{{"a":{}1{},"b":"after"}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(Value::new(&deep).text_at(&["b"]).as_deref(), Some("after"));
}

#[test]
fn null_is_as_good_as_absent_and_the_first_of_a_name_counts() {
    let value = Value::new(r#"{"a":null,"b":1,"b":2}"#);
    assert_eq!((value.get("a"), value.get("b").map(Value::raw)), (None, Some("1")));
    assert_eq!(value.get("b").and_then(Value::whole::<u32>), Some(1));
    for (number, expected) in
        [("1.5", None), ("1e2", None), ("-1", None), ("4294967296", None), ("4294967295", Some(u32::MAX))]
    {
        assert_eq!(Value::new(number).whole::<u32>(), expected, "{number}");
    }
    assert_eq!(Value::new("1").raw().to_owned(), "1".to_string());
}
