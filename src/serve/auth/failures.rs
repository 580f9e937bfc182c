//! Counts failing tries to sign in, so that nobody tries at will.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::{later, until};

/// Failures of one address that are answered as such, in a window.
pub const FAILURES_MAX: u32 = 10;
/// How long failures count.
pub const WINDOW: Duration = Duration::from_secs(60);
/// Addresses that are remembered, 10,000: less than a megabyte. The oldest is forgotten for a new one.
const ADDRESSES_MAX: usize = 10_000;

/// The failures of the last minute.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    by_address: HashMap<IpAddr, Window>,
    /// In the order in which windows end.
    order: VecDeque<(Timestamp, IpAddr)>,
}

#[derive(Debug)]
struct Window {
    since: Timestamp,
    count: u32,
}

/// Too many failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limited {
    /// Until the address may fail again; whole seconds, at least one.
    pub(super) seconds: u64,
    /// Whether this is the first that is too many.
    pub(super) is_first: bool,
}

impl Failures {
    /// Notes a failure.
    pub(super) fn note(&self, address: IpAddr, now: Timestamp) -> Result<(), Limited> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.forget(now);
        let address = network(address);
        if let Some(window) = seen.by_address.get_mut(&address) {
            window.count = window.count.saturating_add(1);
            if window.count <= FAILURES_MAX {
                return Ok(());
            }
            let left = until(now, later(window.since, WINDOW));
            let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
            return Err(Limited { seconds: seconds.max(1), is_first: window.count == FAILURES_MAX + 1 });
        }
        if seen.order.len() >= ADDRESSES_MAX
            && let Some((_, oldest)) = seen.order.pop_front()
        {
            seen.by_address.remove(&oldest);
        }
        seen.order.push_back((now, address));
        seen.by_address.insert(address, Window { since: now, count: 1 });
        Ok(())
    }
}

impl Seen {
    /// Forgets windows that are over, and those of a time that has not come, after the clock was set back.
    fn forget(&mut self, now: Timestamp) {
        while let Some((since, address)) = self.order.front().copied() {
            if since <= now && now < later(since, WINDOW) {
                break;
            }
            self.order.pop_front();
            self.by_address.remove(&address);
        }
    }
}

/// One caller's addresses: of IPv6 a network of 64 bits, which one customer has.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn ten_failures_a_minute_are_answered_and_the_next_is_told_to_wait() {
        let failures = Failures::default();
        for second in 0..10 {
            assert_eq!(failures.note(ip("192.0.2.1"), at(second)), Ok(()));
        }
        assert_eq!(failures.note(ip("192.0.2.1"), at(10)), Err(Limited { seconds: 50, is_first: true }));
        assert_eq!(failures.note(ip("::ffff:192.0.2.1"), at(59)), Err(Limited { seconds: 1, is_first: false }));
        assert_eq!(failures.note(ip("192.0.2.2"), at(59)), Ok(()));
        assert_eq!(failures.note(ip("192.0.2.1"), at(60)), Ok(()));
    }

    #[test]
    fn a_network_of_ipv6_is_one_caller() {
        let failures = Failures::default();
        for host in 0..10 {
            assert_eq!(failures.note(ip(&format!("2001:db8::{host}")), at(0)), Ok(()));
        }
        assert!(failures.note(ip("2001:db8::ffff:1"), at(0)).is_err());
        assert!(failures.note(ip("2001:db8:0:1::1"), at(0)).is_ok());
    }

    #[test]
    fn a_clock_that_is_set_back_locks_nobody_out() {
        let failures = Failures::default();
        let last = (0..11).map(|_| failures.note(ip("192.0.2.1"), at(1_000_000))).last();
        assert!(last.is_some_and(|last| last.is_err()));
        assert_eq!(failures.note(ip("192.0.2.1"), at(0)), Ok(()));
    }

    #[test]
    fn memory_is_bounded() {
        let failures = Failures::default();
        for number in 0..u32::try_from(ADDRESSES_MAX).unwrap() + 500 {
            assert_eq!(failures.note(IpAddr::V4(number.into()), at(0)), Ok(()));
        }
        let seen = failures.0.lock().unwrap();
        assert_eq!((seen.order.len(), seen.by_address.len()), (ADDRESSES_MAX, ADDRESSES_MAX));
    }
}
