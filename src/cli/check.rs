//! `switchbell check`: everything that is wrong with the configuration, at once, with the place and the remedy.

mod running;

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;

use super::ask::Way;
use super::output::{fail, harmless, print, print_json};
use super::{COULD_NOT_RUN, FOUND_WRONG};
use crate::clock::Clock;
use crate::config::{self, Config, PluginFolder, Problem, Reading, Secrets, Severity, process_environment};
use crate::findings::{Findings, Judge, NotJudged};
use crate::inbox::Inbox;
use crate::inbox::sqlite::SqliteInbox;
use crate::send::effect::Effects;
use crate::wasm::catalog::depot;
use crate::wasm::{Catalog, PluginProblem, Sandbox, Settings};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Prints JSON.
    #[arg(long)]
    json: bool,
    /// Counts warnings as errors.
    #[arg(long)]
    deny_warnings: bool,
    /// Reads no value of a secret, for machines that do not have them.
    #[arg(long)]
    no_secrets: bool,
    /// Asks no plugin about its settings, for machines that do not have them.
    #[arg(long)]
    no_plugins: bool,
    #[command(flatten)]
    way: Way,
}

pub(super) async fn run(file: &Path, asked: &Arguments) -> ExitCode {
    if let Some(url) = &asked.way.server {
        return running::run(file, url, asked).await;
    }
    let reading = Reading {
        environment: &process_environment,
        secrets: if asked.no_secrets { Secrets::NotRead } else { Secrets::Read },
        plugins: if asked.no_plugins { PluginFolder::NotAsked } else { PluginFolder::MayBeAbsent },
    };
    let found = match config::load_with(file, &reading) {
        Ok(loaded) => {
            let (mut found, config) = Findings::of_files(loaded);
            match judged(&config, asked).await {
                Ok(judged) => found.join(judged),
                Err(code) => return code,
            }
            found
        }
        Err(problems) => Findings::of_problems(file, problems),
    };
    let printed = if asked.json { print_json(&FoundJson::from(&found)) } else { print(told(&found, is_coloured())) };
    if found.is_unread {
        return ExitCode::from(COULD_NOT_RUN);
    }
    let is_wrong = !found.mistakes.is_empty() || (asked.deny_warnings && !found.warnings.is_empty());
    if is_wrong { ExitCode::from(FOUND_WRONG) } else { printed }
}

/// What only the plugins, this machine and the inbox can tell, as far as they are there and are asked.
async fn judged(config: &Config, asked: &Arguments) -> Result<Findings, ExitCode> {
    let clock = Clock::system();
    let effects = Effects::new(config, &clock).map_err(fail)?;
    let mut left_out = Findings::none(&config.file);
    if asked.no_secrets {
        left_out.leave_out("the values of secrets", "--no-secrets");
    }
    let plugins = if asked.no_plugins {
        left_out.leave_out("the settings of targets", "--no-plugins");
        None
    } else if config.plugins.directory.exists() {
        Some(loaded(config).await?)
    } else {
        left_out.leave_out("the settings of targets", "the folder of plugins is not there");
        None
    };
    let inbox = match SqliteInbox::open_to_read(&config.store) {
        Ok(inbox) => Some(inbox),
        Err(error) => {
            left_out.leave_out("whether patterns match anything", error.to_string());
            None
        }
    };
    let judge = Judge {
        config,
        plugins: plugins.as_ref().map(|(catalog, problems)| (catalog, problems.as_slice())),
        effects: &effects,
        inbox: inbox.as_ref().map(|inbox| inbox as &dyn Inbox),
        now: clock.now(),
    };
    let mut found = judge.judge().await;
    found.join(left_out);
    Ok(found)
}

async fn loaded(config: &Config) -> Result<(Catalog, Vec<PluginProblem>), ExitCode> {
    let sandbox = Sandbox::new(Settings::new(config.plugins.limits)).map_err(fail)?;
    Ok(Catalog::running(&sandbox, &config.plugins, depot::root(&config.store)).await)
}

/// Whether what is printed is looked at by a person who has nothing against colours (<https://no-color.org>).
fn is_coloured() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    std::io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb
}

/// The findings file by file, what was not judged, and the counts.
fn told(found: &Findings, is_coloured: bool) -> String {
    let mut text = String::new();
    let mut file: Option<&Path> = None;
    for (severity, problem) in found.in_order() {
        if file.is_some_and(|file| file != problem.file) {
            text.push('\n');
        }
        file = Some(&problem.file);
        text.push_str(&one(severity, problem, is_coloured));
    }
    if found.omitted > 0 {
        text.push_str(&format!("and {} more\n", found.omitted));
    }
    if file.is_some() {
        text.push('\n');
    }
    for NotJudged { what, why } in &found.not_judged {
        text.push_str(&harmless(&format!("not judged: {what} ({why})\n")));
    }
    text + &format!("{}\n", verdict(found))
}

fn one(severity: Severity, problem: &Problem, is_coloured: bool) -> String {
    let word = severity.as_str();
    let text = harmless(&problem.told(word));
    if !is_coloured {
        return text;
    }
    // Bold, and red or yellow.
    let colour = if severity == Severity::Error { "\u{1b}[1;31m" } else { "\u{1b}[1;33m" };
    text.replacen(&format!(" {word}:"), &format!(" {colour}{word}:\u{1b}[0m"), 1)
}

fn verdict(found: &Findings) -> String {
    let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let errors = found.mistakes.len() + found.omitted;
    let verdict = if errors == 0 { "the configuration is good".to_owned() } else { count(errors, "error") };
    let warnings = found.warnings.len();
    if warnings == 0 { verdict } else { format!("{verdict}, {}", count(warnings, "warning")) }
}

