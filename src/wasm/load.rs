//! From bytes to a plugin: each check in order, the cheap ones first, none of it on an async thread.

use std::sync::Arc;

use memchr::memmem;
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use super::compiled::{Job, compile, deserialize, refused};
use super::contract::{Exports, is_patch_of};
use super::engine::{Sandbox, Shared};
use super::fault::LoadError;
use super::instance::Program;
use super::limits::{CpuBudget, PLUGIN_BYTES_MAX};
use super::manifest::Manifest;
use super::plugin::{Origin, Plugin};
use super::text::one_line;
use super::wasi;

/// The interface of types that every plugin imports, without its version.
const TYPES_INTERFACE: &str = "switchbell:delivery/types";

/// Foreign imports that are named; a component may have thousands.
const FOREIGN_NAMES_MAX: usize = 30;

/// How WebAssembly begins.
const MAGIC: &[u8] = b"\0asm";

/// What follows in a core module.
const CORE_MODULE: &[u8] = &[1, 0, 0, 0];

/// So much of a file is looked at to tell whether it is a text.
const TEXT_LOOKED_AT_BYTES: usize = 256;

impl Sandbox {
    /// Makes a plugin of a component: checks it, compiles it, and has it describe itself under the limits.
    ///
    /// # Errors
    /// What is wrong with it, and what to do.
    pub async fn load(&self, bytes: Vec<u8>) -> Result<Plugin, LoadError> {
        check_header(&bytes)?;
        let (program, origin) = program(&self.0, bytes).await?;
        let trial = program.clone();
        let described = self.0.threads.run(move || describe(&trial)).await;
        let manifest = described.map_err(LoadError::Host)??;
        Ok(Plugin::new(program, manifest, origin))
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
        None => Err(LoadError::NotWasm { looks_like: looks_like(bytes) }),
        Some(rest) if rest.starts_with(CORE_MODULE) => Err(LoadError::CoreModule),
        Some(_) => Ok(()),
    }
}

/// What a file that is no WebAssembly looks like.
fn looks_like(bytes: &[u8]) -> Option<&'static str> {
    let start = bytes.trim_ascii_start();
    let text = bytes.get(..bytes.len().min(TEXT_LOOKED_AT_BYTES)).and_then(|start| std::str::from_utf8(start).ok());
    match start {
        [] => Some("an empty file"),
        [b'(' | b';', ..] => Some("WebAssembly in its text format, which wasm-tools parse turns into binary"),
        [b'<', ..] => Some("a page of the web, perhaps of a download that failed"),
        [0x1f, 0x8b, ..] | [b'P', b'K', ..] => Some("an archive, which must be unpacked first"),
        _ if start.starts_with(b"version https://git-lfs") => {
            Some("a pointer of Git LFS: git lfs pull fetches the file")
        }
        _ => text.map(|_| "a text"),
    }
}

/// A file to load.
#[derive(Clone)]
struct Source {
    bytes: Arc<[u8]>,
    digest: Arc<str>,
}

/// The program of a component: of its compiled code if that is kept, else compiled, one at a time. None of it on an async
/// thread.
async fn program(shared: &Arc<Shared>, bytes: Vec<u8>) -> Result<(Program, Origin), LoadError> {
    let source = blocking(move || Source { digest: digest(&bytes).into(), bytes: bytes.into() }).await?;
    if let Some(kept) = kept(shared, &source).await {
        return kept;
    }
    let lost = |_closed| LoadError::Host("the compiler is gone".into());
    let permit = Arc::clone(&shared.compile).acquire_owned().await.map_err(lost)?;
    // It may have been compiled meanwhile.
    if let Some(kept) = kept(shared, &source).await {
        return kept;
    }
    let job = Job {
        engine: &shared.engine,
        compatibility: &shared.compatibility,
        plugin_memory_bytes_max: shared.limits.memory_bytes_max,
        bounds: shared.compile_bounds,
        component: Arc::clone(&source.bytes),
    };
    let (code, permit) = compile(&shared.compiler, job, permit).await?;
    let shared = Arc::clone(shared);
    let checked = blocking(move || {
        let component = deserialize(&shared.engine, &code).map_err(|error| refused(&format!("{error:#}")))?;
        let checked = check(&shared, &component, &source)?;
        if let Some(store) = &shared.compiled {
            store.put(&source.digest, &code);
        }
        // Only now may another write.
        drop(permit);
        Ok(checked)
    });
    checked.await?
}

