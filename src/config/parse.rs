//! YAML events into a tree of nodes. Whatever has no place in a configuration (anchors, aliases, tags, merge keys, a
//! second document) is refused here, with what to write instead.

use std::borrow::Cow;
use std::collections::BTreeMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::Place;
use super::code::{Code, Said};
use super::node::{At, Entry, Kind, Node, Path};
use super::scalar::{Scalar, quote};
use super::source::Report;
use super::syntax::{self, Fault};

/// Deepest nesting: settings included, nobody writes more, and everything that walks the tree may recurse.
const DEPTH_MAX: usize = 32;
/// Longest key, in characters: twice that of the longest member's name.
const KEY_CHARS_MAX: usize = 200;
/// Most times that parsing starts again after a mistake that can be stepped over.
const ATTEMPTS_MAX: usize = 50;

/// Parses the report's text, reporting every mistake of form. None when there is nothing to go on with.
pub(super) fn parse(report: &mut Report) -> Option<Node> {
    let mut text = report.text().to_owned();
    let mut stepped_over = BTreeMap::new();
    loop {
        let mut builder = Builder::new(&text, &stepped_over);
        let result = builder.document();
        let found = std::mem::take(&mut builder.found);
        let fault = match &result {
            Err(Stop::Scan(error)) => Some(syntax::explain(error, &text)),
            Ok(_) | Err(Stop::Reported) => None,
        };
        if let Some(Fault { step_over: Some(offset), said, place }) = &fault
            && stepped_over.len() < ATTEMPTS_MAX
            && stepped_over.insert(*place, said.clone()).is_none()
        {
            text.replace_range(*offset..*offset + 1, "_");
            continue;
        }
        let root = result.ok().flatten();
        if let Some(root) = &root {
            report.know(root);
        }
        for (at, message) in found {
            report.mistake(&at, message);
        }
        if let Some(fault) = fault {
            syntax::report(&fault, report);
        }
        return root;
    }
}

/// Why a tree was not finished.
enum Stop {
    Scan(ScanError),
    /// The reason is among the findings.
    Reported,
}

struct Builder<'text> {
    parser: Parser<'text, StrInput<'text>>,
    /// Where texts stand that were changed to get past a mistake, and what is said of each.
    stepped_over: &'text BTreeMap<Place, Said>,
    found: Vec<(At, Said)>,
}

impl<'text> Builder<'text> {
    fn new(text: &'text str, stepped_over: &'text BTreeMap<Place, Said>) -> Self {
        Self { parser: Parser::new_from_str(text), stepped_over, found: Vec::new() }
    }

    fn next(&mut self) -> Result<(Event<'text>, Span), Stop> {
        let next = self.parser.next_event().ok_or(Stop::Reported)?;
        next.map_err(Stop::Scan)
    }

    fn found(&mut self, path: &Path, place: Place, said: Said) {
        self.found.push((At { path: path.clone(), place }, said));
    }

    fn was_stepped_over(&mut self, path: &Path, place: Place) -> bool {
        let Some(said) = self.stepped_over.get(&place) else { return false };
        self.found(path, place, said.clone());
        true
    }

