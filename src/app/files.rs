//! Open files: each attempt that waits for an answer holds a connection.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Has this process open as many files as it is allowed to: what a shell gives at first, often 1,024, is less than the
/// attempts that may be under way. Who is not allowed more goes on with what there is.
pub(super) fn allow_all() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => tracing::debug!(before = current, now = maximum, "open files at once"),
        Err(error) => tracing::warn!(%error, open_files_max = current, "the limit of open files cannot be raised"),
    }
}
