//! `switchbell reload`: has the running server read its configuration again, and says what changed; or how it stands.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use super::ask::no_server;
use super::control::{Control, NoAnswer};
use super::inbox::open_places;
use super::output::{fail, print_for_people, print_json, tell};
use super::remote::Server;
use super::{COULD_NOT_RUN, FOUND_WRONG};
use crate::serve::shapes::{AsideJson, ChangeJson, MistakeJson, NotReloadedJson, ReloadedJson, StatusJson, TakenJson};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Reloads nothing, and shows how the configuration stands.
    #[arg(long)]
    status: bool,
    #[command(flatten)]
    server: Server,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(file: &Path, asked: &Arguments) -> ExitCode {
    match asked.server.control(file) {
        Ok(None) => {}
        Ok(Some(control)) => return ask(&control, asked).await.unwrap_or_else(|no_answer| no_server(&no_answer)),
        Err(code) => return code,
    }
    let places = match open_places(file) {
        Ok(places) => places,
        // The server would find the same mistakes, and go on with what it has.
        Err(_) if !asked.status => {
            tell("the configuration is not taken: a server that runs goes on with the one before");
            return ExitCode::from(FOUND_WRONG);
        }
        Err(code) => return code,
    };
    let control = match Control::of(&places.store) {
        Ok(control) => control,
        Err(no_answer) => return failed(&no_answer, &places.store),
    };
    ask(&control, asked).await.unwrap_or_else(|no_answer| failed(&no_answer, &places.store))
}

async fn ask(control: &Control, asked: &Arguments) -> Result<ExitCode, NoAnswer> {
    if asked.status {
        let status: StatusJson = control.get("/v1/configuration").await?;
        return Ok(said(asked.json, &status, &standing(&status), is_whole(&status)));
    }
    let came = control.post_or::<TakenJson, NotReloadedJson>("/v1/reload").await?;
    Ok(reload_said(asked.json, &ReloadedJson { taken: came.as_ref().ok().cloned(), refused: came.err() }))
}

fn failed(no_answer: &NoAnswer, store: &Path) -> ExitCode {
    match no_answer {
        NoAnswer::NotRunning => {
            let store = store.display();
            fail(format_args!(
                "no server runs on {store}: the next start reads the configuration; `switchbell check` judges it"
            ))
        }
        NoAnswer::Nothing(why) | NoAnswer::Refused(why) => fail(why),
    }
}

fn said(json: bool, value: &impl serde::Serialize, told: &str, is_good: bool) -> ExitCode {
    let printed = if json { print_json(value) } else { print_for_people(told) };
    if is_good { printed } else { ExitCode::from(FOUND_WRONG) }
}

fn reload_said(json: bool, reloaded: &ReloadedJson) -> ExitCode {
    match reloaded {
        ReloadedJson { taken: Some(taken), .. } => {
            let is_good = taken.aside.is_empty() && taken.older.is_empty() && taken.blocked.is_empty();
            said(json, reloaded, &told(taken), is_good)
        }
        ReloadedJson { refused: Some(refused), .. } => {
            let code = said(json, reloaded, &refusal(refused), false);
            if refused.mistakes.is_empty() { ExitCode::from(COULD_NOT_RUN) } else { code }
        }
        ReloadedJson { taken: None, refused: None } => fail("the server does not say what came of it"),
    }
}

fn is_whole(status: &StatusJson) -> bool {
    status.is_good && status.aside.is_empty() && status.older.is_empty()
}

fn count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// What changed.
fn told(taken: &TakenJson) -> String {
    let mut text = match taken.changes.len() {
        0 => "reloaded: nothing differs\n".to_owned(),
        changes => format!("reloaded: {}\n", count(changes, "change")),
    };
    text.extend(taken.changes.iter().map(change));
    let connectors = |how: &[&str]| {
        taken.changes.iter().filter(|change| change.what == "connector" && how.contains(&change.how.as_str())).count()
    };
    let (new, gone, changed) = (connectors(&["new"]), connectors(&["gone"]), connectors(&["changed"]));
    let kept = taken.connectors_kept;
    if new + gone + changed > 0 {
        push(&mut text, format_args!("connectors: {new} new, {gone} gone, {changed} changed, {kept} as before"));
    }
    for one in &taken.cancelled {
        let (deliveries, route) = (one.deliveries, &one.route);
        let what = if deliveries == 1 { "delivery was" } else { "deliveries were" };
        push(
            &mut text,
            format_args!(
                "{}: {deliveries} waiting {what} cancelled: {route} has no target {} now",
                one.workspace_id, one.target
            ),
        );
    }
    for one in &taken.unloaded {
        let instead = one.instead.as_ref().map_or_else(String::new, |version| format!(", {version} runs instead"));
        push(&mut text, format_args!("plugin {} does not run any more{instead}: {}", one.name, one.why));
    }
    text.push_str(&rest(&taken.needs_restart, &taken.aside, &taken.older));
    text.extend(taken.blocked.iter().map(|mistake| mistake.told.clone()));
    text.extend(taken.warnings.iter().map(|warning| format!("warning: {}", warning.told)));
    text
}

fn change(of: &ChangeJson) -> String {
    let ChangeJson { workspace_id, what, name, route, how } = of;
    let whose = workspace_id.as_ref().map_or_else(String::new, |name| format!("{name}: "));
    let what = if what == "key" { String::new() } else { format!("{what} ") };
    let of_route = route.as_ref().map_or_else(String::new, |route| format!(" of route {route}"));
    let name = name.as_ref().map_or_else(String::new, |name| format!("{name}{of_route} "));
    format!("  {whose}{what}{name}{how}\n")
}