/// The program of a component whose compiled code is kept; none when it must be compiled. What is kept is not checked less
/// than what was just compiled.
async fn kept(shared: &Arc<Shared>, source: &Source) -> Option<Result<(Program, Origin), LoadError>> {
    shared.compiled.as_ref()?;
    let (shared, source) = (Arc::clone(shared), source.clone());
    let found = blocking(move || {
        let store = shared.compiled.as_ref()?;
        let code = store.get(&source.digest)?;
        match deserialize(&shared.engine, &code) {
            Ok(component) => {
                tracing::debug!(digest = &*source.digest, "compiled code was kept");
                Some(check(&shared, &component, &source))
            }
            Err(error) => {
                store.distrust(&source.digest, &one_line(&format!("{error:#}"), 200));
                None
            }
        }
    });
    found.await.unwrap_or_else(|lost| Some(Err(lost)))
}

/// Runs what computes or waits for the disk off the async threads.
async fn blocking<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Result<T, LoadError> {
    let done = tokio::task::spawn_blocking(job).await;
    done.map_err(|lost| LoadError::Host(one_line(&lost.to_string(), 300)))
}

fn check(shared: &Arc<Shared>, component: &Component, source: &Source) -> Result<(Program, Origin), LoadError> {
    check_imports(&shared.engine, component, &source.bytes)?;
    let imports = component.component_type().imports(&shared.engine).map(|(name, _)| one_line(name, 200)).collect();
    let (exports, interface) = Exports::find(&shared.engine, component)?;
    let component = shared.linker.instantiate_pre(component).map_err(|error| refused(&format!("{error:#}")))?;
    let origin = Origin { digest: source.digest.to_string(), bytes: source.bytes.len(), interface, imports };
    Ok((Program { shared: Arc::clone(shared), component, exports }, origin))
}

/// Refuses every import but inert WASI and the contract's own types.
fn check_imports(engine: &Engine, component: &Component, bytes: &[u8]) -> Result<(), LoadError> {
    let component = component.component_type();
    let imports = component.imports(engine);
    let foreign = imports.filter(|(name, import)| !is_inert(engine, name, &import.ty));
    let names: Vec<String> = foreign.map(|(name, _)| one_line(name, 200)).take(FOREIGN_NAMES_MAX).collect();
    if names.is_empty() {
        return Ok(());
    }
    let remedy = remedy(&names, toolchain(bytes));
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

/// What built a component, as far as that changes what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Toolchain {
    Python,
    JavaScript,
    Rust,
}

/// The toolchain that a component names in its `producers` sections, read as a mere text: nothing but advice depends on
/// it. What other languages run on is written in Rust, too, so that comes last.
fn toolchain(bytes: &[u8]) -> Option<Toolchain> {
    let marks: [(&[u8], Toolchain); 4] = [
        (b"componentize-py", Toolchain::Python),
        (b"ComponentizeJS", Toolchain::JavaScript),
        (b"StarlingMonkey", Toolchain::JavaScript),
        (b"rustc", Toolchain::Rust),
    ];
    let is_in = |mark: &[u8]| memmem::find(bytes, mark).is_some();
    marks.into_iter().find(|(mark, _)| is_in(mark)).map(|(_, toolchain)| toolchain)
}

