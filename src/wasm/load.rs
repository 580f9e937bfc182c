//! From bytes to a plugin: each check in order, the cheap ones first, none of it on an async thread.

use std::sync::Arc;
use std::thread;

use sha2::{Digest, Sha256};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use super::engine::{Sandbox, Shared};
use super::fault::LoadError;
use super::instance::{Exports, Program};
use super::limits::{CpuBudget, PLUGIN_BYTES_MAX};
use super::manifest::Manifest;
use super::plugin::Plugin;
use super::text::one_line;
use super::wasi;

/// The exported interface, without its version.
const PLUGIN_INTERFACE: &str = "switchbell:delivery/plugin";

/// The interface of types that every plugin imports, without its version.
const TYPES_INTERFACE: &str = "switchbell:delivery/types";

/// The version of the contract that this host speaks.
const CONTRACT_VERSION: &str = "0.1.0";

/// Foreign imports that are named; a component may have thousands.
const FOREIGN_NAMES_MAX: usize = 30;

/// How WebAssembly begins.
const MAGIC: &[u8] = b"\0asm";

/// What follows in a core module.
const CORE_MODULE: &[u8] = &[1, 0, 0, 0];

/// The stack of the thread that compiles.
const COMPILE_STACK_BYTES: usize = 8 << 20;

impl Sandbox {
    /// Makes a plugin of a component: checks it, compiles it, and has it describe itself under the limits.
    ///
    /// # Errors
    /// What is wrong with it, and what to do.
    pub async fn load(&self, bytes: Vec<u8>) -> Result<Plugin, LoadError> {
        check_header(&bytes)?;
        let (program, digest) = compile(&self.0, bytes).await?;
        let trial = program.clone();
        let described = self.0.threads.run(move || describe(&trial)).await;
        let manifest = described.map_err(LoadError::Host)??;
        Ok(Plugin::new(program, manifest, digest))
    }
}

fn check_header(bytes: &[u8]) -> Result<(), LoadError> {
    if bytes.len() > PLUGIN_BYTES_MAX {
        return Err(LoadError::TooLarge);
    }
    if Engine::detect_precompiled(bytes).is_some() {
        return Err(LoadError::Precompiled);
    }
    match bytes.strip_prefix(MAGIC) {
        None => Err(LoadError::NotWasm),
        Some(rest) if rest.starts_with(CORE_MODULE) => Err(LoadError::CoreModule),
        Some(_) => Ok(()),
    }
}

/// How far the compiler stands back behind everything else that runs.
const COMPILE_NICENESS: i32 = 10;

/// Compiles on a thread of its own, one at a time. The thread goes on to its end if the future is dropped.
async fn compile(shared: &Arc<Shared>, bytes: Vec<u8>) -> Result<(Program, String), LoadError> {
    let lost = || LoadError::Host("the compiler ended without a result".into());
    let permit = Arc::clone(&shared.compile).acquire_owned().await.map_err(|_closed| lost())?;
    let (result, compiled) = oneshot::channel();
    let shared = Arc::clone(shared);
    let job = move |permit: OwnedSemaphorePermit| {
        // Deliveries go first. On Linux this is the thread's own, and the compiler's threads, which it starts, inherit it.
        let _ = rustix::process::nice(COMPILE_NICENESS);
        // Nobody waits any more if the future was dropped.
        let _ = result.send(program(shared, &bytes).map(|program| (program, digest(&bytes))));
        drop(permit);
    };
    let thread = thread::Builder::new().name("sandbox-compile".into()).stack_size(COMPILE_STACK_BYTES);
    thread
        .spawn(move || job(permit))
        .map_err(|error| LoadError::Host(format!("no thread could be started: {error}")))?;
    compiled.await.map_err(|_gone| lost())?
}

fn program(shared: Arc<Shared>, bytes: &[u8]) -> Result<Program, LoadError> {
    let component = Component::from_binary(&shared.engine, bytes).map_err(|error| malformed(&error))?;
    check_imports(&shared.engine, &component)?;
    let interface = find_interface(&shared.engine, &component)?;
    let exports =
        Exports::find(&component, &interface).map_err(|name| wrong_world(&format!("{interface} without {name}")))?;
    let component = shared.linker.instantiate_pre(&component).map_err(|error| malformed(&error))?;
    Ok(Program { shared, component, exports })
}

fn malformed(error: &wasmtime::Error) -> LoadError {
    let detail = one_line(&format!("{error:#}"), 500);
    // The engine gives these errors no type to ask for; without the text they are reported as malformed.
    let too_demanding = detail.contains("pooling allocator");
    if too_demanding { LoadError::TooDemanding(detail) } else { LoadError::Malformed(detail) }
}

/// Refuses every import but inert WASI and the contract's own types.
fn check_imports(engine: &Engine, component: &Component) -> Result<(), LoadError> {
    let component = component.component_type();
    let imports = component.imports(engine);
    let foreign = imports.filter(|(name, import)| !is_inert(engine, name, &import.ty));
    let names: Vec<String> = foreign.map(|(name, _)| one_line(name, 200)).take(FOREIGN_NAMES_MAX).collect();
    if names.is_empty() {
        return Ok(());
    }
    let remedy = remedy(&names).into();
    Err(LoadError::ForeignImports { names, remedy })
}

