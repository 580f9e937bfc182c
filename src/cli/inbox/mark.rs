//! `switchbell inbox read` and `ack`: what a person did with notifications.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use crate::cli::output::{print_for_people, print_json, tell};
use crate::cli::remote::Server;
use crate::cli::way::Way;
use crate::cli::FOUND_WRONG;
use crate::inbox::Deed;
use crate::notification::Name;
use crate::serve::desk::{MARKED_MAX, MarkJson, MarkedJson};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Mark {
    /// The notifications' numbers.
    #[arg(required = true, value_name = "SEQ")]
    seqs: Vec<u64>,
    /// The member of the workspace who did; may be left out when there is one. With --server URL it is whoever has the token.
    #[arg(long, value_name = "MEMBER")]
    by: Option<String>,
    /// The workspace; may be left out when there is one.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
    #[command(flatten)]
    server: Server,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(file: &Path, deed: Deed, asked: &Mark) -> ExitCode {
    match marked(file, deed, asked).await {
        Ok(code) | Err(code) => code,
    }
}

async fn marked(file: &Path, deed: Deed, asked: &Mark) -> Result<ExitCode, ExitCode> {
    let (way, workspace) = Way::find(file, &asked.server, asked.workspace.as_ref()).await?;
    let seqs: Vec<u64> = asked.seqs.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let mut whole = MarkedJson::default();
    for seqs in seqs.chunks(MARKED_MAX as usize) {
        let request = MarkJson { seqs: seqs.to_vec(), by: asked.by.clone() };
        let part = way.mark(&workspace, deed, &request).await?;
        whole.by = part.by;
        whole.seqs.extend(part.seqs);
        whole.missing.extend(part.missing);
        whole.suppressed.extend(part.suppressed);
    }
    let printed = if asked.json { print_json(&whole) } else { print_for_people(&told(deed, &whole)) };
    for seq in &whole.missing {
        tell(format_args!("switchbell: workspace {workspace} has no notification {seq}"));
    }
    Ok(if whole.missing.is_empty() { printed } else { ExitCode::from(FOUND_WRONG) })
}

fn told(deed: Deed, marked: &MarkedJson) -> String {
    let done = match deed {
        Deed::Read => "read",
        Deed::Acknowledge => "acknowledged",
    };
    let seqs = marked.seqs.iter().map(|seq| format!("#{seq}: {done} by {}\n", marked.by));
    let needless = marked.suppressed.iter().map(|id| format!("{id}: suppressed: it is not needed any more\n"));
    seqs.chain(needless).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_marked_and_what_that_made_needless_is_said() {
        let marked = MarkedJson {
            by: "admin@example.com".to_owned(),
            seqs: vec![41],
            missing: vec![99],
            suppressed: vec!["5f3a9c01-17".to_owned()],
        };
        let expected = "#41: acknowledged by admin@example.com\n5f3a9c01-17: suppressed: it is not needed any more\n";
        assert_eq!(told(Deed::Acknowledge, &marked), expected);
        assert!(told(Deed::Read, &marked).starts_with("#41: read by admin@example.com\n"));
    }
}
