//! One thread for each subject (`thread: subject`).
//!
//! The first message of a subject begins a thread and is remembered; later ones are replies to it. The host makes the
//! deliveries of one subject one after the other, so that the second of two that arrive at once knows the first.

use alloc::borrow::ToOwned;
use alloc::string::String;

use switchbell_kit::fields::Fields;
use switchbell_kit::json::Object;
use switchbell_kit::types::{Answer, Delivery};

use crate::answer;
use crate::settings::Target;

/// Words by which Slack says that a message cannot be replied to: it is not there, or its thread is closed.
const GONE: &[&str] = &[
    "thread_not_found",
    "message_not_found",
    "invalid_thread_ts",
    "cannot_reply_to_message",
    "thread_locked",
    "restricted_action_thread_locked",
    "restricted_action_non_threadable_channel",
];

/// The longest `ts`, in characters: Slack's have 17.
const TS_MAX: usize = 40;

/// The thread that a delivery belongs to.
pub(crate) struct Thread<'a> {
    /// The channel of the settings, if its messages go by subject and the delivery has one.
    channel: Option<&'a str>,
    /// The message that began the thread, if there is one.
    parent: Option<String>,
}

impl<'a> Thread<'a> {
    /// Where the delivery belongs. A digest of several subjects belongs to none.
    pub(crate) fn of(target: &'a Target, delivery: &Delivery) -> Self {
        let channel = match target {
            Target::Channel { channel, by_subject: true, .. } if has_one_subject(delivery) => Some(channel.as_str()),
            _ => None,
        };
        let parent = channel.and_then(|channel| remembered(channel, delivery.memory.as_deref()?));
        Self { channel, parent }
    }

    /// The `ts` to reply to.
    pub(crate) fn parent(&self) -> Option<&str> {
        self.parent.as_deref()
    }

    /// The same without the message that is gone.
    pub(crate) fn begun_anew(self) -> Self {
        Self { parent: None, ..self }
    }

    /// Whether the answer to a reply says that there is nothing to reply to.
    pub(crate) fn is_gone(&self, answer: &Answer) -> bool {
        let Answer::Http(Ok(response)) = answer else { return false };
        let says_so = |word: &str| GONE.contains(&word);
        self.parent.is_some() && answer::fields(response).text("error").is_some_and(says_so)
    }

    /// What to remember after a message was posted: itself, unless it is a reply in the thread that is known. Slack posts
    /// a reply to a message that was deleted in the channel and says so by leaving out `thread_ts`.
    pub(crate) fn to_remember(&self, posted: &Fields) -> Option<String> {
        let to = self.channel?;
        let (ts, channel) = posted.text("ts").zip(posted.text("channel"))?;
        let is_reply = match (self.parent(), posted.object("message")) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(parent), Some(message)) => message.text("thread_ts") == Some(parent),
        };
        (!is_reply).then(|| Object::new().text("ts", ts).text("channel", channel).text("to", to).end())
    }
}

fn has_one_subject(delivery: &Delivery) -> bool {
    let mut subjects = delivery.notifications.iter().map(|notification| notification.subject.as_deref());
    let Some(Some(first)) = subjects.next() else { return false };
    subjects.all(|subject| subject == Some(first))
}

/// The `ts` that is remembered, if it is of this channel: the settings may name another by now.
fn remembered(channel: &str, memory: &str) -> Option<String> {
    let memory = Fields::read(memory.as_bytes(), 1).ok()?;
    let ts = memory.text("ts").filter(|ts| !ts.is_empty() && ts.len() <= TS_MAX)?;
    (memory.text("to") == Some(channel)).then(|| ts.to_owned())
}
