//! Threads of their own for the steps: WebAssembly computes without yielding, and must not hold up the async threads. What
//! is known to be quick runs [there](super::place) all the same.

use std::any::Any;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::sync::{Semaphore, oneshot};

use super::limits::{QUEUED_STEPS_MAX, STACK_BYTES_MAX};
use super::text::one_line;

/// The stack of a step's thread: the plugin's own and room for the host below it.
pub(super) const THREAD_STACK_BYTES: usize = STACK_BYTES_MAX + (1536 << 10);

type Job = Box<dyn FnOnce() + Send>;

/// A fixed number of threads and the queue they share. They end when it is dropped and the queue is empty.
#[derive(Debug)]
pub(super) struct StepThreads {
    queue: Arc<Queue>,
    /// Permits to wait in the queue.
    room: Arc<Semaphore>,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Queue").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl StepThreads {
    pub(super) fn start(count: NonZeroUsize) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::default());
        // Built first, so that threads already started end if one more cannot be.
        let threads = Self { queue, room: Arc::new(Semaphore::new(QUEUED_STEPS_MAX)) };
        for number in 0..count.get() {
            let queue = Arc::clone(&threads.queue);
            let builder = thread::Builder::new().name(format!("sandbox-step-{number}")).stack_size(THREAD_STACK_BYTES);
            builder.spawn(move || work(&queue))?;
        }
        Ok(threads)
    }

    /// Runs `job` on one of the threads, after waiting for room in the queue. The job runs to its end even if the future
    /// is dropped once it was queued.
    ///
    /// # Errors
    /// What the job's panic said, if it panicked.
    pub(super) async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
        let lost = || "its thread ended".to_owned();
        let room = Arc::clone(&self.room).acquire_owned().await.map_err(|_closed| lost())?;
        let (answer, answered) = oneshot::channel();
        self.push(Box::new(move || {
            drop(room);
            let result = caught(job);
            // Nobody waits any more if the future was dropped.
            let _ = answer.send(result);
        }));
        answered.await.unwrap_or_else(|_gone| Err(lost()))
    }

    /// Has `value` dropped on one of the threads: giving back an instance's memory can take a while. The caller bounds
    /// how many there are.
    pub(super) fn discard(&self, value: impl Send + 'static) {
        self.push(Box::new(move || drop(value)));
    }

    fn push(&self, job: Job) {
        self.queue.lock().jobs.push_back(job);
        self.queue.arrived.notify_one();
    }
}

impl Drop for StepThreads {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.arrived.notify_all();
    }
}

impl Queue {
    /// Jobs run outside the lock, so no panic of theirs can leave it in disorder.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<Job> {
        let idle = |waiting: &mut Waiting| waiting.jobs.is_empty() && !waiting.closed;
        let mut waiting = self.arrived.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        waiting.jobs.pop_front()
    }
}

fn work(queue: &Queue) {
    while let Some(job) = queue.next() {
        // A job that answers catches its own panic; this is for what is only dropped.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

/// What a job answers, or what its panic said.
pub(super) fn caught<T>(job: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(job)).map_err(|payload| panic_message(&*payload))
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", one_line(text.unwrap_or("without a message"), 300))
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::task::Poll;

    use super::*;

    async fn is_pending<F: Future + Unpin>(future: &mut F) -> bool {
        poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context).is_pending())).await
    }

    fn one_thread() -> StepThreads {
        StepThreads::start(NonZeroUsize::MIN).unwrap()
    }

    #[tokio::test]
    async fn a_panic_is_an_answer_and_the_thread_lives_on() {
        let threads = one_thread();
        let panicked = threads.run(|| -> u8 { panic!("oh\nno") }).await;
        assert_eq!(panicked, Err("it panicked: oh no".into()));
        assert_eq!(threads.run(|| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn a_panic_in_a_drop_leaves_the_thread_alive() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("boom");
            }
        }
        let threads = one_thread();
        threads.discard(Bomb);
        assert_eq!(threads.run(|| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn a_full_queue_makes_the_next_wait() {
        let threads = one_thread();
        let (release, gate) = std::sync::mpsc::channel::<()>();
        let blocker = threads.run(move || gate.recv().is_ok());
        tokio::pin!(blocker);
        assert!(is_pending(&mut blocker).await);
        let _full = threads.room.acquire_many(QUEUED_STEPS_MAX as u32).await.unwrap();
        let next = threads.run(|| 7);
        tokio::pin!(next);
        assert!(is_pending(&mut next).await);
        assert!(threads.queue.lock().jobs.is_empty());
        release.send(()).unwrap();
        assert_eq!(blocker.await, Ok(true));
        drop(_full);
        assert_eq!(next.await, Ok(7));
    }

    #[tokio::test]
    async fn dropping_the_threads_finishes_what_is_queued() {
        let threads = one_thread();
        let (sender, receiver) = oneshot::channel();
        threads.push(Box::new(move || sender.send(7).unwrap()));
        drop(threads);
        assert_eq!(receiver.await, Ok(7));
    }
}
