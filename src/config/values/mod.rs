//! What single values may be: each type reads its own text and says what is wrong with it.

mod address;
mod choice;
mod grant;
mod mail;
mod mailbox;
mod outbox;
mod place;
mod settings;
mod sign_in;
mod source;
mod time;
mod timing;
mod token;
mod tool;
mod trial;
mod trust;
mod words;
mod zone;

pub(super) use address::{ConnectorUrl, Host, Listen, Store};
pub(super) use choice::Order;
pub(super) use grant::{HttpEntry, Origin, http_grant};
pub(super) use mail::{Relay, SmtpUser};
pub(super) use outbox::{OutboxUri, about as about_outbox, mistake as outbox_uri_mistake};
pub(super) use place::PlaceEntry;
pub(super) use settings::{Settings, setting_definition};
pub(super) use sign_in::{ClientId, HeaderName, Scope};
pub(super) use source::CommandEntry;
pub(super) use time::{Bytes, Span, duration, show};
pub(super) use timing::{AcknowledgedBy, AfterEntry, DigestSize, TimeOfDay, UnlessEntry};
pub(super) use token::{Claim, GrantKind, TokenUrl};
pub(super) use tool::ToolEntry;
pub(super) use trial::{EventName, MarkedBy, Moment};
pub(super) use trust::{KeyEntry, Pin};
pub(super) use words::{Member, NamePattern, TextPattern, VariableName};
pub(super) use zone::{ZoneName, is_inverted, zone};
