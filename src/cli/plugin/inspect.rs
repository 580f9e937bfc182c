//! `switchbell plugin inspect`: one file, whole.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::{Value, json};

use super::grants::lines;
use super::{CONFIG_DEFAULT, granted, sandbox};
use crate::cli::FOUND_WRONG;
use crate::cli::output::{fail, print_for_people, print_json};
use crate::cli::table::aligned;
use crate::config::{Grant, Granted, Limits};
use crate::notification::Name;
use crate::send::wants::{Difference, Reach, difference};
use crate::wasm::catalog::read_file;
use crate::wasm::{LoadError, Manifest, Plugin, file_digest};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Inspect {
    /// The plugin's file, a WebAssembly component.
    #[arg(value_name = "FILE")]
    plugin: PathBuf,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// What the configuration says of the plugin.
struct Grants {
    /// What is granted; as it would be written.
    granted: Reach,
    /// The workspaces that all of it is limited to.
    workspaces: Vec<String>,
    difference: Difference,
    lines: Option<String>,
}

pub(super) async fn run(file: &Path, asked: &Inspect) -> ExitCode {
    match inspect(file, asked).await {
        Ok(code) | Err(code) => code,
    }
}

async fn inspect(file: &Path, asked: &Inspect) -> Result<ExitCode, ExitCode> {
    let is_configured = file != Path::new(CONFIG_DEFAULT) || file.exists();
    let configuration = if is_configured { Some(granted(file)?) } else { None };
    let limits = configuration.as_ref().map_or_else(Limits::default, |known| known.plugins.limits);
    let shown = asked.plugin.display();
    let bytes = read_file(&asked.plugin).map_err(|error| fail(format_args!("{shown}: cannot be read: {error}")))?;
    let digest = file_digest(&bytes);
    Ok(match sandbox(limits)?.load(bytes).await {
        Ok(plugin) => {
            let grants = configuration.map(|known| Grants::of(plugin.manifest(), &known));
            let inspected = Inspected { asked, plugin: &plugin, file, grants };
            if asked.json { print_json(&inspected.json()) } else { print_for_people(&inspected.told()) }
        }
        Err(error) => refused(asked, digest.as_deref(), &error),
    })
}

/// What is said of a file that is no plugin.
fn refused(asked: &Inspect, digest: Option<&str>, error: &LoadError) -> ExitCode {
    let (file, error) = (asked.plugin.display().to_string(), error.to_string());
    if asked.json {
        print_json(&json!({"file": file, "digest": digest, "error": error}));
    } else {
        print_for_people(&format!("{file}: {error}\n"));
    }
    ExitCode::from(FOUND_WRONG)
}

impl Grants {
    fn of(manifest: &Manifest, known: &Granted) -> Self {
        let none = Grant::default();
        let grant = known.plugins.grants.get(&manifest.name).unwrap_or(&none);
        let used = known.used.iter().filter(|used| used.plugin == manifest.name);
        let workspaces: BTreeSet<&Name> = used.map(|used| &used.workspace).collect();
        let difference = difference(&manifest.wants, grant);
        Self {
            granted: Reach::from(grant),
            workspaces: grant.workspaces.iter().map(ToString::to_string).collect(),
            lines: lines(&manifest.name, grant, &difference.missing, &workspaces),
            difference,
        }
    }
}

/// A plugin and all that is known of it.
struct Inspected<'a> {
    asked: &'a Inspect,
    plugin: &'a Plugin,
    file: &'a Path,
    grants: Option<Grants>,
}

