//! A program that writes the value of a secret.

use super::super::node::{Kind, Node};
use super::super::raw::RawSourceCommand;
use super::super::read::{Map, Named, NonEmpty, Placed, Read, Text, refuse};
use super::super::schema::{File, Schema, Written};
use super::super::source::Report;

/// The program with its arguments as a list, or a mapping of `run` and `env`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::config) struct CommandEntry {
    /// The program and its arguments; never empty, and nothing in it holds NUL.
    pub run: Vec<String>,
    /// The variables it is started with besides the few inherited ones; none holds NUL.
    pub env: Vec<(String, String)>,
}

impl Read for CommandEntry {
    const WANTED: &'static str = "a program and its arguments, as a list";

    /// A program is never run with a part of what is written.
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        let mistakes = report.mistakes.len() + report.omitted;
        let (run, env) = match &node.kind {
            Kind::List(_) => (Vec::read(node, report)?, Vec::new()),
            Kind::Mapping(_) => {
                let raw = RawSourceCommand::read(node, report)?;
                (raw.run?.value, raw.env.map_or_else(Vec::new, |Placed { value: Map(env), .. }| env))
            }
            Kind::Scalar(_) | Kind::Reported => {
                let remedy = "write `[PROGRAM, ARGUMENT]`, or `{ run: [PROGRAM, ARGUMENT], env: { NAME: value } }`";
                refuse(node, "a list or a mapping", remedy, report);
                return None;
            }
        };
        let run = texts(&run, node, report)?;
        let env = variables(env, report)?;
        (report.mistakes.len() + report.omitted == mistakes).then_some(Self { run, env })
    }

    fn schema(file: File) -> Schema {
        let list = Schema { examples: vec![Written::of("[pass, show, NAME]")], ..NonEmpty::<Text>::schema(file) };
        Schema::either(Self::WANTED, list, RawSourceCommand::schema(file))
    }
}

fn texts(run: &[Placed<Text>], node: &Node, report: &mut Report) -> Option<Vec<String>> {
    if run.first().is_none_or(|program| program.0.is_empty()) {
        report.mistake(&node.at, "a program is missing: write a list such as `[pass, show, NAME]`");
        return None;
    }
    if let Some(text) = run.iter().find(|text| text.0.contains('\0')) {
        report.mistake(&text.at, "an argument cannot hold the character NUL");
        return None;
    }
    Some(run.iter().map(|text| text.0.clone()).collect())
}

fn variables(env: Vec<Named<super::VariableName, Text>>, report: &mut Report) -> Option<Vec<(String, String)>> {
    let mut found = Vec::new();
    for Named { name, value, .. } in env {
        let value = value?;
        if value.0.contains('\0') {
            report.mistake(&value.at, "a variable cannot hold the character NUL");
            return None;
        }
        found.push((name.0, value.value.0));
    }
    Some(found)
}
