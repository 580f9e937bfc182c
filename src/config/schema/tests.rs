//! Whether what types say of their form is what they read.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::*;
use crate::config::parse;
use crate::config::raw::*;
use crate::config::read::{FromText, Read};
use crate::config::source::Report;
use crate::config::values::*;
use crate::config::{GateMode, MailTls, Mailbox, OAuthGrant, RecipientPattern, Role};
use crate::inbox::delivery::OnUnknown;
use crate::notification::{Level, Name};
use crate::route::timing::{By, Except};

/// A type that is written as one text.
struct Kind {
    name: &'static str,
    form: Form,
    takes: fn(&str) -> bool,
    /// Whether only the reader knows all of it: what is a host, a URL, a domain, a key.
    is_loose: bool,
}

macro_rules! kinds {
    ($($name:ident $($loose:ident)?),+ $(,)?) => {
        vec![$( Kind {
            name: stringify!($name),
            form: <$name as FromText>::form(),
            takes: |text| <$name as FromText>::from_text(text, "").is_ok(),
            is_loose: [$( stringify!($loose) == "loose", )? false][0],
        } ),+]
    };
}

fn kinds() -> Vec<Kind> {
    // It is looked up later.
    let zones = Kind {
        name: "ZoneName",
        form: ZoneName::form(),
        takes: |text| crate::config::values::zone(text).is_ok(),
        is_loose: true,
    };
    let mut kinds = kinds![
        AcknowledgedBy, By, Bytes, Claim, ClientId, ConnectorUrl loose, Except, GateMode, GrantKind, HeaderName,
        Host loose, KeyEntry loose, Level, Listen loose, MailTls, Mailbox loose, Member, Name, NamePattern, OAuthGrant,
        OnUnknown, Order, Origin loose, OutboxUri, Pin, PlaceEntry, RecipientPattern loose, Relay loose, Role, Scope,
        SmtpUser, Span, Store, TextPattern, TimeOfDay, TokenUrl loose, ToolEntry, VariableName, EventName, MarkedBy, Moment loose,
        PublicUrl loose, Network loose,
    ];
    kinds.push(zones);
    kinds
}

/// Texts to begin with, besides the examples: what people write by mistake. No number is too large for the reader.
const SEEDS: [&str; 24] = [
    "",
    " ",
    "a",
    "A",
    "1",
    "22:0",
    "24:00",
    "1m1h",
    "5ms",
    "1w",
    "*",
    "**",
    "a b",
    "a\nb",
    "ä.example",
    "http://",
    "https://a@b",
    "header:Host",
    "body:/~2",
    "*@example.com",
    "\"a b\" <c@d.e>",
    "::1",
    "1.2.3.4:70000",
    "ui://x",
];
/// Pieces that are put in.
const PIECES: [&str; 30] = [
    "a", "Z", "0", "9", "-", ".", ":", "/", "*", "@", "?", "#", " ", "_", "~", "%", "<", ">", "\"", "\\", "[", "]",
    "m", "s", "+", "=", "ü", "\u{7f}", "🙂", "::",
];

/// Texts like these, many of them a little wrong, the same at each run.
fn texts(examples: &[&str], random: &mut fastrand::Rng) -> Vec<String> {
    let begin: Vec<&str> = examples.iter().copied().chain(SEEDS).collect();
    let mut found: Vec<String> = begin.iter().map(|text| (*text).to_owned()).collect();
    for _ in 0..600 {
        let from = if random.bool() { examples } else { &begin };
        let mut text: Vec<char> = random.choice(from).copied().unwrap_or_default().chars().collect();
        for _ in 0..random.usize(1..=3) {
            let at = random.usize(0..=text.len());
            match random.u8(0..5) {
                0 if at < text.len() => drop(text.remove(at)),
                1 => text.truncate(at),
                2 => text.extend(text.clone()),
                3 if at < text.len() => text[at] = text[at].to_ascii_uppercase(),
                _ => {
                    let piece = random.choice(PIECES).unwrap().chars();
                    text.splice(at..at, piece);
                }
            }
        }
        found.push(text.into_iter().collect());
    }
    for length in [1, 16, 63, 64, 65, 128, 129, 200, 201, 254, 255, 256, 257, 512, 513] {
        found.push("x".repeat(length));
        found.extend(examples.iter().map(|example| format!("{example}{}", "x".repeat(length))));
    }
    found
}

