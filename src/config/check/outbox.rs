//! Which outbox a connector declares: in the file itself, or by the manifest of a bundle.

use std::path::{Component, Path, PathBuf};

use super::super::Push;
use super::super::code::Code;
use super::super::load::Folder;
use super::super::manifest::{self, Manifest};
use super::super::raw::RawOutbox;
use super::super::read::{Placed, Text};
use super::super::source::Report;
use super::push::{self, Given};
use super::server::path_of;

/// Longest description of an outbox, in characters: it is a remark for people.
const DESCRIPTION_CHARS_MAX: usize = 500;

/// What was declared.
#[derive(Debug, Clone, Default)]
pub(super) struct Declared {
    /// The outbox to poll.
    pub outbox: Option<String>,
    /// The queue to follow, in place of an outbox.
    pub push: Option<Push>,
    /// Why there is none although one was asked for.
    pub not_polled: Option<String>,
}

impl Declared {
    /// The outbox of this URI.
    pub(super) fn inline(uri: Option<String>) -> Self {
        Self { outbox: uri, ..Self::default() }
    }
}

/// Checks `notifications` of a workspace's connector.
pub(super) fn check(raw: Placed<RawOutbox>, report: &mut Report) -> Declared {
    let Placed { at, value: raw } = raw;
    check_description(raw.description.as_ref(), report);
    let given = Given {
        resource: raw.resource.as_ref().map(|uri| &uri.at),
        manifest: raw.manifest.as_ref().map(|path| &path.at),
    };
    if let Some(declared) = push::check((raw.push, raw.levels), given, report) {
        return declared;
    }
    match (raw.resource, raw.manifest) {
        (Some(_), Some(manifest)) => {
            report.mistake(
                &manifest.at,
                Code::ConflictingKeys.says("both `resource` and `manifest`: keep the one that declares the outbox"),
            );
            Declared::default()
        }
        (resource, None) => {
            let ways = ["resource", "manifest", "push", "levels"];
            if !ways.into_iter().any(|way| raw.given.has(way)) && raw.given.is_clean() {
                let message = "an outbox needs `resource` (its URI) or `manifest` (the manifest.json of a bundle); or write \
                               `push: true` for a server with a push queue";
                report.mistake(&at, Code::MissingKey.says(message));
            }
            Declared::inline(resource.map(|uri| uri.value.0))
        }
        (None, Some(path)) => of_workspace_manifest(&path, report),
    }
}

/// Reports a description that is too long.
pub(super) fn check_description(description: Option<&Placed<Text>>, report: &mut Report) {
    if let Some(description) = description
        && description.0.chars().nth(DESCRIPTION_CHARS_MAX).is_some()
    {
        report.mistake(
            &description.at,
            Code::OutOfBounds.says(format!("a description has at most {DESCRIPTION_CHARS_MAX} characters")),
        );
    }
}

/// A manifest in the folder of the workspace's file or below: its admin must not have other files read.
fn of_workspace_manifest(path: &Placed<Text>, report: &mut Report) -> Declared {
    let Some(relative) = path_below(path, report) else { return Declared::default() };
    let folder = Folder::of(report.file()).absolute;
    let file = folder.join(relative);
    report.files.note(&file);
    let found = manifest::read(&file, Some(&folder));
    if !found.without_effect.is_empty() {
        let message = format!(
            "{}: its {} have no effect: only the manifest of an entry of `catalog` in switchbell.yaml may hold such",
            shown(path),
            found.without_effect.join(" and ")
        );
        report.warning(&path.at, Code::NoEffect.says(message));
    }
    declared(found, path, report)
}

/// A manifest that the operator names.
pub(super) fn of_operator_manifest(path: &Placed<Text>, folder: &Folder, report: &mut Report) -> Declared {
    let Some(file) = path_of(&path.at, &path.0, report) else { return Declared::default() };
    let file = folder.absolute.join(file);
    report.files.note(&file);
    declared(manifest::read(&file, None), path, report)
}

fn declared(found: Manifest, path: &Placed<Text>, report: &mut Report) -> Declared {
    match found.outbox {
        Ok(uri) => Declared::inline(Some(uri)),
        Err(why) => {
            let why = format!("{}: {why}", shown(path));
            report.warning(&path.at, Code::NoOutbox.says(format!("no outbox is polled: {why}")));
            Declared { not_polled: Some(why), ..Declared::default() }
        }
    }
}

fn shown(path: &Placed<Text>) -> String {
    super::super::scalar::harmless(&path.0).into_owned()
}

fn path_below(path: &Placed<Text>, report: &mut Report) -> Option<PathBuf> {
    let is_below = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if path.0.starts_with('~') || !Path::new(&path.0).components().all(is_below) {
        let message = "a manifest stands in the folder of this file or below: write a path such as \
                       `registrar/manifest.json`, without `..` and without `/` or `~` in front";
        report.mistake(&path.at, Code::BadPath.says(message));
        return None;
    }
    path_of(&path.at, &path.0, report)
}
