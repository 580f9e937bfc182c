//! How soon a server with many plugins is ready: the first time, when it compiles them, and from then on.

use std::fs;
use std::path::Path;
use std::time::Instant;

use futures_util::stream::{self, StreamExt};
use switchbell::config::Limits;
use switchbell::wasm::{Compiler, Sandbox, Settings};

use crate::size::start;
use crate::world::{World, plugin_path};
use crate::{ROUNDS, median};

const PLUGINS: usize = 50;
/// As a catalog is loaded.
const AT_ONCE: usize = 4;

pub async fn run() {
    let world = World::new(1).await;
    let folder = world.path("many");
    let files = write_plugins(&folder);
    println!("\nrestart: {PLUGINS} plugins (the Slack plugin under as many names)");
    let (mut nothing, mut kept) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let compiled = world.path(&format!("compiled-{round}"));
        nothing.push(load(&files, &compiled).await);
        kept.push(load(&files, &compiled).await);
    }
    told("loaded by a sandbox", median(nothing), median(kept), "");

    let file = world.path("switchbell.yaml");
    let text = fs::read_to_string(&file).expect("a file");
    let usual = plugin_path().parent().expect("a folder").to_owned();
    fs::write(&file, text.replace(&format!("{usual:?}"), &format!("{folder:?}"))).expect("a file");
    let (mut nothing, mut kept, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let store = world.path(&format!("store-{round}.db"));
        nothing.push(start(&world, &store).0.as_secs_f64());
        let (ready, memory_mib) = start(&world, &store);
        kept.push(ready.as_secs_f64());
        memory.push(memory_mib);
    }
    told("a server is ready", median(nothing), median(kept), &format!(", with {:.0} MiB at most", median(memory)));
}

fn told(what: &str, nothing: f64, kept: f64, more: &str) {
    println!(
        "  {what:<20} with nothing compiled {nothing:6.2} s, from the store {kept:6.3} s: {:.0} times as quick{more}",
        nothing / kept
    );
}

/// Plugins that differ in nothing but their names, which are as long as the first one's.
fn write_plugins(folder: &Path) -> Vec<Vec<u8>> {
    const PLACE: &[u8] = br#""name":"slack""#;
    fs::create_dir_all(folder).expect("a folder");
    let slack = fs::read(plugin_path()).expect("the Slack plugin");
    let place = slack.windows(PLACE.len()).position(|window| window == PLACE).expect("its name");
    let named = |name: &str| {
        let mut bytes = slack.clone();
        let name = format!(r#""name":"{name}""#);
        bytes.splice(place..place + PLACE.len(), name.into_bytes());
        bytes
    };
    let names = (1..PLUGINS).map(|number| format!("pl-{number:02}")).chain(["slack".to_owned()]);
    let write = |name: String| {
        let bytes = named(&name);
        fs::write(folder.join(format!("{name}.wasm")), &bytes).expect("a plugin");
        bytes
    };
    names.map(write).collect()
}

/// Seconds in which a new sandbox has loaded them all.
async fn load(files: &[Vec<u8>], compiled: &Path) -> f64 {
    let began = Instant::now();
    let settings = Settings {
        key: Some([7; 32]),
        compiled: Some(compiled.to_owned()),
        compiler: Compiler::Child(env!("CARGO_BIN_EXE_switchbell").into()),
        ..Settings::new(Limits::default())
    };
    let sandbox = Sandbox::new(settings).expect("a sandbox");
    let loading = stream::iter(files).map(|bytes| sandbox.load(bytes.clone())).buffered(AT_ONCE);
    let loaded: Vec<_> = loading.collect().await;
    let took = began.elapsed().as_secs_f64();
    assert!(loaded.len() == PLUGINS && loaded.iter().all(Result::is_ok), "{loaded:?}");
    took
}