/// What follows for the members of a workspace whose file is not followed.
const STILL_IN: &str =
    "who was taken out of the file is still let in until it is mended (`switchbell token revoke` shuts out at once)";

/// What is not followed.
fn rest(needs_restart: &[String], aside: &[AsideJson], older: &[AsideJson]) -> String {
    let mut text = String::new();
    if !needs_restart.is_empty() {
        push(&mut text, format_args!("a restart is needed to follow {}", needs_restart.join(", ")));
    }
    for one in older {
        let name = &one.workspace_id;
        push(&mut text, format_args!("workspace {name} goes on as it was before: its file has mistakes"));
        push(&mut text, format_args!("its members stay as before, too: {STILL_IN}"));
        text.push_str(&mistakes(&one.mistakes, one.omitted));
    }
    for one in aside {
        let name = &one.workspace_id;
        push(
            &mut text,
            format_args!("workspace {name} is set aside, and what it is owed waits: its file has mistakes"),
        );
        text.push_str(&mistakes(&one.mistakes, one.omitted));
    }
    text
}

fn mistakes(of: &[MistakeJson], omitted: usize) -> String {
    let mut text: String = of.iter().map(|mistake| mistake.told.as_str()).collect();
    if omitted > 0 {
        push(&mut text, format_args!("and {omitted} more"));
    }
    text
}

fn refusal(of: &NotReloadedJson) -> String {
    let found = of.mistakes.len() + of.omitted;
    let why = if found > 0 { mistakes(&of.mistakes, of.omitted) } else { format!("{}\n", of.why) };
    let count = if found > 0 { format!("{}: ", count(found, "mistake")) } else { String::new() };
    format!("{why}{count}nothing was changed, and what ran goes on\n")
}

/// How the configuration stands.
fn standing(status: &StatusJson) -> String {
    let mut text = String::new();
    let at = status.taken_at.as_deref().unwrap_or("never");
    push(&mut text, format_args!("taken     {at}"));
    if let (Some(at), Some(refused)) = (&status.refused_at, &status.refused) {
        push(&mut text, format_args!("refused   {at}"));
        text.push_str(&refusal(refused));
    }
    text.push_str(&rest(&status.needs_restart, &status.aside, &status.older));
    text
}

/// A line.
fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::shapes::{CancelledJson, UnloadedJson};

    fn mistake(told: &str) -> MistakeJson {
        MistakeJson {
            file: "acme.yaml".into(),
            line: Some(1),
            column: Some(1),
            path: String::new(),
            message: String::new(),
            told: format!("{told}\n"),
        }
    }

    fn changed(workspace: Option<&str>, what: &str, name: Option<&str>, route: Option<&str>, how: &str) -> ChangeJson {
        let text = |text: Option<&str>| text.map(str::to_owned);
        ChangeJson {
            workspace_id: text(workspace),
            what: what.to_owned(),
            name: text(name),
            route: text(route),
            how: how.to_owned(),
        }
    }

    #[test]
    fn what_changed_is_told_line_by_line() {
        assert_eq!(told(&TakenJson::default()), "reloaded: nothing differs\n");
        let taken = TakenJson {
            changes: vec![
                changed(None, "key", Some("plugins.grants"), None, "changed"),
                changed(None, "secret", Some("ops"), None, "new"),
                changed(Some("acme"), "connector", Some("crm"), None, "changed"),
                changed(Some("acme"), "target", Some("page"), Some("news"), "gone"),
                changed(Some("globex"), "workspace", None, None, "gone"),
            ],
            connectors_kept: 2,
            cancelled: vec![CancelledJson {
                workspace_id: "acme".to_owned(),
                route: "news".to_owned(),
                target: "page".to_owned(),
                deliveries: 2,
            }],
            unloaded: vec![UnloadedJson {
                name: "slack".to_owned(),
                why: "it is not signed".to_owned(),
                instead: None,
            }],
            needs_restart: vec!["listen".to_owned(), "store".to_owned()],
            blocked: vec![mistake("acme.yaml:1:1: settings")],
            warnings: vec![mistake("acme.yaml:2:1: odd")],
            aside: vec![AsideJson {
                workspace_id: "bad".to_owned(),
                mistakes: vec![mistake("bad.yaml: no")],
                omitted: 3,
            }],
            older: Vec::new(),
        };
        let expected = "reloaded: 5 changes
  plugins.grants changed
  secret ops new
  acme: connector crm changed
  acme: target page of route news gone
  globex: workspace gone
connectors: 0 new, 0 gone, 1 changed, 2 as before
acme: 2 waiting deliveries were cancelled: news has no target page now
plugin slack does not run any more: it is not signed
a restart is needed to follow listen, store
workspace bad is set aside, and what it is owed waits: its file has mistakes
bad.yaml: no
and 3 more
acme.yaml:1:1: settings
warning: acme.yaml:2:1: odd
";
        assert_eq!(told(&taken), expected);
    }

    #[test]
    fn a_refusal_shows_every_mistake_and_that_nothing_changed() {
        let refused = NotReloadedJson { why: "w".to_owned(), mistakes: vec![mistake("x.yaml:1:1: no")], omitted: 1 };
        assert_eq!(
            refusal(&refused),
            "x.yaml:1:1: no\nand 1 more\n2 mistakes: nothing was changed, and what ran goes on\n"
        );
        let refused = NotReloadedJson { why: "the disk is full".to_owned(), mistakes: Vec::new(), omitted: 0 };
        assert_eq!(refusal(&refused), "the disk is full\nnothing was changed, and what ran goes on\n");
    }
}