fn is_inert(engine: &Engine, name: &str, import: &ComponentItem) -> bool {
    let (interface, version) = name.split_once('@').unwrap_or((name, ""));
    let only_types = || match import {
        ComponentItem::ComponentInstance(instance) => {
            instance.exports(engine).all(|(_, item)| matches!(item.ty, ComponentItem::Type(_)))
        }
        _ => false,
    };
    match interface {
        TYPES_INTERFACE => only_types(),
        _ => wasi::INTERFACES.contains(&interface) && is_patch_of("0.2", version),
    }
}

/// Whether `version` is `line` and a number: semantic versions below 1 are compatible within such a line.
fn is_patch_of(line: &str, version: &str) -> bool {
    let patch = version.strip_prefix(line).and_then(|rest| rest.strip_prefix('.'));
    patch.is_some_and(|patch| !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What to do about foreign imports.
fn remedy(names: &[String]) -> &'static str {
    let is_wasi = |name: &String| name.starts_with("wasi:");
    let is_linked_otherwise =
        |name: &String| name.split_once('@').is_some_and(|(name, _)| wasi::INTERFACES.contains(&name));
    if names.iter().all(is_linked_otherwise) {
        "the host links this in WASI 0.2 only; build the plugin for wasm32-wasip2, with a released toolchain"
    } else if names.iter().all(is_wasi) {
        "a plugin does no I/O of its own, it answers an http, mail or tool action and the host performs it; remove the \
         code that opens files, sockets or HTTP connections. A Python plugin is built with componentize-py's \
         --stub-wasi, a JavaScript plugin with componentize's features http, fetch-event, stdio, random and clocks \
         disabled"
    } else {
        "the host links no function but inert WASI (io, cli, clocks, random); build the plugin for the world \
         delivery-plugin of wit/delivery.wit alone"
    }
}

/// The name of the exported plugin interface, whatever patch of the contract it was built for.
fn find_interface(engine: &Engine, component: &Component) -> Result<String, LoadError> {
    let component = component.component_type();
    let names: Vec<&str> = component.exports(engine).map(|(name, _)| name).collect();
    let line = CONTRACT_VERSION.rsplit_once('.').map_or(CONTRACT_VERSION, |(line, _patch)| line);
    let version =
        |name: &'_ str| name.strip_prefix(PLUGIN_INTERFACE).and_then(|rest| rest.strip_prefix('@')).map(str::to_owned);
    let fits = names.iter().find(|name| version(name).is_some_and(|version| is_patch_of(line, &version)));
    if let Some(name) = fits {
        return Ok((*name).to_owned());
    }
    let close = names.iter().find(|name| name.starts_with(PLUGIN_INTERFACE));
    Err(match (close, names.as_slice()) {
        (Some(close), _) => wrong_world(close),
        (None, []) => wrong_world("nothing"),
        (None, names) => wrong_world(&names.join(", ")),
    })
}

fn wrong_world(found: &str) -> LoadError {
    LoadError::WrongWorld { found: one_line(found, 700), wanted: format!("{PLUGIN_INTERFACE}@{CONTRACT_VERSION}") }
}

/// Makes an instance, compares its types with the contract, and reads its description.
fn describe(program: &Program) -> Result<Manifest, LoadError> {
    let _running = program.shared.ticker.running();
    let cpu = CpuBudget::new(program.shared.limits.step_cpu_max);
    let mut instance = program.instantiate(program.inputs(None, 0), cpu).map_err(LoadError::Describe)?;
    program
        .conforms(&mut instance)
        .map_err(|mismatch| wrong_world(&format!("{PLUGIN_INTERFACE} with other types ({mismatch})")))?;
    let text = program.describe(&mut instance).map_err(LoadError::Describe)?;
    Manifest::parse(&text).map_err(LoadError::Manifest)
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_fits_its_own_line_only() {
        for (line, version, expected) in [
            ("0.2", "0.2.0", true),
            ("0.2", "0.2.12", true),
            ("0.2", "0.2", false),
            ("0.2", "0.2.", false),
            ("0.2", "0.3.0", false),
            ("0.2", "0.20.0", false),
            ("0.2", "0.2.0-rc-2023-11-10", false),
            ("0.2", "", false),
        ] {
            assert_eq!(is_patch_of(line, version), expected, "{version}");
        }
    }

    #[test]
    fn the_remedy_fits_what_is_foreign() {
        for (names, expected) in [
            (vec!["wasi:cli/stdout@0.3.0"], "the host links this in WASI 0.2 only"),
            (vec!["wasi:cli/stdout@0.3.0", "wasi:sockets/tcp@0.3.0"], "a plugin does no I/O of its own"),
            (vec!["wasi:http/outgoing-handler@0.2.6"], "a plugin does no I/O of its own"),
            (vec!["wasi:http/types@0.2.6", "log"], "the host links no function but inert WASI"),
            (vec!["switchbell:delivery/types@0.1.0"], "the host links no function but inert WASI"),
        ] {
            let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
            assert!(remedy(&names).starts_with(expected), "{names:?}");
        }
    }
}
