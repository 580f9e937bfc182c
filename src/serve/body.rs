//! Bodies of requests: so large, and so long on their way, at most. Who sent one is judged again once it is there, since much may
//! have happened to the token meanwhile.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, HttpBody};
use axum::extract::{FromRequestParts, Request};
use futures_util::StreamExt;
use tokio::sync::Semaphore;

use super::Served;
use super::auth::Caller;
use super::problem::Problem;
use crate::clock::Clock;

/// How long a body may take to come, in all.
pub(super) const TIME_MAX: Duration = Duration::from_secs(30);

/// How long a plugin may take to come, in all.
pub(super) const UPLOAD_TIME_MAX: Duration = Duration::from_secs(120);

/// What is read and thrown away of a body that is too large: those who send little more than they may hear why it is refused.
const PASSED_OVER_BYTES_MAX: u64 = 1 << 20;

/// Bodies of more bytes are large.
const LARGE_BYTES: usize = 64 << 10;

/// Large bodies that are read at once, whoever sends them; more wait for their turn, within their time.
const LARGE_MAX: usize = 64;

/// The turns of large bodies: the memory is that of the process.
static LARGE: Semaphore = Semaphore::const_new(LARGE_MAX);

/// The body of a request by somebody who is known, and who may still do the same now that it has come.
///
/// # Errors
/// As [`read`] and [`Gate::still`](super::auth::Gate::still).
pub(super) async fn asked(
    request: Request,
    served: &Arc<Served>,
    bytes_max: usize,
    time_max: Duration,
) -> Result<Vec<u8>, Problem> {
    let (mut parts, body) = request.into_parts();
    let bytes = read(body, bytes_max, time_max, &served.clock).await?;
    match parts.extensions.get::<Caller>() {
        Some(caller) => served.gate.still(caller).await?,
        None => drop(Caller::from_request_parts(&mut parts, served).await?),
    }
    Ok(bytes)
}

/// All of a body.
///
/// # Errors
/// [`Problem::TooLarge`] for one of more bytes, of which nothing is kept; [`Problem::Late`] for one that
/// takes longer; [`Problem::Wrong`] for one that breaks off.
pub(super) async fn read(body: Body, bytes_max: usize, time_max: Duration, clock: &Clock) -> Result<Vec<u8>, Problem> {
    read_in_turn(body, bytes_max, time_max, clock, &LARGE).await
}

async fn read_in_turn(
    body: Body,
    bytes_max: usize,
    time_max: Duration,
    clock: &Clock,
    turns: &Semaphore,
) -> Result<Vec<u8>, Problem> {
    let too_large = || Problem::TooLarge(format!("the body has more than {bytes_max} bytes, which is the most here"));
    let says = body.size_hint().lower();
    let mut chunks = body.into_data_stream();
    let whole = async {
        if says > bytes_max as u64 {
            if says <= bytes_max as u64 + PASSED_OVER_BYTES_MAX {
                pass_over(&mut chunks).await;
            }
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        let mut turn = None;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| Problem::Wrong(format!("the body did not come whole: {error}")))?;
            if bytes.len() + chunk.len() > bytes_max {
                pass_over(&mut chunks).await;
                return Err(too_large());
            }
            if turn.is_none() && bytes.len() + chunk.len() > LARGE_BYTES {
                turn = turns.acquire().await.ok();
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    };
    tokio::select! {
        biased;
        read = whole => read,
        () = clock.sleep(time_max) => {
            let seconds = time_max.as_secs();
            Err(Problem::Late(format!("the body did not come whole within {seconds} s, which is the most here: send it at once")))
        }
    }
}

/// Reads on a little and keeps nothing: whoever still sends would otherwise lose the answer with the connection.
async fn pass_over(chunks: &mut BodyDataStream) {
    let mut left = PASSED_OVER_BYTES_MAX;
    while let Some(Ok(chunk)) = chunks.next().await {
        left = left.saturating_sub(chunk.len() as u64);
        if left == 0 {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{FutureExt, stream};
    use jiff::Timestamp;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn a_body_that_does_not_come_in_time_is_late_however_often_a_byte_comes() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let (bytes, coming) = tokio::sync::mpsc::unbounded_channel::<&[u8]>();
        let pieces = stream::unfold(coming, async |mut coming| {
            let piece = coming.recv().await?;
            Some((Ok::<_, Infallible>(piece), coming))
        });
        let mut read = Box::pin(read(Body::from_stream(pieces), 100, TIME_MAX, &clock));
        for _ in 1..TIME_MAX.as_secs() {
            bytes.send(b"1").unwrap();
            assert!((&mut read).now_or_never().is_none());
            clock.advance(SECOND);
        }
        assert!((&mut read).now_or_never().is_none());
        clock.advance(SECOND);
        let late = read.await.unwrap_err();
        assert_eq!(late.json().status, 408);
        assert!(late.to_string().contains("within 30 s"), "{late}");
    }

    #[tokio::test]
    async fn a_body_has_so_many_bytes_at_most() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let of = |pieces: &'static [&'static str]| {
            Body::from_stream(stream::iter(pieces.iter().map(|piece| Ok::<_, Infallible>(*piece))))
        };
        assert_eq!(read(of(&["12", "34"]), 4, TIME_MAX, &clock).await.unwrap(), b"1234");
        for body in [of(&["12", "345"]), Body::from("12345")] {
            assert_eq!(read(body, 4, TIME_MAX, &clock).await.unwrap_err().json().status, 413);
        }
    }

    #[tokio::test]
    async fn a_large_body_waits_for_its_turn_and_a_small_one_does_not() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let turns = Semaphore::new(1);
        let (large, small) = (vec![0; LARGE_BYTES + 1], vec![0; LARGE_BYTES]);
        let read = |body: &[u8]| read_in_turn(Body::from(body.to_vec()), 1 << 20, TIME_MAX, &clock, &turns);
        let other = turns.acquire().await.unwrap();
        assert_eq!(read(&small).await.unwrap(), small);
        let mut waits = Box::pin(read(&large));
        assert!((&mut waits).now_or_never().is_none());
        drop(other);
        assert_eq!(waits.await.unwrap(), large);
        let _other = turns.acquire().await.unwrap();
        let mut late = Box::pin(read(&large));
        assert!((&mut late).now_or_never().is_none());
        clock.advance(TIME_MAX);
        assert_eq!(late.await.unwrap_err().json().status, 408);
    }
}
