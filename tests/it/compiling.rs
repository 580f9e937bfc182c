//! Plugins compiled by the program itself, in a process of its own: what that may take, and that what it made is loaded.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use switchbell::config::Limits;
use switchbell::wasm::{CompileBounds, Compiler, LoadError, Plugin, Sandbox, Settings};

use crate::support::{PATIENCE, Server, Sink, World, prepared};

fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_switchbell").into()
}

fn puppet() -> Vec<u8> {
    std::fs::read(prepared("dist/guests/puppet.wasm", "guests")).unwrap()
}

/// Loads a plugin that the program compiles within these bounds.
async fn load(bytes: Vec<u8>, folder: Option<&Path>, bounds: CompileBounds) -> Result<Plugin, LoadError> {
    let settings = Settings {
        key: Some([7; 32]),
        compiler: Compiler::Child(program()),
        compiled: folder.map(Path::to_owned),
        compile_bounds: bounds,
        ..Settings::new(Limits::default())
    };
    Sandbox::new(settings).unwrap().load(bytes).await
}

/// A number as WebAssembly has it.
fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id], leb(content.len()).as_slice(), content].concat()
}

/// A component of so many functions, in each of which a piece of code stands so often.
fn repeated(functions: usize, piece: &[u8], times: usize) -> Vec<u8> {
    let body = [&[0], piece.repeat(times).as_slice(), &[0x0b]].concat();
    let body = [leb(body.len()), body].concat();
    let count = leb(functions);
    let module = [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, b"\x01\x60\0\0"),
        section(3, &[count.clone(), vec![0; functions]].concat()),
        section(5, b"\x01\0\x01"),
        section(10, &[count, body.repeat(functions)].concat()),
    ];
    [b"\0asm\x0d\0\x01\0".to_vec(), section(1, &module.concat())].concat()
}

/// A component whose compilation takes gigabytes: four functions that read and write a word half a million times.
fn memory_bomb() -> Vec<u8> {
    repeated(4, b"\x41\0\x41\0\x28\x02\0\x41\x01\x6a\x36\x02\0", 580_000)
}

/// One whose compilation takes twenty seconds: a function of many branches.
fn time_bomb() -> Vec<u8> {
    repeated(1, b"\x02\x40\x41\0\x28\x02\0\x0d\0\x41\0\x41\x01\x36\x02\0\x0b", 60_000)
}

#[tokio::test]
async fn what_a_process_of_its_own_compiled_is_loaded_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = load(puppet(), Some(folder.path()), CompileBounds::default()).await.unwrap();
    assert_eq!(plugin.manifest().name.as_str(), "puppet");
    let without = Settings {
        key: Some([7; 32]),
        compiled: Some(folder.path().to_owned()),
        compiler: Compiler::Child("/no/such/compiler".into()),
        ..Settings::new(Limits::default())
    };
    Sandbox::new(without).unwrap().load(puppet()).await.unwrap();
}

#[tokio::test]
async fn a_process_of_its_own_answers_as_a_thread_does() {
    let thread = Sandbox::new(Settings::new(Limits::default())).unwrap();
    let truncated = puppet()[..5000].to_vec();
    for (what, bytes) in [
        ("a truncated component", truncated),
        ("an unknown version", b"\0asm\x09\0\x01\0".to_vec()),
        ("an empty component", b"\0asm\x0d\0\x01\0".to_vec()),
        ("a wrong section", b"\0asm\x0d\0\x01\0\x63\0".to_vec()),
        ("a large memory", {
            let module = [b"\0asm\x01\0\0\0".to_vec(), section(5, b"\x01\0\x81\x80\x04")].concat();
            [b"\0asm\x0d\0\x01\0".to_vec(), section(1, &module)].concat()
        }),
        ("another world", std::fs::read(prepared("dist/guests/other-world.wasm", "guests")).unwrap()),
        ("a foreign import", std::fs::read(prepared("dist/guests/foreign-import.wasm", "guests")).unwrap()),
    ] {
        let expected = thread.load(bytes.clone()).await.unwrap_err();
        assert_eq!(load(bytes, None, CompileBounds::default()).await.unwrap_err(), expected, "{what}");
    }
}

#[tokio::test]
async fn each_limit_lets_a_plugin_pass_and_stops_what_takes_more() {
    let usual = CompileBounds::default();
    let memory = CompileBounds { memory_bytes_max: 512 << 20, ..usual };
    let cpu = CompileBounds { cpu_max: Duration::from_secs(1), ..usual };
    let code = CompileBounds { code_bytes_max: 100 << 10, ..usual };
    load(puppet(), None, CompileBounds { cpu_max: Duration::from_secs(30), ..memory }).await.unwrap();
    let smaller = "build it smaller (optimised for size, without what it does not need)";
    for (bytes, bounds, expected) in [
        (memory_bomb(), memory, "the memory limit of 512 MiB"),
        (time_bomb(), cpu, "the CPU time limit of 1 s"),
        (puppet(), code, "the code size limit of 100 KiB"),
    ] {
        let told = load(bytes, None, bounds).await.unwrap_err().to_string();
        assert_eq!(told, format!("compiling it passed {expected}: {smaller}"));
    }
    let brief = CompileBounds { time_max: Duration::from_millis(300), ..usual };
    let told = load(time_bomb(), None, brief).await.unwrap_err().to_string();
    assert!(told.starts_with("compiling it passed the time limit of 300 ms: "), "{told}");
}

