//! Two versions of a plugin, compared by a recorded attempt that both make again. Nothing is sent.

use super::End;
use super::replay::{Divergence, Replayed, compared, leg, made};
use crate::send::record::{NotARecord, Recorded};
use crate::wasm::Plugin;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    /// Both ask for the same, as far as the recorded answers lead.
    Same,
    /// The new one does something else.
    Differs {
        /// Where it first does. What is called recorded there is what the old one asks for.
        divergence: Divergence,
        /// Whether the old one fails at this delivery, so that the new one is compared with what is recorded.
        old_failed: bool,
    },
    /// One of them passed a limit, or the host could not run it, which tells nothing of either.
    Limit,
}

/// Makes a recorded attempt again, on the old version and then on the new one, up to where they first differ. Without an
/// old version, what is recorded takes its place.
///
/// The old one may do something else than is recorded, by a version before it. From there on the recorded answers fit
/// neither: its first action of its own is the last that is compared.
///
/// # Errors
/// When the recording is none that a host makes.
pub async fn compare(recorded: Recorded, old: Option<&Plugin>, new: &Plugin) -> Result<Compared, NotARecord> {
    let (mut leg, mut before) = leg(recorded);
    let mut old_failed = false;
    if let Some(old) = old {
        let (asked, end) = made(old, leg.clone()).await?;
        match end {
            End::Fault { is_limit: true, .. } => return Ok(Compared::Limit),
            End::Fault { is_limit: false, .. } => old_failed = true,
            End::Said(_) | End::NeedsAnswer | End::WrongAnswer => {
                leg.script.truncate(asked.iter().filter(|asked| asked.answer.is_some()).count());
                before = asked.into_iter().map(|asked| asked.action).collect();
                before.extend(if let End::Said(end) = end { Some(end) } else { None });
            }
        }
    }
    Ok(match compared(&before, made(new, leg).await?) {
        Replayed::Same => Compared::Same,
        Replayed::Diverged(Divergence { is_limit: true, .. }) => Compared::Limit,
        Replayed::Diverged(divergence) => Compared::Differs { divergence, old_failed },
    })
}