/// What is printed with `--json` (docs/check.md).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FoundJson<'a> {
    findings: Vec<ProblemJson<'a>>,
    errors: usize,
    warnings: usize,
    omitted: usize,
    not_judged: Vec<NotJudgedJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProblemJson<'a> {
    severity: &'static str,
    code: &'static str,
    file: &'a Path,
    line: Option<usize>,
    column: Option<usize>,
    path: &'a str,
    message: &'a str,
    source_line: Option<&'a str>,
    caret: Option<usize>,
}

#[derive(Serialize)]
struct NotJudgedJson<'a> {
    what: &'a str,
    why: &'a str,
}

impl<'a> From<&'a Findings> for FoundJson<'a> {
    fn from(found: &'a Findings) -> Self {
        Self {
            findings: found.in_order().into_iter().map(ProblemJson::from).collect(),
            errors: found.mistakes.len() + found.omitted,
            warnings: found.warnings.len(),
            omitted: found.omitted,
            not_judged: found.not_judged.iter().map(|it| NotJudgedJson { what: &it.what, why: &it.why }).collect(),
        }
    }
}

impl<'a> From<(Severity, &'a Problem)> for ProblemJson<'a> {
    fn from((severity, problem): (Severity, &'a Problem)) -> Self {
        Self {
            severity: severity.as_str(),
            code: problem.code.as_str(),
            file: &problem.file,
            line: problem.place.map(|place| place.line),
            column: problem.place.map(|place| place.column),
            path: &problem.path,
            message: &problem.message,
            source_line: problem.source_line.as_ref().map(|line| line.text.as_str()),
            caret: problem.source_line.as_ref().map(|line| line.caret),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::config::{Code, Place, SourceLine};

    fn problem(code: Code, file: &str, line: usize, message: &str) -> Problem {
        let source_line = Some(SourceLine { text: format!("line {line}"), caret: 5 });
        let (path, message) = ("routes[0].name".to_owned(), message.to_owned());
        Problem { code, file: file.into(), place: Some(Place { line, column: 6 }), path, message, source_line }
    }

    fn found() -> Findings {
        let mut found = Findings::none(Path::new("switchbell.yaml"));
        found.mistakes = vec![
            problem(Code::UnknownPlugin, "workspaces/acme.yaml", 7, "unknown plugin \"slak\""),
            problem(Code::BadValue, "workspaces/acme.yaml", 3, "steers a\u{1b}[31m terminal"),
        ];
        found.warnings = vec![
            problem(Code::UnusedSecret, "switchbell.yaml", 9, "nobody uses it"),
            problem(Code::LongHold, "workspaces/acme.yaml", 5, "a long hold"),
        ];
        found.omitted = 2;
        found.leave_out("the settings of targets", "--no-plugins");
        found
    }

    #[test]
    fn findings_are_told_file_by_file_from_top_to_bottom_with_the_counts_last() {
        expect![[r#"
            switchbell.yaml:9:6: warning: routes[0].name: nobody uses it [unused-secret]
                9 | line 9
                  |      ^

            workspaces/acme.yaml:3:6: error: routes[0].name: steers a\u{1b}[31m terminal [bad-value]
                3 | line 3
                  |      ^
            workspaces/acme.yaml:5:6: warning: routes[0].name: a long hold [long-hold]
                5 | line 5
                  |      ^
            workspaces/acme.yaml:7:6: error: routes[0].name: unknown plugin "slak" [unknown-plugin]
                7 | line 7
                  |      ^
            and 2 more

            not judged: the settings of targets (--no-plugins)
            4 errors, 2 warnings
        "#]]
        .assert_eq(&told(&found(), false));
    }

    #[test]
    fn colours_mark_nothing_but_the_word_that_says_how_bad_it_is() {
        let (plain, coloured) = (told(&found(), false), told(&found(), true));
        assert!(coloured.contains(": \u{1b}[1;31merror:\u{1b}[0m routes") && coloured.contains("\u{1b}[1;33mwarning:"));
        assert_eq!(coloured.matches("\u{1b}[1;").count(), 4);
        let without =
            ["\u{1b}[1;31m", "\u{1b}[1;33m", "\u{1b}[0m"].iter().fold(coloured, |text, it| text.replace(it, ""));
        assert_eq!(without, plain);
    }

    #[test]
    fn a_good_configuration_is_called_good() {
        let mut found = Findings::none(Path::new("switchbell.yaml"));
        assert_eq!(told(&found, false), "the configuration is good\n");
        found.warnings = vec![problem(Code::LongHold, "switchbell.yaml", 1, "a long hold")];
        assert!(told(&found, false).ends_with("\nthe configuration is good, 1 warning\n"));
    }

    #[test]
    fn json_says_everything_that_people_are_told() {
        let json = serde_json::to_value(FoundJson::from(&found())).unwrap();
        assert_eq!(
            json["findings"][0],
            serde_json::json!({
                "severity": "warning", "code": "unused-secret", "file": "switchbell.yaml", "line": 9, "column": 6,
                "path": "routes[0].name", "message": "nobody uses it", "sourceLine": "line 9", "caret": 5,
            })
        );
        let severities: Vec<_> = json["findings"].as_array().unwrap().iter().map(|it| it["severity"].clone()).collect();
        assert_eq!(severities, ["warning", "error", "warning", "error"]);
        assert_eq!((&json["errors"], &json["warnings"], &json["omitted"]), (&4.into(), &2.into(), &2.into()));
        assert_eq!(json["notJudged"][0]["why"], "--no-plugins");
    }
}
