//! The two kinds of files, key by key: what may stand where, what it is for, and what stands for it when it is left out.

mod connector;
mod mail;
mod plugins;
mod retention;
mod route;
mod secret;
mod server;
mod timing;
mod trial;

pub(super) use connector::{RawAuth, RawConnector, RawOAuth, RawOutbox, RawOwnPoll, RawSecretName};
pub(super) use mail::RawMail;
pub(super) use plugins::{RawGrant, RawHttpGrant, RawLimits, RawPlugins};
pub(super) use retention::{RawKept, RawRetention};
pub(super) use route::{RawConsumer, RawRoute, RawTarget, RawWhen, RawWorkspace};
pub(super) use secret::{RawSecret, RawSource, RawSourceCommand, RawToken};
pub(super) use server::{RawCommand, RawEntry, RawEntryOutbox, RawPoll, RawServer};
pub(super) use timing::{RawAfter, RawAtMost, RawCollect, RawHold, RawRetry, RawUnless};
pub(super) use trial::{EVENTS_MAX, RawExpected, RawTrial, RawTrialEvent, RawTrialMark, RawTrials};
