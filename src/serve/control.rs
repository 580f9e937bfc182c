//! The control socket: how commands on this machine ask a running server. A Unix socket beside the database that only
//! its owner may use; over it HTTP, with the routes of the server's own address.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::{Extension, Router};
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;

use super::auth::Caller;
use super::{Served, api, health, mcp};

/// Longest path of a Unix socket, in bytes, that every system takes.
const PATH_BYTES_MAX: usize = 100;

/// Where the control socket of a store is.
pub fn path(store: &Path) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push(".sock");
    path.into()
}

/// Listens on the control socket of a store that this process has open for writing: what is left there is of a process
/// that is gone.
///
/// # Errors
/// When the socket cannot be made; its text says what to do.
pub fn listen(store: &Path) -> io::Result<UnixListener> {
    let path = path(store);
    if path.as_os_str().len() > PATH_BYTES_MAX {
        let message = format!(
            "the path {} has more than {PATH_BYTES_MAX} bytes, which a socket cannot have: use a shorter one for `store`",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    // It gets its name only once it is its owner's alone.
    let new = path.with_extension("new");
    for old in [&path, &new] {
        match fs::remove_file(old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let listener = UnixListener::bind(&new)?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600))?;
    fs::rename(&new, &path)?;
    Ok(listener)
}

/// Serves until told to stop.
pub async fn serve(listener: UnixListener, served: Arc<Served>, stop: CancellationToken) {
    let served = axum::serve(listener, routes(served)).with_graceful_shutdown(stop.cancelled_owned());
    if let Err(error) = served.await {
        tracing::error!(%error, "serving the control socket ended");
    }
}

/// Whoever may use the socket is the operator of this machine; only an agent, by MCP, is who its token says.
fn routes(served: Arc<Served>) -> Router {
    let local = health::routes().merge(api::routes()).layer(Extension(Caller::local()));
    Router::new().merge(local).merge(mcp::routes(&served)).with_state(served)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_socket_is_its_owners_alone_and_takes_the_place_of_one_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("switchbell.db");
        drop(listen(&store).unwrap());
        let _listener = listen(&store).unwrap();
        let mode = fs::metadata(path(&store)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_path_that_is_too_long_for_a_socket_is_said() {
        let refused = listen(&Path::new("/tmp").join("a".repeat(PATH_BYTES_MAX))).unwrap_err();
        assert!(refused.to_string().contains("use a shorter one"), "{refused}");
    }
}
