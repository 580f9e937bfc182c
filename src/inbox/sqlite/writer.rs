//! The thread that writes: it groups what is asked for at the same time into one commit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::changes::Changes;
use super::errors::unavailable;
use super::log::Bound;
use super::rows::prepare;
use super::session::{Desk, Session};
use super::{InboxError, Store};

/// Requests that may wait for the writer; beyond, those who ask wait in turn.
const QUEUE_MAX: usize = 1_024;

/// Requests in one commit: it bounds how long the first of them waits for the others.
const GROUP_MAX: usize = 256;

/// What came of a request's work; the answer waits inside.
type Ran = Result<(), InboxError>;

/// Something to be written.
trait Ask: Send {
    /// Runs in the transaction, perhaps twice: when a request of its group failed, all are rolled back and run again.
    fn run(&mut self, session: &mut Session<'_>) -> Ran;

    /// Tells whoever asked: none when it was written and the commit holds, else why not.
    fn reply(self: Box<Self>, failed: Option<InboxError>);
}

type Request = Box<dyn Ask>;

/// Work, what it found, and who waits for that.
struct Asked<T, F> {
    work: F,
    found: Option<T>,
    answer: oneshot::Sender<Result<T, InboxError>>,
}

impl<T, F> Ask for Asked<T, F>
where
    T: Send,
    F: FnMut(&mut Session<'_>) -> Result<T, InboxError> + Send,
{
    fn run(&mut self, session: &mut Session<'_>) -> Ran {
        self.found = Some((self.work)(session)?);
        Ok(())
    }

    fn reply(self: Box<Self>, failed: Option<InboxError>) {
        let nothing = || InboxError::Unavailable("the write came to nothing".to_owned());
        let Self { found, answer, .. } = *self;
        // Whoever asked may have gone; the work stands all the same.
        drop(answer.send(failed.map_or_else(|| found.ok_or_else(nothing), Err)));
    }
}

#[derive(Debug)]
pub(super) struct Writer {
    requests: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        store: Store,
        desk: Arc<Desk>,
        changes: Changes,
        mut bound: Bound,
    ) -> std::io::Result<Self> {
        let (requests, queue) = mpsc::channel(QUEUE_MAX);
        let run = move || write(Session::new(&connection, store, desk, changes), queue, &mut bound);
        let thread = std::thread::Builder::new().name("inbox-writer".to_owned()).spawn(run)?;
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }

    /// Runs `work` in a transaction and returns its answer once that is on disk.
    pub(super) async fn run<T, F>(&self, work: F) -> Result<T, InboxError>
    where
        T: Send + 'static,
        F: FnMut(&mut Session<'_>) -> Result<T, InboxError> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let request = Box::new(Asked { work, found: None, answer });
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

fn write(mut session: Session<'_>, mut queue: mpsc::Receiver<Request>, bound: &mut Bound) {
    let mut group = Vec::with_capacity(GROUP_MAX);
    while queue.blocking_recv_many(&mut group, GROUP_MAX) > 0 {
        // One by one costs a savepoint each, which is paid only when one of them fails.
        let results = match together(&mut session, &mut group) {
            Ok(()) => vec![Ok(()); group.len()],
            Err(_) => one_by_one(&mut session, &mut group),
        };
        for (request, result) in group.drain(..).zip(results) {
            request.reply(result.err());
        }
        bound.keep(session.connection);
    }
}

/// Runs all in one transaction, or none.
fn together(session: &mut Session, group: &mut [Request]) -> Result<(), InboxError> {
    transaction(session, |session| group.iter_mut().try_for_each(|request| guarded(session, request)))
}

/// Runs all in one transaction, in which each may fail alone.
fn one_by_one(session: &mut Session, group: &mut [Request]) -> Vec<Ran> {
    let mut results = Vec::with_capacity(group.len());
    let committed = transaction(session, |session| {
        results.extend(group.iter_mut().map(|request| in_savepoint(session, request)));
        Ok(())
    });
    match committed {
        Ok(()) => results,
        Err(error) => vec![Err(error); group.len()],
    }
}

/// What the work made known is told once it is on disk, and taken back when it is not.
fn transaction<'c>(session: &mut Session<'c>, work: impl FnOnce(&mut Session<'c>) -> Ran) -> Ran {
    let told = session.told();
    let done = execute(session, "BEGIN IMMEDIATE").and_then(|()| work(session)).and_then(|()| end(session));
    if !session.connection.is_autocommit() {
        // Work that failed, or a commit that was refused, leaves its transaction open; nothing of it may stay.
        let _ = execute(session, "ROLLBACK");
    }
    match &done {
        Ok(()) => session.tell(),
        Err(_) => session.undo(told),
    }
    done
}

fn end(session: &mut Session) -> Ran {
    require_open(session)?;
    session.write_changes()?;
    require_open(session)?;
    execute(session, "COMMIT")
}

/// SQLite itself rolls back the whole transaction when a statement meets a full or failing disk.
fn require_open(session: &Session) -> Ran {
    if session.connection.is_autocommit() {
        let message = "the disk is full or failing: nothing of this write was kept, and it will be tried again";
        return Err(InboxError::Unavailable(message.to_owned()));
    }
    Ok(())
}

/// One request fails alone, unless SQLite ended the whole transaction for it.
fn in_savepoint(session: &mut Session, request: &mut Request) -> Ran {
    if session.connection.is_autocommit() {
        return Err(InboxError::Unavailable("the transaction was ended by a request before this one".to_owned()));
    }
    let told = session.told();
    execute(session, "SAVEPOINT request")?;
    let mut done = guarded(session, request);
    if done.is_ok() && !session.connection.is_autocommit() {
        done = session.write_changes();
    }
    if !session.connection.is_autocommit() {
        if done.is_err() {
            execute(session, "ROLLBACK TO request")?;
        }
        execute(session, "RELEASE request")?;
    }
    if done.is_err() {
        session.undo(told);
    }
    done
}

fn guarded(session: &mut Session, request: &mut Request) -> Ran {
    catch_unwind(AssertUnwindSafe(|| request.run(session)))
        .unwrap_or_else(|_| Err(InboxError::Unavailable("a request to the store failed inside".to_owned())))
}

fn execute(session: &Session, sql: &str) -> Ran {
    prepare(session.connection, sql)?.execute([]).map(drop).map_err(unavailable)
}
