//! The OpenAPI document: what the operations declare, and what is true of all of them.

use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;

use super::ROOT;
use crate::serve::problem::PROBLEM_MEDIA_TYPE;

/// What the whole API is, for its readers.
const DESCRIPTION: &str = "Reads a workspace's inbox and what became of it, and changes what people and agents may \
    change. Moments are RFC 3339 in UTC. Fields that are absent are null. Lists are `{items, next}`. Errors are problem \
    details (RFC 9457).";

/// The groups of operations.
const TAGS: [(&str, &str); 8] = [
    ("access", "Who asks, and what that one may see."),
    ("notifications", "The inbox."),
    ("deliveries", "What is owed, and what became of it."),
    ("routes", "Who is told, and why."),
    ("connectors", "Where notifications come from."),
    ("consumers", "Agents that have a queue of their own."),
    ("plugins", "How they are delivered."),
    ("configuration", "How the server stands."),
];

/// Schemas of what is sent: what they do not require may be left out. In all others every field is there.
const ASKED: [&str; 8] = [
    "MarkJson",
    "WhichJson",
    "ExplainAskedJson",
    "OfJson",
    "PreviewAskedJson",
    "AdHocJson",
    "WhichVersionJson",
    "NewTokenJson",
];

/// Problems that any operation may answer.
const PROBLEMS: [(&str, &str); 6] = [
    ("400", "The request makes no sense."),
    ("401", "A good token is needed."),
    ("403", "The token does not allow it."),
    ("421", "This server goes by another name."),
    ("429", "Too many tries with bad tokens."),
    ("503", "It cannot be done right now."),
];

/// Problems of operations whose path names something.
const OF_PATHS: [(&str, &str); 2] = [("404", "There is no such thing."), ("409", "It cannot be done as things stand.")];

/// Problems of operations that take a body.
const OF_BODIES: [(&str, &str); 3] = [
    ("408", "The body did not come in time."),
    ("413", "Too much was sent."),
    ("415", "Another media type is needed."),
];

/// The document as JSON.
pub(super) fn text(declared: OpenApi) -> String {
    let mut document = serde_json::to_value(declared).unwrap_or_default();
    describe(&mut document);
    if let Some(paths) = document.get_mut("paths").and_then(Value::as_object_mut) {
        let below = std::mem::take(paths);
        paths.extend(below.into_iter().map(|(path, item)| (format!("{ROOT}{path}"), item)));
        for (path, item) in paths.iter_mut() {
            operations(item).for_each(|operation| complete(path, operation));
        }
    }
    let mut names = Vec::new();
    if let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) {
        schemas.iter_mut().for_each(|(name, schema)| whole(name, schema));
        names = schemas.keys().cloned().collect();
        *schemas = std::mem::take(schemas).into_iter().map(|(name, schema)| (named(&name), schema)).collect();
    }
    let reference = |name: &str| format!("/schemas/{name}\"");
    names.iter().fold(document.to_string(), |text, name| text.replace(&reference(name), &reference(&named(name))))
}

/// What a type is called in the document. In the code it stands beside what it is made from.
fn named(name: &str) -> String {
    let name = name.replace("Json", "");
    match name.split_once('_') {
        Some(("List", of)) => format!("{of}List"),
        Some(("Detailed", of)) => format!("{of}Problem"),
        _ => name,
    }
}

fn describe(document: &mut Value) {
    let Some(document) = document.as_object_mut() else { return };
    let info = json!({
        "title": "Switchbell",
        "version": env!("CARGO_PKG_VERSION"),
        "description": DESCRIPTION,
        "license": { "name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE") },
    });
    let tags: Vec<Value> =
        TAGS.iter().map(|(name, description)| json!({ "name": name, "description": description })).collect();
    let schemes = json!({
        "bearer": { "type": "http", "scheme": "bearer", "description": "A token of `switchbell token create`." },
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": "__Host-switchbell",
            "description": "A browser's session. What changes something needs our `Origin`, and `Switchbell-Request: 1`.",
        },
    });
    document.insert("info".to_owned(), info);
    document.insert("servers".to_owned(), json!([{ "url": "/" }]));
    document.insert("tags".to_owned(), Value::Array(tags));
    document.insert("security".to_owned(), json!([{ "bearer": [] }, { "session": [] }]));
    let components = document.entry("components").or_insert_with(|| Value::Object(Map::new()));
    if let Some(components) = components.as_object_mut() {
        components.insert("securitySchemes".to_owned(), schemes);
    }
}

fn operations(item: &mut Value) -> impl Iterator<Item = &mut Value> {
    item.as_object_mut().into_iter().flat_map(|item| item.values_mut()).filter(|value| value.is_object())
}

/// Adds the problems that an operation may answer, and what numbers hold.
fn complete(path: &str, operation: &mut Value) {
    let has_body = operation.get("requestBody").is_some();
    if let Some(parameters) = operation.get_mut("parameters") {
        bound(parameters);
    }
    let of_paths = OF_PATHS.iter().filter(|_| path.contains('{'));
    let of_bodies = OF_BODIES.iter().filter(|_| has_body);
    let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else { return };
    for (status, description) in PROBLEMS.iter().chain(of_paths).chain(of_bodies) {
        responses.entry(*status).or_insert_with(|| json!({ "description": description }));
    }
    for (status, response) in responses.iter_mut() {
        let Some(response) = response.as_object_mut().filter(|response| !response.contains_key("content")) else {
            continue;
        };
        if !status.starts_with('2') {
            let schema = json!({ "schema": { "$ref": "#/components/schemas/ProblemJson" } });
            response.insert("content".to_owned(), json!({ PROBLEM_MEDIA_TYPE: schema }));
        }
    }
}

/// What is answered has every field; what is sent has numbers that fit.
fn whole(name: &str, schema: &mut Value) {
    if ASKED.contains(&name) {
        bound(schema);
        without_defaults(schema);
        return;
    }
    let Some(schema) = schema.as_object_mut() else { return };
    let names = schema
        .get("properties")
        .and_then(Value::as_object)
        .map(|fields| fields.keys().cloned().map(Value::String).collect());
    if let Some(names) = names {
        schema.insert("required".to_owned(), Value::Array(names));
    }
}

/// What must be said has no default, and null is none that is worth a word.
fn without_defaults(schema: &mut Value) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| required.as_array().is_some_and(|names| names.iter().any(|known| known == name));
    let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (name, field) in fields.iter_mut() {
        let is_needless = is_required(name) || field.get("default").is_some_and(Value::is_null);
        if let Some(field) = field.as_object_mut().filter(|_| is_needless) {
            field.remove("default");
        }
    }
}

/// Says how large numbers may be of which it is only known that they have 64 bits.
fn bound(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(bound),
        Value::Object(fields) => {
            let is_open = fields.get("format").is_some_and(|format| format == "int64")
                && fields.get("minimum").is_some_and(|minimum| minimum == 0)
                && !fields.contains_key("maximum");
            if is_open {
                fields.insert("maximum".to_owned(), u64::MAX.into());
            }
            fields.values_mut().for_each(bound);
        }
        _ => {}
    }
}
