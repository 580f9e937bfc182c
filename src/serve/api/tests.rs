use serde_json::Value;

use super::*;

fn document() -> Value {
    serde_json::from_str(&document::text(declared().into_openapi())).unwrap()
}

/// Every operation with its method and path.
fn operations(document: &Value) -> Vec<(String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let items = paths.iter().flat_map(|(path, item)| item.as_object().unwrap().iter().map(move |one| (path, one)));
    items.map(|(path, (method, operation))| (format!("{method} {path}"), operation)).collect()
}

#[test]
fn every_operation_has_a_name_of_its_own_a_tag_and_words() {
    let document = document();
    let operations = operations(&document);
    let mut names: Vec<&str> = operations.iter().map(|(_, it)| it["operationId"].as_str().unwrap()).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!((names.len(), count > 20), (count, true));
    let tags: Vec<&Value> = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    for (at, operation) in operations {
        assert!(tags.contains(&&operation["tags"][0]), "{at}: {}", operation["tags"]);
        assert!(operation["summary"].as_str().is_some_and(|summary| summary.ends_with('.')), "{at}");
        for (status, response) in operation["responses"].as_object().unwrap() {
            let content = response["content"].as_object().unwrap_or_else(|| panic!("{at} {status} has no content"));
            assert_eq!(content.contains_key("application/problem+json"), !status.starts_with('2'), "{at} {status}");
        }
        assert!(operation["responses"]["401"].is_object(), "{at}");
    }
}

#[test]
fn every_reference_of_the_document_is_there() {
    fn check(document: &Value, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| check(document, item)),
            Value::Object(fields) => {
                if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{reference}");
                }
                fields.values().for_each(|field| check(document, field));
            }
            _ => {}
        }
    }
    let document = document();
    check(&document, &document);
    assert!(document["components"]["schemas"]["Notification"]["required"].as_array().unwrap().len() > 10);
    let schemas = &document["components"]["schemas"];
    assert!(schemas["Mark"]["required"].as_array().is_some_and(|names| names.len() == 1));
    assert!(schemas["DeliveryList"].is_object() && schemas["NotReloadedProblem"].is_object());
    assert!(schemas.as_object().unwrap().keys().all(|name| !name.contains("Json") && !name.contains('_')));
}
