//! Push queues (push-notifications seed): [`envelope`] says what an event of one becomes, [`page`] what a page of pending
//! events holds. They are pure, and know not
//! how a queue is reached.

pub mod envelope;
mod media;
pub mod page;
