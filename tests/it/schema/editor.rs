//! What a person sees who edits the files: yaml-language-server itself, driven over its standard input and output (LSP 3.17).

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{examples, printed};
use crate::support::prepared;

/// The server, in a folder with both schemas as the documents tell how to make them.
struct Editor {
    server: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// What came while something else was waited for.
    kept: VecDeque<Value>,
    folder: TempDir,
    last_id: u64,
}

impl Editor {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("workspaces")).unwrap();
        fs::write(folder.path().join(".schema.json"), printed(&["server"])).unwrap();
        fs::write(folder.path().join("workspaces/.schema.json"), printed(&["workspace"])).unwrap();
        prepared("tests/peers/editor/node_modules/.ready", "deps");
        let program = prepared("tests/peers/editor/node_modules/yaml-language-server/bin/yaml-language-server", "deps");
        let mut command = Command::new("node");
        command.arg(program).arg("--stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn().unwrap();
        let (to, from) = (server.stdin.take().unwrap(), BufReader::new(server.stdout.take().unwrap()));
        let mut editor = Self { server, to, from, kept: VecDeque::new(), folder, last_id: 0 };
        let can = json!({
            "textDocument": {
                "completion": { "completionItem": { "snippetSupport": true } },
                "hover": { "contentFormat": ["markdown"] },
            },
            "workspace": { "configuration": true },
        });
        editor.ask("initialize", json!({ "processId": null, "rootUri": null, "capabilities": can }));
        editor.tell("initialized", json!({}));
        editor
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.to, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        self.to.flush().unwrap();
    }

    fn tell(&mut self, method: &str, parameters: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": parameters }));
    }

    /// The answer to a request.
    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }));
        let mut answer = self.until(|message| message["id"] == id && message.get("method").is_none());
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// The next message that is wanted. What the server asks meanwhile is answered.
    fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&wanted) {
            return self.kept.remove(at).unwrap();
        }
        loop {
            let message = self.receive();
            if wanted(&message) {
                return message;
            }
            match (message.get("id"), message["method"].as_str()) {
                (Some(id), Some(method)) => {
                    let result = if method == "workspace/configuration" { settings(&message) } else { Value::Null };
                    self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
                }
                _ => self.kept.push_back(message),
            }
        }
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "the language server has ended");
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", number)) => length = number.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut bytes = vec![0; length];
        self.from.read_exact(&mut bytes).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    /// Opens a file with this text in the folder.
    fn open(&mut self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        let text = format!("# yaml-language-server: $schema=.schema.json\n{text}");
        fs::write(&path, &text).unwrap();
        self.show(&path, &text);
        path
    }

    fn show(&mut self, path: &Path, text: &str) {
        let document = json!({ "uri": uri(path), "languageId": "yaml", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
    }

    /// What is underlined in a file that was opened.
    fn complaints(&mut self, path: &Path) -> Vec<Complaint> {
        let uri = uri(path);
        let about = |message: &Value| {
            message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == uri.as_str()
        };
        let told = self.until(about);
        let text = fs::read_to_string(path).unwrap();
        let complaint = |diagnostic: &Value| {
            let at = &diagnostic["range"]["start"];
            let line = text.lines().nth(usize::try_from(at["line"].as_u64().unwrap()).unwrap()).unwrap_or_default();
            let rest = line.chars().skip(usize::try_from(at["character"].as_u64().unwrap()).unwrap());
            Complaint { at: rest.collect(), message: diagnostic["message"].as_str().unwrap().to_owned() }
        };
        told["params"]["diagnostics"].as_array().unwrap().iter().map(complaint).collect()
    }

    /// Asks about the place behind a text of an opened file.
    fn at(&mut self, method: &str, path: &Path, behind: &str) -> Value {
        let text = fs::read_to_string(path).unwrap();
        let before = &text[..text.find(behind).unwrap() + behind.len()];
        let line = before.matches('\n').count();
        let character = before.chars().rev().take_while(|c| *c != '\n').count();
        let place = json!({ "line": line, "character": character });
        self.ask(method, json!({ "textDocument": { "uri": uri(path) }, "position": place }))
    }

    fn hover(&mut self, path: &Path, behind: &str) -> String {
        let said = self.at("textDocument/hover", path, behind);
        said["contents"]["value"].as_str().unwrap_or_default().to_owned()
    }

    /// What is proposed: the label of each and what it writes.
    fn proposals(&mut self, path: &Path, behind: &str) -> Vec<(String, String)> {
        let said = self.at("textDocument/completion", path, behind);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let write = |item: &Value| {
            let edit = text(&item["textEdit"]["newText"]);
            if edit.is_empty() { text(&item["insertText"]) } else { edit }
        };
        said["items"].as_array().unwrap().iter().map(|item| (text(&item["label"]), write(item))).collect()
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// What a person reads of something that is underlined: the text from there on, and the message.
#[derive(Debug)]
struct Complaint {
    at: String,
    message: String,
}

/// What an editor has set: nothing is fetched from anywhere.
fn settings(asked: &Value) -> Value {
    let set = |item: &Value| match item["section"].as_str() {
        Some("yaml") => json!({
            "validate": true, "hover": true, "completion": true, "schemaStore": { "enable": false },
        }),
        _ => json!({}),
    };
    asked["params"]["items"].as_array().unwrap().iter().map(set).collect()
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

#[test]
fn an_editor_has_nothing_to_say_of_the_examples() {
    let mut editor = Editor::start();
    for (file, _) in examples() {
        editor.show(&file, &fs::read_to_string(&file).unwrap());
        let complaints = editor.complaints(&file);
        assert!(complaints.is_empty(), "{}: {complaints:?}", file.display());
    }
}

/// Each of these is said of what begins so, and nothing else is said.
fn check(editor: &mut Editor, name: &str, text: &str, expected: &[(&str, &str)]) {
    let path = editor.open(name, text);
    let complaints = editor.complaints(&path);
    for (at, message) in expected {
        let is_there = complaints.iter().any(|found| found.at.starts_with(at) && found.message.contains(message));
        assert!(is_there, "{at}: {message}: {complaints:#?}");
    }
    assert_eq!(complaints.len(), expected.len(), "{complaints:#?}");
}

#[test]
fn an_editor_says_what_is_wrong_with_a_workspace_and_where() {
    let text = "members: { admin@example.com: admn }
connectors:
  Registrar: { command: registrar, ceiling: loud, notifications: { resource: \"ui://x\" } }
routes:
  - name: a
    owner: admin@example.com
    when: { name: [\"a b\"], source: 5, level: high, colour: red }
    deliver:
      - plugin: slack
        with: { a: { secret: x, b: 1 }, c: [\"${X}\"] }
        after: 15
        unless: { acknowledged: nobody }
        hold: { from: \"22:00\", to: \"7:00\", zone: Europe/Berlin, tz: x }
        collect: { by: subject }
        at_most: { count: 5000, per: hour }
        quiet_hours: { from: x }
      - plugin: mail
        after: { wiat: 15m }
consumers: { a: { level: urgent } }
";
    let expected = [
        ("admn", "a role (admin or member) is wanted here"),
        ("Registrar", "a name is wanted here"),
        ("loud", "a level (info, attention or urgent) is wanted here"),
        ("\"ui://x\"", "the URI of an outbox such as `acme://notifications` is wanted here"),
        ("\"a b\"", "a pattern such as `domain.*` is wanted here"),
        ("5, level", "a text or pattern such as `*.example`, or a list of such, is wanted here"),
        ("high", "a level (info, attention or urgent) is wanted here"),
        ("colour", "Property colour is not allowed."),
        ("b: 1", "a secret is written `{ secret: NAME }`, with nothing beside it"),
        ("\"${X}\"", "variables belong to the operator's switchbell.yaml"),
        ("15", "a duration such as `15m`, or a mapping with `wait` is wanted here"),
        ("nobody", "`person` or `anyone` is wanted here"),
        ("\"7:00\"", "a time of day such as `\"22:00\"` is wanted here"),
        ("x }", "the time zone is written `zone: Europe/Berlin`"),
        ("collect", "Missing property \"wait\"."),
        ("5000", "Value is above the maximum of 1000."),
        ("hour", "a duration such as `15m` or `1h30m` is wanted here"),
        ("{ from: x }", "quiet hours are written `hold: {"),
        ("after: { wiat", "Missing property \"wait\"."),
        ("wiat", "Property wiat is not allowed."),
        ("urgent", "conditions stand inside `when`"),
    ];
    check(&mut Editor::start(), "workspaces/acme.yaml", text, &expected);
}

#[test]
fn an_editor_says_what_is_wrong_with_the_operators_file_and_takes_variables() {
    let text = "listen: localhost:7420
poll:
  base: 60
  floor: ${FLOOR:-15s}
  ceiling: ${CEILING
  max_events: ${MOST}
  chained_reads: 100
commands:
  ${NAME}: { run: [x] }
plugins:
  gate: ${GATE:-strict}
  grants: { slack: { http: [\"a b\", { hots: x }, 5, \"http://${HOST}\"], mail: maybe } }
  pins: { slack: \"sha256:00\" }
secrets:
  a: { command: pass, in: headr, weak: \"${WEAK}\" }
";
    let expected = [
        ("localhost:7420", "an address such as `127.0.0.1:7420` is wanted here"),
        ("60", "a duration such as `15m` or `1h30m` is wanted here"),
        ("${CEILING", "a duration such as `15m` or `1h30m` is wanted here"),
        ("100", "Value is above the maximum of 20."),
        ("${NAME}", "a name is wanted here"),
        ("\"a b\"", "a host such as `hooks.example.com` is wanted here"),
        ("{ hots", "Missing property \"host\"."),
        ("hots", "Property hots is not allowed."),
        ("5,", "a host such as `hooks.example.com`, or a mapping with `host` is wanted here"),
        ("maybe", "`true` or `false` is wanted here"),
        ("\"sha256:00\"", "a digest such as `sha256:…`"),
        ("pass,", "a program and its arguments, as a list is wanted here"),
        ("headr", "a place such as `url`, `header:NAME` or `connector` is wanted here"),
    ];
    check(&mut Editor::start(), "switchbell.yaml", text, &expected);
}

#[test]
fn an_editor_explains_the_key_under_the_pointer() {
    let mut editor = Editor::start();
    let text = "connectors: { registrar: { command: registrar, ceiling: info } }
routes:
  - name: a
    owner: admin@example.com
    deliver: [{ plugin: slack, hold: { from: \"22:00\", to: \"07:00\", zone: UTC }, after: { wait: 15m } }]
";
    let path = editor.open("workspaces/acme.yaml", text);
    for (at, parts) in [
        ("registrar: { com", ["The name of a program that the operator declares.", "registrar"]),
        ("ceil", ["The highest level that what it says may have.", "* `attention`: Somebody should look."]),
        (
            "hol",
            [
                "Its quiet hours, every day.",
                "`{ from: \"22:00\", to: \"07:00\", zone: Europe/Berlin, except: urgent }`",
            ],
        ),
        ("zon", ["A name of the IANA time zone database, no offset", "Europe/Berlin"]),
        ("after: { wai", ["`1s` to `30d`", "15m"]),
    ] {
        let said = editor.hover(&path, at);
        assert!(parts.iter().all(|part| said.contains(part)), "{at}: {said}");
    }
}

#[test]
fn an_editor_proposes_keys_values_and_whole_sections() {
    let mut editor = Editor::start();
    let text = "connectors:
  a:
    ceiling: info
  
routes:
  - name: a
    deliver:
      - plugin: slack
        hold: 
        after: 
        
      - plugin: mail
        order: 
        
        collect: 
  - 
";
    let path = editor.open("workspaces/acme.yaml", text);
    for (behind, label, writes) in [
        (
            "info\n  ",
            "entry",
            "${1:acme}:\n  command: ${2:registrar}\n  notifications:\n    resource: ${3:acme://notifications}\n  \
             ceiling: ${4:attention}",
        ),
        ("hold: ", "hold", "from: ${1:\"22:00\"}\n  to: ${2:\"07:00\"}\n  zone: ${3:Europe/Berlin}"),
        ("after: ", "15m", "15m"),
        ("after: ", "after", "wait: ${1:15m}\n  except: ${2:urgent}"),
        ("after: \n        ", "unless", "unless: "),
        ("after: \n        ", "at_most", "at_most:\n  count: $1\n  per: $2\n  except: ${3:urgent}"),
        ("order: ", "strict", "strict"),
        ("collect: ", "collect", "by: ${1:subject}\n  wait: ${2:5m}"),
        (
            "collect: \n  - ",
            "route",
            "name: ${1:domain-news}\n  owner: ${2:admin@example.com}\n  when:\n    name: ${3:\"domain.*\"}\n    \
             level: ${4:attention}\n  deliver:\n    - plugin: ${5:slack}\n      with:\n        webhook:\n          \
             secret: ${6:slack-ops}",
        ),
    ] {
        let found = editor.proposals(&path, behind);
        let is_there = found.iter().any(|(found, text)| found == label && text.trim_start() == writes);
        assert!(is_there, "{behind:?} proposes no {label} {writes:?}: {found:#?}");
        // Keys that are only there to say what to write instead, and what is no text.
        let is_for_nobody = |label: &str| ["quiet_hours", "digest", "consumers", "[object Object]"].contains(&label);
        assert!(!found.iter().any(|(label, _)| is_for_nobody(label)), "{behind:?}: {found:#?}");
    }
}
