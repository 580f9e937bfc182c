//! The limits that documents name are those of the code, and the largest settings are taken.

use std::fs;

use crate::support::{Sink, World, operator, prepared, root, run, workspace};

/// A row of the table of limits, and what in the code it comes from: files and the lines that declare it.
const ROWS: &[(&str, &[(&str, &str)])] = &[
    (
        "memory of an instance, all its memories together | 32 MiB",
        &[("src/config/plugins.rs", "memory_bytes_max: 32 << 20,")],
    ),
    (
        "CPU time of a call: `describe`, `check` or a step | 100 ms",
        &[("src/config/plugins.rs", "step_cpu_max: Duration::from_millis(100),")],
    ),
    ("steps of an attempt, those before a wait included | 64", &[("src/config/plugins.rs", "steps_max: 64,")]),
    (
        "time of an attempt, waiting included | 24 h",
        &[("src/config/plugins.rs", "attempt_time_max: Duration::from_secs(24 * 3600),")],
    ),
    ("the file | 32 MiB", &[(SANDBOX, "PLUGIN_BYTES_MAX: usize = 32 << 20;")]),
    (
        "compiling it, in a server: memory | 4 GiB of address space",
        &[(SANDBOX, "COMPILE_MEMORY_BYTES_MAX: u64 = 4 << 30;")],
    ),
    (
        "compiling it, in a server: CPU time, and time in all | 120 s, 300 s",
        &[
            (SANDBOX, "COMPILE_CPU_MAX: Duration = Duration::from_secs(120);"),
            (SANDBOX, "COMPILE_TIME_MAX: Duration = Duration::from_secs(300);"),
        ],
    ),
    ("compiling it, in a server: the compiled code | 256 MiB", &[(SANDBOX, "CODE_BYTES_MAX: usize = 256 << 20;")]),
    (
        "core instances, memories and tables of a component | 64, 4 and 20",
        &[
            (SANDBOX, "CORE_INSTANCES_MAX: u32 = 64;"),
            (SANDBOX, "MEMORIES_MAX: u32 = 4;"),
            (SANDBOX, "TABLES_MAX: u32 = 20;"),
        ],
    ),
    ("elements of a table | 20000", &[(SANDBOX, "TABLE_ELEMENTS_MAX: usize = 20_000;")]),
    ("stack | 512 KiB", &[(SANDBOX, "STACK_BYTES_MAX: usize = 512 << 10;")]),
    ("handles of WASI streams and pollables | 1000", &[(SANDBOX, "HANDLES_MAX: usize = 1000;")]),
    ("bytes written to a stream in one call | 64 KiB", &[(SANDBOX, "WRITE_BYTES_MAX: usize = 64 << 10;")]),
    ("random bytes in one call | 64 KiB", &[(SANDBOX, "RANDOM_BYTES_MAX: u64 = 64 << 10;")]),
    ("what is kept of standard error in a step | 4 KiB", &[(SANDBOX, "STDERR_BYTES_MAX: usize = 4 << 10;")]),
    ("the answer of `describe` | 256 KiB", &[(SANDBOX, "DESCRIPTION_BYTES_MAX: usize = 256 << 10;")]),
    ("settings of a target | 64 KiB", &[("src/config/values/settings.rs", "SETTINGS_BYTES_MAX: usize = 64 << 10;")]),
    ("problems that `check` names | 100", &[(ACTION, "PROBLEMS_MAX: usize = 100;")]),
    (
        "lanes of a destination, bytes of a lane's key | 8, 200",
        &[(ACTION, "LANES_MAX: usize = 8;"), (ACTION, "LABEL_LENGTH_MAX: usize = 200;")],
    ),
    (
        "notifications and bytes of a digest | 100, 256 KiB",
        &[
            ("src/route/timing.rs", "DIGEST_BYTES_MAX: u64 = 256 * 1024;"),
            ("src/route/timing.rs", "DIGEST_MOST: u32 = 100;"),
        ],
    ),
    (
        "an answer of the plugin, all its texts and lists together | 2 MiB",
        &[(SANDBOX, "ACTION_BYTES_MAX: usize = 2 << 20;")],
    ),
    ("a request's URL | 8 KiB", &[(ACTION, "URL_BYTES_MAX: usize = 8 << 10;")]),
    (
        "a request's headers | 64, 16 KiB together",
        &[(ACTION, "HEADERS_MAX: usize = 64;"), ("src/send/effect/guard.rs", "HEADER_BYTES_MAX: usize = 16 * 1024;")],
    ),
    ("a request's body, a mail's text, a tool's arguments | 1 MiB", &[(ACTION, "BODY_BYTES_MAX: usize = 1 << 20;")]),
    ("signatures of a request, steps to derive one's key | 8", &[(ACTION, "SIGNATURES_MAX: usize = 8;")]),
    (
        "parts of a signed message, bytes of each | 64, 64 KiB",
        &[(ACTION, "PARTS_MAX: usize = 64;"), (ACTION, "PIECE_BYTES_MAX: usize = 64 << 10;")],
    ),
    ("recipients of a mail | 100", &[(ACTION, "RECIPIENTS_MAX: usize = 100;")]),
    ("a mail's subject, thread and each address | 2 KiB", &[(ACTION, "LINE_BYTES_MAX: usize = 2 << 10;")]),
    (
        "names: a method, a connector, a tool, a kind, a marker, a key | 500 bytes",
        &[(ACTION, "WORD_BYTES_MAX: usize = 500;")],
    ),
    ("an `extras` object | 64 KiB", &[(ACTION, "EXTRAS_BYTES_MAX: usize = 64 << 10;")]),
    ("what `remember` and `resume` keep, each | 64 KiB", &[(ACTION, "KEPT_BYTES_MAX: usize = 64 << 10;")]),
    ("an HTTP answer's body | 256 KiB", &[(HTTP, "ANSWER_BYTES_MAX: usize = 256 * 1024;")]),
    (
        "an HTTP answer's headers | 100, 64 KiB together",
        &[
            ("src/send/effect/http/message.rs", "HEADERS_MAX: usize = 100;"),
            ("src/send/effect/http/exchange.rs", "HEAD_BYTES_MAX: usize = 64 * 1024;"),
        ],
    ),
    ("time to an HTTP answer | 30 s", &[(HTTP, "ANSWER_TIME_MAX: Duration = Duration::from_secs(30);")]),
    ("the arguments of a tool that is called | 256 KiB", &[(TOOL, "ARGUMENTS_BYTES_MAX: usize = 256 * 1024;")]),
    ("a tool's name | 256 bytes", &[(TOOL, "TOOL_BYTES_MAX: usize = 256;")]),
    ("a tool's answer | 256 KiB", &[(TOOL, "CONTENT_BYTES_MAX: usize = 256 * 1024;")]),
    (
        "time to a tool's answer, once its server is connected | 60 s",
        &[(TOOL, "TIME_MAX: Duration = Duration::from_secs(60);")],
    ),
    (
        "calls of one connector's tools at once | 16",
        &[
            ("src/fetch/mcp/link.rs", "CALLS_MAX: u32 = 16;"),
            ("src/fetch/mcp/tools.rs", "READY_TIME_MAX: Duration = Duration::from_secs(40);"),
        ],
    ),
    (
        "a note, reason or reference | 2000 characters, 500 of which are kept",
        &[(ACTION, "NOTE_LENGTH_MAX: usize = 2_000;"), ("src/send/attempt/run.rs", "REASON_CHARS_MAX: usize = 500;")],
    ),
];

