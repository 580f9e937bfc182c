//! The whole engine over weeks of traffic in seconds: the real store, dispatcher, queues and sandbox, a clock that is
//! moved by hand, and a destination that fails in every way. The clock moves only when nothing but time moves anything
//! on, so what happens depends on the seed and not on the machine.

mod engine;
mod ledger;
mod sink;
mod traffic;

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::date;
use jiff::tz::TimeZone;

use engine::Engine;
use ledger::Ledger;
use traffic::{Deed, traffic};

/// From whose day the weeks begin: quiet hours are kept there, and its clocks change on the way.
const ZONE: &str = "Europe/Berlin";

fn first_day(year: i16, month: i8, day: i8) -> Timestamp {
    TimeZone::get(ZONE).unwrap().to_timestamp(date(year, month, day).at(9, 0, 0, 0)).unwrap()
}

/// Runs weeks from `start` and looks at everything that came of them.
async fn check(start: Timestamp, seed: u64) {
    fastrand::seed(seed);
    let mut engine = Engine::open(start).await;
    let mut ledger = Ledger::default();
    for (at, deed) in traffic(start, seed) {
        engine.until(at).await;
        match deed {
            Deed::Events(events) => engine.accept(events, &mut ledger).await,
            Deed::Mark { back, deed, is_agent } => engine.mark(back, deed, is_agent).await,
            Deed::Jump(seconds) => engine.jump(seconds).await,
            Deed::Crash(events) => engine.crash(events, &mut ledger).await,
            Deed::Restart => engine.restart().await,
            Deed::Reload => engine.reload().await,
            Deed::Retry => engine.retry(&mut ledger).await,
        }
    }
    // Whatever is owed has come to an end long before.
    for _ in 0..3 {
        engine.until(engine.now() + Duration::from_secs(36 * 3_600)).await;
        engine.retry(&mut ledger).await;
    }
    engine.until(engine.now() + Duration::from_secs(36 * 3_600)).await;
    ledger.check(&engine).await;
    engine.close().await;
}

#[tokio::test]
async fn weeks_in_which_an_hour_is_left_out_lose_nothing_and_keep_every_promise() {
    check(first_day(2027, 3, 15), 1).await;
}

#[tokio::test]
async fn weeks_in_which_an_hour_comes_twice_lose_nothing_and_keep_every_promise() {
    check(first_day(2026, 10, 12), 2).await;
}
