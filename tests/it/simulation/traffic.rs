//! What happens from outside in some weeks: drawn from a seed.

use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;
use switchbell::inbox::Deed as Done;
use switchbell::notification::{Event, Level};

const DAYS: u64 = 21;
const HOUR: u64 = 3_600;
/// Moments at which events arrive.
const BURSTS: usize = 300;
/// Events that arrive at one moment, at most.
const BURST_MOST: usize = 8;
const SUBJECTS: usize = 12;

/// Something from outside.
#[derive(Debug)]
pub enum Deed {
    Events(Vec<Event>),
    /// Somebody reads or acknowledges the notification that came so many before the last.
    Mark {
        back: u64,
        deed: Done,
        is_agent: bool,
    },
    /// The clock is set by so many seconds.
    Jump(i64),
    /// The process is killed while the destination works on these.
    Crash(Vec<Event>),
    Restart,
    Reload,
    /// A person has everything that is dead or blocked made again.
    Retry,
}

/// Everything that happens, in its order.
pub fn traffic(start: Timestamp, seed: u64) -> Vec<(Timestamp, Deed)> {
    let mut rng = Rng::with_seed(seed);
    let mut numbers = 0;
    let mut deeds: Vec<(u64, Deed)> = Vec::new();
    for _ in 0..BURSTS {
        let at = rng.u64(0..DAYS * 24 * HOUR);
        let count = rng.usize(1..=BURST_MOST);
        deeds.push((at, Deed::Events(events(&mut rng, count, &mut numbers))));
        let (back, is_agent) = (rng.u64(0..10), rng.bool());
        let deed = if rng.u8(0..3) > 0 { Done::Acknowledge } else { Done::Read };
        deeds.push((at + rng.u64(1..HOUR), Deed::Mark { back, deed, is_agent }));
    }
    for day in 1..DAYS {
        // Every hour of the day is hit once: in quiet hours, at their edges, and on days that are longer or shorter.
        let at = |rng: &mut Rng| day * 24 * HOUR + rng.u64(0..24 * HOUR);
        deeds.push((at(&mut rng), Deed::Retry));
        match day % 5 {
            0 => deeds.push((at(&mut rng), Deed::Restart)),
            1 => deeds.push((at(&mut rng), Deed::Jump(-3_600))),
            2 => deeds.push((at(&mut rng), Deed::Crash(events(&mut rng, BURST_MOST, &mut numbers)))),
            3 if day > 10 => deeds.push((at(&mut rng), Deed::Reload)),
            4 => deeds.push((at(&mut rng), Deed::Jump(rng.i64(HOUR as i64..40 * HOUR as i64)))),
            _ => {}
        }
    }
    deeds.sort_by_key(|(at, _)| *at);
    deeds.into_iter().map(|(at, deed)| (start + Duration::from_secs(at), deed)).collect()
}

fn events(rng: &mut Rng, count: usize, numbers: &mut u64) -> Vec<Event> {
    let event = |_| {
        *numbers += 1;
        let level = match rng.u8(0..10) {
            0 => Level::Urgent,
            1..4 => Level::Attention,
            _ => Level::Info,
        };
        let subject = (rng.u8(0..10) > 0).then(|| format!("site-{}.example", rng.usize(0..SUBJECTS)));
        Event {
            event_id: format!("event-{numbers}"),
            name: rng.choice(["domain.active", "domain.failed", "mail.bounced"]).unwrap_or_default().to_owned(),
            timestamp: Timestamp::UNIX_EPOCH,
            level,
            subject,
            title: format!("event {numbers}"),
            body: None,
            link: None,
            data: "{}".to_owned(),
            content: None,
        }
    };
    (0..count).map(event).collect()
}
