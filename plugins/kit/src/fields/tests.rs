//! Reading objects.

use alloc::string::ToString;
use alloc::vec;

use super::{Field, Fields};

#[test]
fn what_lies_deeper_than_asked_for_is_passed_over() {
    let json = br#"{"a":{"b":{"c":1}},"l":["x",["y"],7]}"#;
    let flat = Fields::read(json, 1).unwrap();
    assert_eq!(flat.get("a"), Some(&Field::Object(Fields::default())));
    assert_eq!(flat.get("l"), Some(&Field::List(vec![])));
    let deeper = Fields::read(json, 2).unwrap();
    assert_eq!(deeper.object("a").unwrap().get("b"), Some(&Field::Object(Fields::default())));
    let list = vec![Field::Text("x".to_string()), Field::List(vec![]), Field::Number(7.0)];
    assert_eq!(deeper.get("l"), Some(&Field::List(list)));
    assert_eq!(deeper.texts("l").collect::<vec::Vec<_>>(), ["x"]);
}

#[test]
fn any_depth_is_read_in_a_small_stack() {
    let nested = ["{\"x\":", &"{\"x\":[".repeat(100_000), "1", &"]}".repeat(100_000), "}"].concat();
    for depth in [1, 2, 3] {
        assert!(Fields::read(nested.as_bytes(), depth).is_ok(), "{depth}");
    }
}

#[test]
fn a_list_that_is_read_has_its_commas() {
    for json in [r#"{"a":[1 2]}"#, r#"{"a":[1,]}"#] {
        assert!(Fields::read(json.as_bytes(), 2).is_err(), "{json}");
    }
}

#[test]
fn only_whole_objects_are_read() {
    let wrong = [
        "",
        "[]",
        "null",
        "7",
        "\"x\"",
        "{",
        "}",
        r#"{"a":1} x"#,
        r#"{"a":}"#,
        r#"{"a"}"#,
        r#"{"a":1,}"#,
        r#"{,}"#,
        r#"{a:1}"#,
        r#"{"a":1 "b":2}"#,
        r#"{"a":nul}"#,
        r#"{"a":"\x"}"#,
        r#"{"a":"\u12"}"#,
        r#"{"a":"\ud800"}"#,
        r#"{"a":"\udc00"}"#,
        r#"{"a":"\ud800\u0041"}"#,
        "{\"a\":\"\n\"}",
        r#"{"a":-}"#,
        r#"{"a":1.}"#,
        r#"{"a":1e}"#,
        r#"{"a":+1}"#,
        r#"{"a":{"b":{"c":]}}}"#,
        r#"{"a":{"b":{"c":"}}}"#,
    ];
    for json in wrong {
        for depth in [1, 2, 9] {
            assert!(Fields::read(json.as_bytes(), depth).is_err(), "{json} {depth}");
        }
    }
    assert!(Fields::read(b"{\"a\":\"\xff\"}", 1).is_err());
}

#[test]
fn every_kind_of_value_is_read_as_it_was_written() {
    let json = " {\"a\" : null , \"b\":true,\"c\":false,\"d\":\"\",\"e\":[],\"f\":{},\"a\":\"last\"}\r\n\t";
    let fields = Fields::read(json.as_bytes(), 2).unwrap();
    let expected = [
        ("a", Field::Text("last".to_string())),
        ("b", Field::Bool(true)),
        ("c", Field::Bool(false)),
        ("d", Field::Text("".to_string())),
        ("e", Field::List(vec![])),
        ("f", Field::Object(Fields::default())),
    ];
    assert_eq!(fields.iter().map(|(name, field)| (name, field.clone())).collect::<vec::Vec<_>>(), expected);
}

#[test]
fn texts_are_read_as_other_parsers_write_them() {
    let json = r#"{"a":"x\"\\\/\b\f\n\r\t\u00e9\u20AC\ud83d\udd14 größe \u0000"}"#;
    let expected = "x\"\\/\u{8}\u{c}\n\r\té€🔔 größe \u{0}";
    assert_eq!(Fields::read(json.as_bytes(), 1).unwrap().text("a"), Some(expected));
    let every: alloc::string::String = (0..0x3000).filter_map(char::from_u32).collect();
    let json = ["{\"a\":", &crate::json::text(&every), "}"].concat();
    assert_eq!(Fields::read(json.as_bytes(), 1).unwrap().text("a"), Some(every.as_str()));
}

#[test]
fn numbers_are_near_enough() {
    let cases = [
        ("0", 0.0),
        ("-7", -7.0),
        ("30.0", 30.0),
        ("1.25", 1.25),
        ("1e3", 1_000.0),
        ("25E-1", 2.5),
        ("1e+2", 100.0),
        ("1e300", 1e300),
        ("1e999999999999", f64::INFINITY),
        ("1e-999999999999", 0.0),
        ("18446744073709551616", 18_446_744_073_709_551_616.0),
    ];
    for (text, expected) in cases {
        let json = ["{\"a\":", text, "}"].concat();
        let fields = Fields::read(json.as_bytes(), 1).unwrap();
        let Some(Field::Number(found)) = fields.get("a") else { panic!("{text}") };
        let is_near = *found == expected || (found - expected).abs() <= expected.abs() * 1e-12;
        assert!(is_near, "{text}: {found}");
    }
}

#[test]
fn an_object_cut_anywhere_is_none() {
    let json = r#"{"a":{"b":["\ud83d\udd14",{"c":null}]},"d":[true,false,-1.5e3],"e":"größe"}"#;
    for depth in [1, 2, 9] {
        assert!(Fields::read(json.as_bytes(), depth).is_ok());
        for end in 0..json.len() {
            assert!(Fields::read(&json.as_bytes()[..end], depth).is_err(), "{end}");
        }
    }
}