const SANDBOX: &str = "src/wasm/limits.rs";
const ACTION: &str = "src/wasm/action.rs";
const HTTP: &str = "src/send/effect/http/mod.rs";
const TOOL: &str = "src/send/effect/tool.rs";

fn text(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap()
}

#[test]
fn every_limit_that_the_documents_name_is_that_of_the_code() {
    let document = text("docs/plugins.md");
    let (_, table) = document.split_once("| what | at most | beyond |\n| --- | --- | --- |\n").unwrap();
    let shown: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
    assert_eq!(shown.len(), ROWS.len(), "each row of the table is compared with the code");
    for ((row, sources), shown) in ROWS.iter().zip(shown) {
        assert!(shown.starts_with(&format!("| {row} |")), "docs/plugins.md says {shown:?}, the code {row:?}");
        for (file, line) in *sources {
            assert!(text(file).contains(line), "{row}: {file} does not say {line:?} any more: correct both");
        }
    }
}

#[tokio::test]
async fn the_largest_settings_are_taken_and_larger_ones_are_refused() {
    let sink = Sink::start().await;
    let world = World::new(&sink, "{ outbox: { run: [cat], workspaces: [acme] } }", &World::stdio_connector());
    fs::copy(prepared("dist/guests/scripted.wasm", "guests"), world.path("plugins/scripted.wasm")).unwrap();
    world.write("switchbell.yaml", &operator(&sink, "{ outbox: { run: [cat], workspaces: [acme] } }"));
    // The bytes of texts, keys and pointers count: `script`, `/script`, and one for each of the two values.
    let around = "script".len() + "/script".len() + 2;
    for (bytes, code, says) in
        [((64 << 10) - around, 0, "the configuration is good"), ((64 << 10) - around + 1, 1, "at most 65536 bytes")]
    {
        let with = format!("with: {{ script: \"{}\" }}", "d".repeat(bytes));
        let text = workspace(&World::stdio_connector(), "{}").replace("plugin: slack", "plugin: scripted");
        world.write("workspaces/acme.yaml", &text.replace("with: { webhook: { secret: slack-ops } }", &with));
        let (found, out, error) = run(&world, &sink, &["check"]);
        assert!(found == code && out.contains(says), "{bytes} bytes: {out}{error}");
    }
}
