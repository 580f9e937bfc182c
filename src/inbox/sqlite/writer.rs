//! The thread that writes: it groups what is asked for at the same time into one commit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};

use super::InboxError;
use super::errors::unavailable;
use super::session::Session;

/// Requests that may wait for the writer; beyond, those who ask wait in turn.
const QUEUE_MAX: usize = 1_024;

/// Requests in one commit: it bounds how long the first of them waits for the others.
const GROUP_MAX: usize = 256;

/// Runs a request in the transaction, or hears why there is none, and returns who is to be told once the commit is known.
type Request = Box<dyn FnOnce(Result<&mut Session, InboxError>) -> Reply + Send>;
/// Told `None` when the commit holds, else why it does not.
type Reply = Box<dyn FnOnce(Option<InboxError>) + Send>;

#[derive(Debug)]
pub(super) struct Writer {
    requests: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(session: Session) -> std::io::Result<Self> {
        let (requests, queue) = mpsc::channel(QUEUE_MAX);
        let thread = std::thread::Builder::new().name("inbox-writer".to_owned()).spawn(|| write(session, queue))?;
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }

    /// Runs `work` in a transaction and returns its answer once that is on disk.
    pub(super) async fn run<T, F>(&self, work: F) -> Result<T, InboxError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Session) -> Result<T, InboxError> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let request: Request = Box::new(move |session| {
            let done = session.and_then(|session| in_savepoint(session, work));
            // Whoever asked may have gone; the work stands all the same.
            Box::new(move |failed| drop(answer.send(done.and_then(|done| failed.map_or(Ok(done), Err)))))
        });
        let gone = || InboxError::Unavailable("the store is closed".to_owned());
        let requests = self.requests.as_ref().ok_or_else(gone)?;
        requests.send(request).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

impl Drop for Writer {
    /// Writes what was asked for, then closes.
    fn drop(&mut self) {
        self.requests.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write(mut session: Session, mut queue: mpsc::Receiver<Request>) {
    let mut group = Vec::with_capacity(GROUP_MAX);
    while queue.blocking_recv_many(&mut group, GROUP_MAX) > 0 {
        let (replies, failed) = commit(&mut session, group.drain(..));
        for reply in replies {
            reply(failed.clone());
        }
    }
}

/// Runs a group of requests in one transaction; what they made known is told once it is on disk.
fn commit(session: &mut Session, group: impl Iterator<Item = Request>) -> (Vec<Reply>, Option<InboxError>) {
    let told = session.told();
    let begun = session.connection.execute_batch("BEGIN IMMEDIATE").map_err(unavailable);
    let replies = group.map(|request| request(begun.clone().map(|()| &mut *session))).collect();
    let committed = begun.and_then(|()| end(session));
    if !session.connection.is_autocommit() {
        // A commit that was refused leaves its transaction open; nothing of it may stay.
        let _ = session.connection.execute_batch("ROLLBACK");
    }
    match &committed {
        Ok(()) => session.tell(),
        Err(_) => session.undo(told),
    }
    (replies, committed.err())
}

fn end(session: &Session) -> Result<(), InboxError> {
    if session.connection.is_autocommit() {
        // SQLite itself rolls back the whole transaction when a statement meets a full or failing disk.
        let message = "the disk is full or failing: nothing of this write was kept, and it will be tried again";
        return Err(InboxError::Unavailable(message.to_owned()));
    }
    session.connection.execute_batch("COMMIT").map_err(unavailable)
}

/// One request fails alone, unless SQLite ended the whole transaction for it.
fn in_savepoint<T>(
    session: &mut Session,
    work: impl FnOnce(&mut Session) -> Result<T, InboxError>,
) -> Result<T, InboxError> {
    if session.connection.is_autocommit() {
        return Err(InboxError::Unavailable("the transaction was ended by a request before this one".to_owned()));
    }
    let told = session.told();
    session.connection.execute_batch("SAVEPOINT request").map_err(unavailable)?;
    let done = catch_unwind(AssertUnwindSafe(|| work(session)))
        .unwrap_or_else(|_| Err(InboxError::Unavailable("a request to the store failed inside".to_owned())));
    let end = if done.is_ok() {
        "RELEASE request"
    } else {
        session.undo(told);
        "ROLLBACK TO request; RELEASE request"
    };
    if !session.connection.is_autocommit() {
        session.connection.execute_batch(end).map_err(unavailable)?;
    }
    done
}
