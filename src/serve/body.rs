//! Bodies of requests: so large, and so long on their way, at most. Who sent one is judged again once it is there, since much may
//! have happened to the token meanwhile.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequestParts, Request};
use futures_util::StreamExt;

use super::Served;
use super::auth::Caller;
use super::problem::Problem;
use crate::clock::Clock;

/// How long a body may take to come, in all.
pub(super) const TIME_MAX: Duration = Duration::from_secs(30);

/// How long a plugin may take to come, in all.
pub(super) const UPLOAD_TIME_MAX: Duration = Duration::from_secs(120);

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
/// [`Problem::TooLarge`] for one of more bytes, of which nothing is read where it says so itself; [`Problem::Late`] for one that
/// takes longer; [`Problem::Wrong`] for one that breaks off.
pub(super) async fn read(
    body: Body,
    bytes_max: usize,
    time_max: Duration,
    clock: &Clock,
) -> Result<Vec<u8>, Problem> {
    let too_large = || Problem::TooLarge(format!("the body has more than {bytes_max} bytes, which is the most here"));
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large());
    }
    let whole = async {
        let mut chunks = body.into_data_stream();
        let mut bytes = Vec::new();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| Problem::Wrong(format!("the body did not come whole: {error}")))?;
            if bytes.len() + chunk.len() > bytes_max {
                return Err(too_large());
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
}