#[tokio::test]
async fn a_compilation_that_is_refused_holds_up_no_other() {
    let bounds = CompileBounds { cpu_max: Duration::from_secs(1), ..CompileBounds::default() };
    let settings =
        Settings { compiler: Compiler::Child(program()), compile_bounds: bounds, ..Settings::new(Limits::default()) };
    let sandbox = Sandbox::new(settings).unwrap();
    let (bomb, good) = tokio::join!(sandbox.load(time_bomb()), sandbox.load(puppet()));
    assert!(bomb.is_err() && good.is_ok(), "{bomb:?} {good:?}");
}

/// The command that compiles, as the server runs it.
fn compiler() -> Child {
    let mut command = Command::new(program());
    command.args(["compile-plugin", "--plugin-memory-bytes-max=33554432", "--memory-bytes-max=4294967296"]);
    command.arg("--cpu-seconds-max=120").env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn it_limits_itself_before_it_reads_anything() {
    let mut compiler = compiler();
    let file = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", compiler.id())).unwrap();
    let limit = |name: &str| {
        let limits = file("limits");
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        line.strip_prefix(name).unwrap().split_whitespace().next().unwrap().to_owned()
    };
    let deadline = Instant::now() + PATIENCE;
    // The last that it sets.
    while limit("Max cpu time") != "120" {
        assert!(Instant::now() < deadline, "it never limits itself");
        std::thread::yield_now();
    }
    assert_eq!(limit("Max address space"), "4294967296");
    assert_eq!((limit("Max file size"), limit("Max core file size")), ("0".to_owned(), "0".to_owned()));
    assert_eq!(file("oom_score_adj").trim(), "1000");
    let stat = file("stat");
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    // Its niceness, the 19th field (proc_pid_stat(5)); two stand before the parenthesis.
    assert_eq!(fields.split(' ').nth(16), Some("10"));
    drop(compiler.stdin.take());
    compiler.wait().unwrap();
}

#[test]
fn it_ends_when_nobody_waits_any_more() {
    let mut compiler = compiler();
    let bomb = time_bomb();
    let mut input = compiler.stdin.take().unwrap();
    input.write_all(&(bomb.len() as u64).to_le_bytes()).unwrap();
    input.write_all(&bomb).unwrap();
    // As when the server is killed.
    drop(input);
    let mut answer = Vec::new();
    compiler.stdout.take().unwrap().read_to_end(&mut answer).unwrap();
    assert_eq!((compiler.wait().unwrap().code(), answer.len()), (Some(1), 0));
}

#[test]
fn it_takes_no_more_than_a_plugin_may_have_and_nothing_that_is_cut_off() {
    for (length, component, expected) in
        [(64 << 20, "", "the component is larger than a plugin may be"), (100, "\0asm", "failed to fill whole buffer")]
    {
        let mut compiler = compiler();
        let mut input = compiler.stdin.take().unwrap();
        input.write_all(&u64::to_le_bytes(length)).unwrap();
        input.write_all(component.as_bytes()).unwrap();
        drop(input);
        let output = compiler.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(expected), "{said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn the_command_is_not_shown_to_people() {
    let output = Command::new(program()).arg("--help").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("preview") && !text.contains("compile-plugin"), "{text}");
}

/// The only entry of compiled code of a world's store.
fn entry(world: &World) -> PathBuf {
    let only = |folder: &Path| {
        let entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(entries.len(), 1, "{entries:?}");
        entries[0].clone()
    };
    only(&only(&world.path("data/switchbell.db.plugins/compiled")))
}

#[tokio::test]
async fn a_server_compiles_in_a_process_of_its_own_once_and_never_runs_what_somebody_changed() {
    let sink = Sink::start().await;
    let world = World::new(&sink, "{ outbox: { run: [cat], workspaces: [acme] } }", &World::stdio_connector());
    let (compiled, kept, distrusted) =
        ("compiled in a process of its own", "compiled code was kept", "compiled code is not used");
    let (_, _, said) = Server::start(&world, &sink).stop(Signal::TERM);
    assert!(said.contains(compiled) && !said.contains(kept), "{said}");

    let (_, _, said) = Server::start(&world, &sink).stop(Signal::TERM);
    assert!(!said.contains(compiled) && said.contains(kept) && !said.contains(distrusted), "{said}");

    let mut bytes = std::fs::read(entry(&world)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(entry(&world), bytes).unwrap();
    let (_, _, said) = Server::start(&world, &sink).stop(Signal::TERM);
    let line = said.lines().find(|line| line.contains(distrusted)).unwrap();
    assert!(line.contains("WARN") && line.contains(".cwasm"), "{line}");
    assert!(said.contains(compiled) && !said.contains(kept), "{said}");

    let (_, _, said) = Server::start(&world, &sink).stop(Signal::TERM);
    assert!(!said.contains(compiled) && said.contains(kept), "{said}");
}
