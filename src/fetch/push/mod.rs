//! Push queues (push-notifications seed): [`envelope`] says what an event of one becomes, [`page`] what a page of pending
//! events holds, [`receiver`] follows one queue for as long as the server runs. All but the last are pure, and none knows
//! how a queue is reached.

pub mod envelope;
mod media;
pub mod page;
pub mod receiver;
