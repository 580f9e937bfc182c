//! A schema as tables for people, one for each kind of mapping, in Markdown.

use std::fmt::Write as _;

use super::wire::{Additional, Schema};

/// What stands before a table.
struct Section<'a> {
    path: String,
    schema: &'a Schema,
}

/// The tables of a file.
pub(super) fn render(root: &Schema) -> String {
    let mut tables = Tables { open: vec![Section { path: String::new(), schema: root }], known: Vec::new() };
    let mut text = String::new();
    while !tables.open.is_empty() {
        let section = tables.open.remove(0);
        text.push_str(&tables.table(&section));
    }
    text
}

struct Tables<'a> {
    /// Sections that have no table yet, in the order in which they come.
    open: Vec<Section<'a>>,
    /// Sections that have one or will have one.
    known: Vec<(String, &'a Schema)>,
}

impl<'a> Tables<'a> {
    fn table(&mut self, section: &Section<'a>) -> String {
        let mut text = String::new();
        // What the one section under a key is for was said of the key.
        let about = section.schema.description.as_deref().unwrap_or_default();
        let _ = match section.path.as_str() {
            "" => writeln!(text, "{about}\n"),
            path if path.ends_with(".NAME") || path.ends_with("[]") => writeln!(text, "\n**`{path}`**: {about}\n"),
            path => writeln!(text, "\n**`{path}`**\n"),
        };
        text.push_str("| key | what may stand there | default | what it is for |\n| --- | --- | --- | --- |\n");
        let mut found = Vec::new();
        for (key, schema) in section.schema.properties.iter().filter(|(_, schema)| !schema.do_not_suggest) {
            let path = if section.path.is_empty() { (*key).to_owned() } else { format!("{}.{key}", section.path) };
            let default = match &schema.default {
                Some(default) => format!("`{}`", default.flow()),
                None if section.schema.required.contains(key) => "required".to_owned(),
                None => String::new(),
            };
            let may = self.may(schema, &path, &mut found);
            let cells = [format!("`{key}`"), may, default, explained(schema)].map(|cell| cell.replace('|', "\\|"));
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        // Below a section come its own parts, before those of its neighbours.
        found.append(&mut self.open);
        self.open = found;
        text
    }

    /// What may stand there, in words. Sections that are met on the way are `found`.
    fn may(&mut self, schema: &'a Schema, path: &str, found: &mut Vec<Section<'a>>) -> String {
        if schema.alternatives().next().is_some() {
            let parts = schema.alternatives().filter(|schema| !is_variable(schema));
            return parts.map(|schema| self.may(schema, path, found)).collect::<Vec<_>>().join("; or ");
        }
        if let Some(items) = &schema.items {
            let each = self.may(items, &format!("{path}[]"), found);
            return match (schema.min_items, schema.max_items) {
                (Some(least), Some(most)) => format!("a list of {least} to {most}, each {each}"),
                (Some(least), None) => format!("a list of at least {least}, each {each}"),
                _ => format!("a list, each {each}"),
            };
        }
        if !schema.properties.is_empty() {
            return self.section(schema, path, found);
        }
        match (&schema.additional_properties, &schema.property_names) {
            (Some(Additional::Any(values)), Some(keys)) => {
                let keys = wanted(keys);
                let values = self.may(values, &format!("{path}.NAME"), found);
                format!("a mapping, each key {keys}, each value {values}")
            }
            _ if !schema.words.is_empty() => words(&schema.words),
            _ => wanted(schema),
        }
    }

    fn section(&mut self, schema: &'a Schema, path: &str, found: &mut Vec<Section<'a>>) -> String {
        if let [(_, only)] = schema.properties.as_slice()
            && only.words.is_empty()
            && let Some(example) = schema.examples.first()
        {
            return format!("`{}`", example.flow());
        }
        if let Some((first, _)) = self.known.iter().find(|(_, known)| known.properties == schema.properties) {
            return format!("a mapping like `{first}`");
        }
        self.known.push((path.to_owned(), schema));
        found.push(Section { path: path.to_owned(), schema });
        format!("a mapping: see `{path}`")
    }
}

/// What it is for, and what each of its words means.
fn explained(schema: &Schema) -> String {
    let mut text = schema.description.clone().unwrap_or_default();
    let alternatives = std::iter::once(schema).chain(schema.alternatives());
    for (word, about) in alternatives.flat_map(|schema| schema.words.iter().zip(&schema.words_about)) {
        let _ = write!(text, " `{word}`: {about}");
    }
    text
}

fn words(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

fn wanted(schema: &Schema) -> String {
    let message = schema.pattern_error_message.as_ref().or(schema.error_message.as_ref()).map_or("", String::as_str);
    message.strip_suffix(" is wanted here").unwrap_or(message).to_owned()
}

/// Whether this is the alternative for variables, of which the text about spelling tells once for all.
fn is_variable(schema: &Schema) -> bool {
    schema.pattern_error_message.as_deref() == Some(super::form::VARIABLE)
}