    /// The one document of the file; none when there is none.
    fn document(&mut self) -> Result<Option<Node>, Stop> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(root),
                Event::DocumentStart(_) if root.is_some() => {
                    let message = "a second document begins here; a file holds one: remove the line `---` and merge \
                                   what follows into the first, or move it to a file of its own";
                    self.found(&Path::default(), place(&span.start), Code::YamlFeature.says(message));
                    return Ok(root);
                }
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
                content => root = Some(self.node(content, span, &Path::default(), 0)?),
            }
        }
    }

    fn node(&mut self, event: Event<'text>, span: Span, path: &Path, depth: usize) -> Result<Node, Stop> {
        let start = place(&span.start);
        if depth > DEPTH_MAX {
            let text = format!("nested too deeply: at most {DEPTH_MAX} levels");
            self.found(path, start, Code::OutOfBounds.says(text));
            return Err(Stop::Reported);
        }
        let (kind, end) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let kind = if self.was_stepped_over(path, start) { Kind::Reported } else { scalar(text, style) };
                (self.refuse_properties(path, start, anchor, tag).unwrap_or(kind), place(&span.end))
            }
            Event::SequenceStart(anchor, tag) => {
                let refused = self.refuse_properties(path, start, anchor, tag);
                let (items, end) = self.list(path, depth)?;
                (refused.unwrap_or(Kind::List(items)), end)
            }
            Event::MappingStart(anchor, tag) => {
                let refused = self.refuse_properties(path, start, anchor, tag);
                let (entries, end) = self.mapping(path, depth)?;
                (refused.unwrap_or(Kind::Mapping(entries)), end)
            }
            Event::Alias(_) => {
                let text = format!("{}: write the value out, or put a pattern in quotes", syntax::ALIAS);
                self.found(path, start, Code::YamlFeature.says(text));
                (Kind::Reported, place(&span.end))
            }
            _ => return Err(Stop::Reported),
        };
        Ok(Node { at: At { path: path.clone(), place: start }, end, kind })
    }

    /// Some when a tag makes the value unusable.
    fn refuse_properties(
        &mut self,
        path: &Path,
        start: Place,
        anchor: usize,
        tag: Option<Cow<'_, Tag>>,
    ) -> Option<Kind> {
        if anchor > 0 {
            let message = "an anchor (`&`) is not supported: repeat the value where it is needed, or put a text that \
                           begins with `&` in quotes";
            self.found(path, start, Code::YamlFeature.says(message));
        }
        tag.map(|_| {
            let message = "a tag (`!`) is not supported: remove it, or put a text that begins with `!` in quotes";
            self.found(path, start, Code::YamlFeature.says(message));
            Kind::Reported
        })
    }

    fn list(&mut self, path: &Path, depth: usize) -> Result<(Vec<Node>, Place), Stop> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok((items, place(&span.end)));
            }
            items.push(self.node(event, span, &path.index(items.len()), depth + 1)?);
        }
    }

    fn mapping(&mut self, path: &Path, depth: usize) -> Result<(Vec<Entry>, Place), Stop> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen: BTreeMap<String, Place> = BTreeMap::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                return Ok((entries, place(&span.end)));
            }
            let key_place = place(&span.start);
            let key = self.key(event, span, path, depth)?;
            let key_path = key.as_ref().map_or_else(|| path.clone(), |key| path.key(key));
            let (event, span) = self.next()?;
            let value = self.node(event, span, &key_path, depth + 1)?;
            let Some(key) = key else { continue };
            if let Some(first) = seen.get(&key) {
                let message = format!("{} stands twice here, first in line {}: keep one", quote(&key), first.line);
                self.found(&key_path, key_place, Code::DuplicateKey.says(message));
                continue;
            }
            seen.insert(key.clone(), key_place);
            entries.push(Entry { key, key_at: At { path: key_path, place: key_place }, value });
        }
    }

    /// The text of a key; none when it is unusable and was reported.
    fn key(&mut self, event: Event<'text>, span: Span, path: &Path, depth: usize) -> Result<Option<String>, Stop> {
        let start = place(&span.start);
        let Event::Scalar(text, style, ..) = &event else {
            let before = self.found.len();
            let is_alias = matches!(event, Event::Alias(_));
            self.node(event, span, path, depth + 1)?;
            self.found.truncate(if is_alias { self.found.len() } else { before });
            if !is_alias {
                let message = "a list or mapping cannot be a key; put a text that holds `{` or `[` in quotes";
                self.found(path, start, Code::WrongType.says(message));
            }
            return Ok(None);
        };
        let (text, is_plain) = (text.to_string(), *style == ScalarStyle::Plain);
        let message = if self.was_stepped_over(path, start) {
            return Ok(None);
        } else if is_plain && text == "<<" {
            Some(Code::YamlFeature.says("a merge key (`<<`) is not supported: write the keys out"))
        } else if text.is_empty() {
            Some(Code::NotYaml.says("a key is missing before this `:`"))
        } else if text.chars().nth(KEY_CHARS_MAX).is_some() {
            Some(Code::OutOfBounds.says(format!("a key has at most {KEY_CHARS_MAX} characters")))
        } else {
            None
        };
        let is_usable = message.is_none();
        if let Some(said) = message {
            self.found(path, start, said);
        }
        if let Event::Scalar(_, _, anchor, tag) = event {
            let _unusable = self.refuse_properties(path, start, anchor, tag);
        }
        Ok(is_usable.then_some(text))
    }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle) -> Kind {
    Kind::Scalar(Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain, written: None })
}

/// The parser counts columns from 0.
pub(super) fn place(marker: &Marker) -> Place {
    Place { line: marker.line(), column: marker.col() + 1 }
}
