//! `switchbell check`: everything that is wrong with the configuration, at once, with the place and the remedy.

mod running;

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;

use super::output::{fail, harmless, print, print_json};
use super::remote::Server;
use super::table::count;
use super::{COULD_NOT_RUN, FOUND_WRONG};
use crate::clock::Clock;
use crate::config::{self, Config, PluginFolder, Reading, Secrets, Severity, process_environment};
use crate::findings::{Findings, Judge};
use crate::inbox::Inbox;
use crate::inbox::sqlite::SqliteInbox;
use crate::send::effect::Effects;
use crate::serve::inquiry::{CheckedJson, FindingJson, NotJudgedJson};
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
    server: Server,
}

pub(super) async fn run(file: &Path, asked: &Arguments) -> ExitCode {
    match asked.server.control(file) {
        Ok(None) => {}
        Ok(Some(control)) => return running::run(&control, asked).await,
        Err(code) => return code,
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
    let code = show(&CheckedJson::from(&found), asked, "the configuration is good");
    if found.is_unread { ExitCode::from(COULD_NOT_RUN) } else { code }
}

/// Prints what was found; the exit code by it. `good` is said where there is no error.
fn show(found: &CheckedJson, asked: &Arguments, good: &str) -> ExitCode {
    let printed = if asked.json { print_json(found) } else { print(told(found, good, is_coloured())) };
    let is_wrong = found.errors > 0 || (asked.deny_warnings && found.warnings > 0);
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
fn told(found: &CheckedJson, good: &str, is_coloured: bool) -> String {
    let mut text = String::new();
    let mut file: Option<&str> = None;
    for finding in &found.findings {
        if file.is_some_and(|file| file != finding.file) {
            text.push('\n');
        }
        file = Some(&finding.file);
        text.push_str(&one(finding, is_coloured));
    }
    if found.omitted > 0 {
        text.push_str(&format!("and {} more\n", found.omitted));
    }
    if file.is_some() {
        text.push('\n');
    }
    for NotJudgedJson { what, why } in &found.not_judged {
        text.push_str(&harmless(&format!("not judged: {what} ({why})\n")));
    }
    text + &format!("{}\n", verdict(found, good))
}

fn one(finding: &FindingJson, is_coloured: bool) -> String {
    let text = harmless(&finding.told());
    let word = &finding.severity;
    if !is_coloured {
        return text;
    }
    // Bold, and red or yellow.
    let colour = if word == Severity::Error.as_str() { "\u{1b}[1;31m" } else { "\u{1b}[1;33m" };
    text.replacen(&format!(" {word}:"), &format!(" {colour}{word}:\u{1b}[0m"), 1)
}

fn verdict(found: &CheckedJson, good: &str) -> String {
    let verdict = if found.errors == 0 { good.to_owned() } else { count(found.errors, "error") };
    match found.warnings {
        0 => verdict,
        warnings => format!("{verdict}, {}", count(warnings, "warning")),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::config::{Code, Place, Problem, SourceLine};

    fn problem(code: Code, file: &str, line: usize, message: &str) -> Problem {
        let source_line = Some(SourceLine { text: format!("line {line}"), caret: 5 });
        let (path, message) = ("routes[0].name".to_owned(), message.to_owned());
        Problem { code, file: file.into(), place: Some(Place { line, column: 6 }), path, message, source_line }
    }

    const GOOD: &str = "the configuration is good";

    fn found() -> CheckedJson {
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
        CheckedJson::from(&found)
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
        .assert_eq(&told(&found(), GOOD, false));
    }

    #[test]
    fn colours_mark_nothing_but_the_word_that_says_how_bad_it_is() {
        let (plain, coloured) = (told(&found(), GOOD, false), told(&found(), GOOD, true));
        assert!(coloured.contains(": \u{1b}[1;31merror:\u{1b}[0m routes") && coloured.contains("\u{1b}[1;33mwarning:"));
        assert_eq!(coloured.matches("\u{1b}[1;").count(), 4);
        let without =
            ["\u{1b}[1;31m", "\u{1b}[1;33m", "\u{1b}[0m"].iter().fold(coloured, |text, it| text.replace(it, ""));
        assert_eq!(without, plain);
    }

    #[test]
    fn a_good_configuration_is_called_good() {
        let mut found = Findings::none(Path::new("switchbell.yaml"));
        assert_eq!(told(&CheckedJson::from(&found), GOOD, false), "the configuration is good\n");
        found.warnings = vec![problem(Code::LongHold, "switchbell.yaml", 1, "a long hold")];
        assert!(told(&CheckedJson::from(&found), GOOD, false).ends_with("\nthe configuration is good, 1 warning\n"));
    }

    #[test]
    fn json_says_everything_that_people_are_told() {
        let json = serde_json::to_value(found()).unwrap();
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
