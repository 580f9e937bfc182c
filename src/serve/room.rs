//! How many connections may be open at once, in all and from one address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Resource, getrlimit};

/// Most connections at once, however many files may be open.
const CONNECTIONS_MAX: usize = 8_192;

/// Of the files that may be open connections get one part of so many; the rest is for the store, outboxes, deliveries and
/// commands on this machine.
const FILES_PARTS: usize = 2;

/// Of the connections one address gets one part of so many at most.
const ADDRESS_PARTS: usize = 2;

/// Counts connections. Its clones count the same ones.
#[derive(Clone, Debug)]
pub(super) struct Room(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// The place of one connection, free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    room: Room,
    counted: Option<IpAddr>,
}

impl Room {
    /// As much as the limit of open files allows.
    pub(super) fn of_this_process() -> Self {
        let files = getrlimit(Resource::Nofile).current.and_then(|files| usize::try_from(files).ok());
        Self::new(files.map_or(CONNECTIONS_MAX, |files| (files / FILES_PARTS).clamp(1, CONNECTIONS_MAX)))
    }

    /// For so many.
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Shared { most, taken: Mutex::default() }))
    }

    /// Takes a place, if one is left, for this address, where it is one whose connections are counted by themselves.
    pub(super) fn enter(&self, address: Option<IpAddr>) -> Option<Place> {
        let counted = address.map(network);
        let mut taken = self.taken();
        if taken.all >= self.0.most {
            return None;
        }
        if let Some(network) = counted {
            let own = taken.by_address.get(&network).copied().unwrap_or(0);
            if own >= self.0.most.div_ceil(ADDRESS_PARTS) {
                return None;
            }
            taken.by_address.insert(network, own + 1);
        }
        taken.all += 1;
        Some(Place { room: self.clone(), counted })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.room.taken();
        taken.all = taken.all.saturating_sub(1);
        let Some(network) = self.counted else { return };
        if let Some(own) = taken.by_address.get_mut(&network) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.by_address.remove(&network);
            }
        }
    }
}

/// What counts as one address: of IPv6 a whole /64, which any one host may have.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_gets_half_of_all_places_and_leaves_the_rest_to_others() {
        let room = Room::new(4);
        let from = |address: &str| room.enter(Some(address.parse().unwrap()));
        let own = [from("192.0.2.1"), from("::ffff:192.0.2.1")];
        assert!(own.iter().all(Option::is_some));
        assert!(from("192.0.2.1").is_none());
        let others = [from("2001:db8::1"), from("2001:db8::2")];
        assert!(others.iter().all(Option::is_some));
        assert!(from("192.0.2.3").is_none() && room.enter(None).is_none());
        drop(others);
        assert!(from("192.0.2.1").is_none());
        drop(own);
        assert!(room.taken().by_address.is_empty());
        assert!(from("192.0.2.1").is_some());
    }

    #[test]
    fn what_is_not_counted_by_address_may_take_all_places() {
        let room = Room::new(4);
        let places: Vec<Place> = std::iter::from_fn(|| room.enter(None)).collect();
        assert_eq!(places.len(), 4);
    }
}
