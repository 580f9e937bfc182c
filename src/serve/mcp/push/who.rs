//! Whose queue it is: the token says it, and nothing that stands in a request.

use super::refusal::Refusal;
use crate::config::Config;
use crate::notification::Name;
use crate::serve::Served;
use crate::serve::auth::{Caller, Right};

/// A queue: of a workspace, its consumer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Queue {
    pub(super) workspace: Name,
    pub(super) consumer: Name,
}

impl Queue {
    /// The queue of a caller. Getting, acknowledging and being told live need the same.
    pub(super) fn of(served: &Served, caller: &Caller) -> Result<Self, Refusal> {
        let (Some(workspace), Some(consumer)) = (&caller.workspace, &caller.consumer) else {
            return Err(Refusal::no_consumer(
                "this token is no consumer's, and queues are theirs: have one made with `switchbell token create --role agent \
                 --workspace WORKSPACE --consumer NAME`",
            ));
        };
        if !(caller.may(Right::ReadInbox) && caller.may(Right::Mark)) {
            return Err(Refusal::no_consumer(format_args!(
                "this token has not both scopes: a queue needs read and ack; have one made with `switchbell token create \
                 --role agent --workspace {workspace} --consumer {consumer}`"
            )));
        }
        let queue = Self { workspace: workspace.clone(), consumer: consumer.clone() };
        let config = served.config.borrow();
        if config.aside.contains(workspace) {
            return Err(Refusal::internal(format_args!(
                "the file of workspace {workspace} has mistakes, so nobody knows its consumers: its admin or the operator must \
                 mend it (`switchbell check` shows how)"
            )));
        }
        match queue.is_in(&config) {
            true => Ok(queue),
            false => Err(Refusal::no_consumer(format_args!(
                "{consumer} has no queue: write `consumers: {{ {consumer}: {{}} }}` into the file of workspace {workspace}, with \
                 `when` for what should join it"
            ))),
        }
    }

    /// Whether the workspace's file has it.
    pub(super) fn is_in(&self, config: &Config) -> bool {
        config.workspaces.get(&self.workspace).is_some_and(|workspace| workspace.consumers.has(&self.consumer))
    }
}
