//! What goes is written down first: JSON Lines, a file for each workspace and day.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::inbox::{DeliveryView, Marks};
use crate::notification::{Name, Notification};
use crate::serve::shapes::{DeliveryJson, NotificationJson};

/// What goes.
pub(super) type Item = (Notification, Marks);

/// A notification as every surface spells it, with its deliveries.
#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    notification: NotificationJson,
    deliveries: Vec<DeliveryJson>,
}

/// One line. A payload may hold line breaks between its parts, which become spaces.
pub(super) fn line(item: &Item, deliveries: &[DeliveryView]) -> io::Result<String> {
    let line = Line { notification: item.into(), deliveries: deliveries.iter().map(Into::into).collect() };
    let json = serde_json::to_string(&line)?;
    Ok(json.replace(['\n', '\r'], " ") + "\n")
}

/// Adds lines to the file of a workspace and a day in UTC, for nobody else; they are on disk when this returns.
///
/// # Errors
/// When they cannot be written; then none of them is in the file.
pub(super) async fn append(folder: &Path, workspace: &Name, now: Timestamp, lines: String) -> io::Result<()> {
    let day = TimeZone::UTC.to_datetime(now).date();
    let (folder, name) = (folder.to_owned(), format!("{workspace}-{day}.jsonl"));
    let written = tokio::task::spawn_blocking(move || write(&folder, &name, &lines));
    written.await.map_err(io::Error::other)?
}

fn write(folder: &Path, name: &str, lines: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let path = folder.join(name);
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    let before = file.metadata()?.len();
    let written = end_last_line(&mut file, before).and_then(|()| file.write_all(lines.as_bytes()));
    if let Err(error) = written.and_then(|()| file.sync_all()) {
        // Whoever reads it finds whole lines.
        let _ = file.set_len(before);
        return Err(error);
    }
    if before == 0 { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// A line that a crash cut off is followed by whole ones.
fn end_last_line(file: &mut File, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    if last == *b"\n" { Ok(()) } else { file.write_all(b"\n") }
}
