//! When something that ends by itself is taken up again: at once the first time, then later and later, for ever.

use std::time::{Duration, Instant};

/// What lasted so long went well: the next time is early again.
const CALM: Duration = Duration::from_secs(60);

/// Every wait is spread by so much to either side, so that what a server ended in one moment does not come back in one.
const SPREAD: f64 = 0.2;

/// The waits between two turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waits {
    /// The first.
    pub first: Duration,
    /// No wait is longer.
    pub most: Duration,
}

/// One thing that is taken up again and again.
#[derive(Debug)]
pub(super) struct Again {
    waits: Waits,
    turns: u32,
    since: Option<Instant>,
    at_least: Duration,
}

impl Again {
    pub(super) fn new(waits: Waits) -> Self {
        Self { waits, turns: 0, since: None, at_least: Duration::ZERO }
    }

    /// How long to wait until the next turn, the last one having ended now. `random` is from 0 to 1.
    pub(super) fn wait(&mut self, now: Instant, random: f64) -> Duration {
        let lasted = self.since.take().map(|since| now.saturating_duration_since(since));
        if lasted.is_some_and(|lasted| lasted >= CALM) {
            self.turns = self.turns.min(1);
        }
        let doubled = match self.turns {
            0 => Duration::ZERO,
            turns => self.waits.first.saturating_mul(2_u32.saturating_pow(turns - 1)).min(self.waits.most),
        };
        self.turns = self.turns.saturating_add(1);
        let spread = doubled.mul_f64(1.0 - SPREAD + 2.0 * SPREAD * random);
        spread.max(std::mem::take(&mut self.at_least))
    }

    /// The turn begins.
    pub(super) fn begins(&mut self, now: Instant) {
        self.since = Some(now);
    }

    /// The turn was of use: the next comes after the first wait.
    pub(super) fn is_of_use(&mut self) {
        self.turns = self.turns.min(1);
    }

    /// The server wants to hear from us no earlier than after this.
    pub(super) fn not_before(&mut self, wait: Duration) {
        self.at_least = wait;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITS: Waits = Waits { first: Duration::from_secs(1), most: Duration::from_secs(300) };

    fn waits(again: &mut Again, count: usize) -> Vec<u64> {
        (0..count).map(|_| again.wait(Instant::now(), 0.5).as_secs()).collect()
    }

    #[test]
    fn the_first_turn_is_at_once_and_the_later_ones_are_further_and_further_apart() {
        let mut again = Again::new(WAITS);
        assert_eq!(waits(&mut again, 12), [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(waits(&mut again, 1_000), [300; 1_000], "it never gives up, nor overflows");
        again.is_of_use();
        assert_eq!(waits(&mut again, 3), [1, 2, 4]);
    }

    #[test]
    fn a_wait_is_spread_and_honours_what_the_server_asked_for_once() {
        let mut again = Again::new(WAITS);
        let now = Instant::now();
        again.wait(now, 0.5);
        assert_eq!([again.wait(now, 0.0).as_millis(), again.wait(now, 1.0).as_millis()], [800, 2_400]);
        again.not_before(Duration::from_secs(900));
        assert_eq!(waits(&mut again, 2), [900, 8]);
    }

    #[test]
    fn what_lasted_long_is_taken_up_early() {
        let mut again = Again::new(WAITS);
        let began = Instant::now();
        waits(&mut again, 6);
        again.begins(began);
        assert_eq!(again.wait(began + CALM - Duration::from_secs(1), 0.5).as_secs(), 32);
        again.begins(began);
        assert_eq!(again.wait(began + CALM, 0.5).as_secs(), 1);
        assert_eq!(waits(&mut again, 1), [2]);
    }
}