impl Inspected<'_> {
    /// The world of the contract that it was built for.
    fn world(&self) -> String {
        self.plugin.interface().replace("/plugin@", "/delivery-plugin@")
    }

    fn needs(&self) -> Vec<&'static str> {
        let manifest = self.plugin.manifest();
        let needs = [("data", manifest.needs_data), ("memory", manifest.needs_memory)];
        needs.into_iter().filter(|(_, is_needed)| *is_needed).map(|(need, _)| need).collect()
    }

    /// What would keep it from loading, or its wants from being granted, in the folder of plugins.
    fn warnings(&self) -> Vec<String> {
        let name = &self.plugin.manifest().name;
        let is_named = self.asked.plugin.file_stem().is_some_and(|stem| stem.to_str() == Some(name.as_str()));
        let misnamed = (!is_named).then(|| format!("in the folder of plugins the file must be called {name}.wasm"));
        let unreadable = self.grants.iter().flat_map(|grants| grants.difference.unreadable.clone());
        misnamed.into_iter().chain(unreadable).collect()
    }

    fn told(&self) -> String {
        let manifest = self.plugin.manifest();
        let listed = |items: Vec<&str>| if items.is_empty() { "nothing".to_owned() } else { items.join(", ") };
        let imports = self.plugin.imports().iter().map(String::as_str).collect();
        let agent = if manifest.agent { "yes: a target without at_most is limited" } else { "no" };
        let rows = [
            ("name", manifest.name.to_string()),
            ("version", manifest.version.clone()),
            ("summary", if manifest.summary.is_empty() { "none".to_owned() } else { manifest.summary.clone() }),
            ("digest", format!("sha256:{}", self.plugin.digest())),
            ("size", size(self.plugin.size())),
            ("world", self.world()),
            ("imports", listed(imports)),
            ("needs", listed(self.needs())),
            ("repeat", manifest.repeat.as_str().to_owned()),
            ("agent", agent.to_owned()),
            ("wants", Reach::from(&manifest.wants).told()),
            ("granted", self.granted()),
        ];
        let rows: Vec<Vec<String>> = rows.map(|(key, value)| vec![key.to_owned(), value]).to_vec();
        let warnings: String = self.warnings().iter().map(|warning| format!("warning: {warning}\n")).collect();
        aligned(&rows) + &self.told_difference() + &warnings
    }

    fn granted(&self) -> String {
        let Some(grants) = &self.grants else {
            return format!("unknown: there is no {CONFIG_DEFAULT} here; --config FILE names one");
        };
        let only = match grants.workspaces.as_slice() {
            [] => String::new(),
            names => format!(", for {} only", names.join(", ")),
        };
        format!("{}{only}", grants.granted.told())
    }

    fn told_difference(&self) -> String {
        let Some(grants) = &self.grants else { return String::new() };
        let mut text = String::new();
        if !grants.difference.unwanted.is_empty() {
            text.push_str(&format!("\ngranted, but not wanted: {}\n", grants.difference.unwanted.told()));
        }
        if let Some(lines) = &grants.lines {
            let (missing, file) = (grants.difference.missing.told(), self.file.display());
            text.push_str(&format!("\nwanted, but not granted: {missing}\nto grant it, have {file} say:\n\n{lines}"));
        }
        text
    }

    fn json(&self) -> Value {
        let manifest = self.plugin.manifest();
        let grants = self.grants.as_ref();
        let reach = |reach: fn(&Grants) -> &Reach| grants.map(|grants| json(reach(grants)));
        json!({
            "file": self.asked.plugin.display().to_string(),
            "name": manifest.name.as_str(),
            "version": manifest.version,
            "summary": manifest.summary,
            "digest": self.plugin.digest(),
            "size": self.plugin.size(),
            "world": self.world(),
            "imports": self.plugin.imports(),
            "needs": self.needs(),
            "repeat": manifest.repeat.as_str(),
            "agent": manifest.agent,
            "settings": manifest.settings,
            "wants": json(&Reach::from(&manifest.wants)),
            "config": grants.map(|_| self.file.display().to_string()),
            "granted": reach(|grants| &grants.granted),
            "grantedWorkspaces": grants.map(|grants| &grants.workspaces),
            "missing": reach(|grants| &grants.difference.missing),
            "unwanted": reach(|grants| &grants.difference.unwanted),
            "yaml": grants.and_then(|grants| grants.lines.as_deref()),
            "warnings": self.warnings(),
        })
    }
}

/// A value that always is JSON.
fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// `97 KiB (99,328 bytes)` without the comma.
fn size(bytes: usize) -> String {
    if bytes < 1 << 10 { format!("{bytes} bytes") } else { format!("{} KiB ({bytes} bytes)", bytes.div_ceil(1 << 10)) }
}