/// Whether each text matches its pattern, by the regular expressions of JavaScript, which JSON Schema has.
fn matched(asked: &[(String, Vec<String>)]) -> Vec<Vec<bool>> {
    let program = "const asked = JSON.parse(require('fs').readFileSync(0, 'utf8'));
        const told = asked.map(([pattern, texts]) => texts.map((text) => new RegExp(pattern, 'u').test(text)));
        process.stdout.write(JSON.stringify(told));";
    let mut node = Command::new("node");
    let mut node = node.args(["-e", program]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    node.stdin.take().unwrap().write_all(&serde_json::to_vec(asked).unwrap()).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn patterns_take_what_the_reader_takes_and_little_else() {
    let mut random = fastrand::Rng::with_seed(7);
    let kinds = kinds();
    let asked = kinds.iter().map(|kind| {
        let pattern = kind.form.bare_pattern().unwrap();
        (pattern, texts(&kind.form.examples(), &mut random))
    });
    let asked: Vec<(String, Vec<String>)> = asked.collect();
    let mut differ = Vec::new();
    for ((kind, (_, texts)), matched) in kinds.iter().zip(&asked).zip(matched(&asked)) {
        let (mut taken, mut refused) = (0, 0);
        for (text, matches) in texts.iter().zip(matched) {
            match ((kind.takes)(text), matches) {
                (true, false) => differ.push(format!("{}: the pattern refuses {text:?}", kind.name)),
                (false, true) if !kind.is_loose => differ.push(format!("{}: the pattern takes {text:?}", kind.name)),
                (true, true) => taken += 1,
                (_, false) => refused += 1,
                (false, true) => {}
            }
        }
        assert!(taken >= 1 && refused >= 1, "{}: {taken} taken, {refused} refused", kind.name);
    }
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
}

#[test]
fn a_text_with_variables_is_taken_only_in_the_operators_file_and_only_where_they_are_whole() {
    let pattern = |file| Span::schema(file).pattern.unwrap();
    let any = |file| crate::config::read::Text::schema(file).pattern.unwrap();
    let texts: Vec<String> =
        ["${A}", "${A:-5m}", "1${B:?say}m", "$${A}", "${}", "${1A}", "${A", "${A}${", "5m", "$", "a $5 b"]
            .map(str::to_owned)
            .into();
    let asked = [pattern(File::Server), pattern(File::Workspace), any(File::Server), any(File::Workspace)];
    let asked = asked.map(|pattern| (pattern, texts.clone()));
    let words = |told: &[bool]| told.iter().map(|told| if *told { 'y' } else { '-' }).collect::<String>();
    let told: Vec<String> = matched(&asked).iter().map(|told| words(told)).collect();
    assert_eq!(told, ["yyyy----y--", "--------y--", "yyyy----yyy", "--------yyy"]);
}

/// What the reader says of a text that is this section.
fn said<T: Read>(text: &str) -> Vec<String> {
    let mut report = Report::new("example.yaml".into(), text.to_owned());
    let read = parse::parse(&mut report).and_then(|node| T::read(&node, &mut report));
    let mut said: Vec<String> = report.mistakes.iter().map(|problem| problem.message.clone()).collect();
    said.extend(read.is_none().then(|| "it is not read".to_owned()));
    said
}

#[test]
fn every_example_of_a_section_is_read() {
    macro_rules! check {
        ($($name:ident),+ $(,)?) => { $(
            for example in $name::SECTION.examples {
                assert!(said::<$name>(example).is_empty(), "{}: {example}: {:?}", stringify!($name), said::<$name>(example));
            }
        )+ };
    }
    check![
        RawAfter,
        RawAtMost,
        RawAuth,
        RawCollect,
        RawCommand,
        RawConnector,
        RawEntry,
        RawEntryOutbox,
        RawGrant,
        RawHold,
        RawHttpGrant,
        RawLimits,
        RawMail,
        RawOAuth,
        RawOutbox,
        RawOwnPoll,
        RawPlugins,
        RawPoll,
        RawRetry,
        RawRoute,
        RawSecret,
        RawSecretName,
        RawServer,
        RawSource,
        RawSourceCommand,
        RawTarget,
        RawToken,
        RawUnless,
        RawWhen,
        RawWorkspace,
        RawExpected,
        RawTrial,
        RawTrialEvent,
        RawTrialMark,
        RawTrials,
    ];
}

#[test]
fn what_a_schema_is_made_of_is_written_in_the_order_of_its_declaration() {
    let text = serde_json::to_string(&schema(File::Workspace)).unwrap();
    let places: Vec<_> =
        ["\"members\":{", "\"connectors\":{", "\"routes\":{"].map(|key| text.find(key).unwrap()).into();
    assert!(places.is_sorted(), "{places:?}");
    let written = Written::of("{ b: [1, true, null, \"x: y\"], a: { c: \"22:00\" } }");
    assert_eq!(serde_json::to_string(&written).unwrap(), r#"{"b":[1,true,null,"x: y"],"a":{"c":"22:00"}}"#);
    assert_eq!(written.flow(), "{ b: [1, true, null, \"x: y\"], a: { c: \"22:00\" } }");
    let filled: Value = serde_json::to_value(written.to_fill_in()).unwrap();
    assert_eq!(filled, json!({ "b": ["${1:1}", "${2:true}", null, "${3:\"x: y\"}"], "a": { "c": "${4:\"22:00\"}" } }));
    assert_eq!(Written::of("\"$a}\"").to_fill_in(), Written::from("${1:\"\\$a\\}\"}"));
}