/// What to do about foreign imports.
fn remedy(names: &[String], toolchain: Option<Toolchain>) -> String {
    let is_wasi = |name: &String| name.starts_with("wasi:");
    let is_linked_otherwise =
        |name: &String| name.split_once('@').is_some_and(|(name, _)| wasi::INTERFACES.contains(&name));
    if names.iter().all(is_linked_otherwise) {
        return "the host links this in WASI 0.2 only; build the plugin for wasm32-wasip2, with a released toolchain"
            .into();
    }
    if !names.iter().all(is_wasi) {
        return "the host links no function but inert WASI (io, cli, clocks, random); build the plugin for the world \
                delivery-plugin of wit/delivery.wit alone"
            .into();
    }
    let how = match toolchain {
        Some(Toolchain::Python) => "build it with componentize-py's --stub-wasi",
        Some(Toolchain::JavaScript) => {
            "componentize it with the features http, fetch-event, stdio, random and clocks disabled (disableFeatures)"
        }
        Some(Toolchain::Rust) => {
            "remove the code that opens files, sockets or HTTP connections (std::fs, std::net, wasi:http, an HTTP client)"
        }
        None => {
            "remove the code that opens files, sockets or HTTP connections. A Python plugin is built with \
             componentize-py's --stub-wasi, a JavaScript plugin with componentize's features http, fetch-event, stdio, \
             random and clocks disabled"
        }
    };
    format!("a plugin does no I/O of its own, it answers an http, mail or tool action and the host performs it; {how}")
}

/// Makes an instance, compares its types with the contract, and reads its description.
fn describe(program: &Program) -> Result<Manifest, LoadError> {
    let _running = program.shared.ticker.running();
    let cpu = CpuBudget::new(program.shared.limits.step_cpu_max);
    let mut instance = program.instantiate(program.inputs(None, 0), cpu).map_err(LoadError::Describe)?;
    program.conforms(&mut instance)?;
    let text = program.describe(&mut instance).map_err(LoadError::Describe)?;
    Manifest::parse(&text).map_err(LoadError::Manifest)
}

/// The SHA-256 of a plugin's file in lower-case hex; none when the file is larger than a plugin may be, since it is not
/// read to its end then.
pub fn file_digest(bytes: &[u8]) -> Option<String> {
    (bytes.len() <= PLUGIN_BYTES_MAX).then(|| digest(bytes))
}

/// The SHA-256 of these bytes in lower-case hex.
pub(super) fn digest(bytes: &[u8]) -> String {
    crate::text::hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(remedy(&names, None).starts_with(expected), "{names:?}");
        }
    }

    #[test]
    fn the_remedy_fits_the_toolchain() {
        let names = ["wasi:filesystem/types@0.2.6".to_owned()];
        for (producers, expected) in [
            (
                "language Python processed-by componentize-py 0.25 rustc",
                "; build it with componentize-py's --stub-wasi",
            ),
            ("processed-by ComponentizeJS 0.23 rustc", "; componentize it with the features http, fetch-event"),
            ("processed-by rustc 1.95", "; remove the code that opens files, sockets or HTTP connections (std::fs"),
            ("", "A Python plugin is built with"),
        ] {
            let remedy = remedy(&names, toolchain(producers.as_bytes()));
            assert!(remedy.starts_with("a plugin does no I/O of its own") && remedy.contains(expected), "{remedy}");
        }
    }

    #[test]
    fn a_file_that_is_no_webassembly_is_told_from_others() {
        for (bytes, expected) in [
            (b"".as_slice(), Some("an empty file")),
            (b"\n(component)", Some("WebAssembly in its text format")),
            (b"<!doctype html>", Some("a page of the web")),
            (b"version https://git-lfs.github.com/spec/v1\n", Some("a pointer of Git LFS")),
            (b"\x1f\x8b\x08", Some("an archive")),
            (b"no component", Some("a text")),
            (b"\x7fELF\xff", None),
        ] {
            let found = looks_like(bytes);
            assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().starts_with(expected.unwrap_or_default()), "{found:?}");
        }
    }
}
