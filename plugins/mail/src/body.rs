//! The text of a mail: one notification, or a digest.

use alloc::format;
use alloc::string::String;

use switchbell_kit::types::{Delivery, Level, Notification};
use switchbell_kit::{level, text};

use crate::subject::{title, total};
use crate::write::{block, line, paragraph};

/// The longest text, in bytes: many relays refuse mails of some megabytes, and nobody reads that much.
pub(crate) const TEXT_MAX: usize = 100 * 1024;

/// What is kept for the lines below a digest, in bytes.
const FOOTER_MAX: usize = 4 * 1024;

/// How much of each notification a digest shows: characters of the body and of the link. It shows as much of all of them
/// as fits; with the least, it shows fewer of them.
const SHARES: [(usize, usize); 5] = [(2_000, 2_048), (500, 2_048), (120, 500), (0, 200), (0, 0)];

/// The most characters of a name that the host or a connector gave: names are shorter.
const NAME_MAX: usize = 200;

/// The most characters of a URL.
const URL_MAX: usize = 2_048;

/// The text of the mail.
pub(crate) fn render(delivery: &Delivery) -> String {
    let mut out = match delivery.notifications.as_slice() {
        [only] if delivery.omitted == 0 => single(only),
        notifications => digest(notifications, delivery),
    };
    out.push('\n');
    footer(&mut out, delivery);
    out
}

fn single(notification: &Notification) -> String {
    let mut out = String::new();
    let what = format!("{}: {}", level::word(notification.level), text::cut(&notification.title, NAME_MAX));
    paragraph(&mut out, "", "  ", &what);
    out.push('\n');
    let body = text::cut(notification.body.as_deref().unwrap_or_default(), 2_000);
    if !body.trim().is_empty() {
        block(&mut out, "  ", &body);
        out.push('\n');
    }
    details(&mut out, "", notification, URL_MAX);
    out
}

/// What there is to know of it, a line each.
fn details(out: &mut String, indent: &str, notification: &Notification, link_max: usize) {
    let mut detail = |name: &str, value: &str| {
        let first = format!("{indent}{name}");
        let rest = format!("{indent}         ");
        if !line(value).is_empty() {
            paragraph(out, &first, &rest, value);
        }
    };
    let Notification { subject, link, source, name, timestamp, .. } = notification;
    detail("Subject: ", &text::cut(subject.as_deref().unwrap_or_default(), NAME_MAX));
    let link = link.as_deref().filter(|link| link.chars().nth(link_max).is_none());
    detail("Link:    ", link.unwrap_or_default());
    detail("Source:  ", &format!("{}, {}", text::cut(source, NAME_MAX), text::cut(name, NAME_MAX)));
    detail("When:    ", &when(timestamp));
}

/// A moment as a person reads it. Anything else than the host's form stays as it is.
fn when(timestamp: &str) -> String {
    let cut = || text::cut(timestamp, NAME_MAX);
    let Some((date, time)) = timestamp.strip_suffix('Z').and_then(|moment| moment.split_once('T')) else {
        return cut();
    };
    let time = time.split('.').next().unwrap_or_default();
    let plain =
        |text: &str| text.len() <= 10 && text.bytes().all(|byte| byte.is_ascii_digit() || b"-:".contains(&byte));
    if plain(date) && plain(time) { format!("{date} {time} UTC") } else { cut() }
}

fn digest(notifications: &[Notification], delivery: &Delivery) -> String {
    let mut out = String::new();
    let urgent = notifications.iter().filter(|notification| notification.level == Level::Urgent).count();
    let urgent = if urgent == 0 { String::new() } else { format!(", {urgent} urgent") };
    paragraph(&mut out, "", "  ", &format!("{}{urgent}", text::cut(&title(delivery), 2 * NAME_MAX)));
    let room = TEXT_MAX - FOOTER_MAX - out.len();
    let shares = SHARES.iter().map(|share| items(notifications, *share, room));
    let (shown, list) = best(shares, notifications.len());
    out.push_str(&list);
    let more = total(delivery).saturating_sub(u64::try_from(shown).unwrap_or(u64::MAX));
    if more > 0 {
        out.push('\n');
        let place = inbox(delivery).map_or_else(String::new, |url| format!(": {url}"));
        paragraph(&mut out, "", "  ", &format!("and {more} more{place}"));
    }
    out
}

/// The first list that holds all, else the last one.
fn best(lists: impl Iterator<Item = (usize, String)>, all: usize) -> (usize, String) {
    let mut last = (0, String::new());
    for list in lists {
        last = list;
        if last.0 == all {
            break;
        }
    }
    last
}

/// As many notifications as there is room for, oldest first, and how many these are.
fn items(notifications: &[Notification], (body_max, link_max): (usize, usize), room: usize) -> (usize, String) {
    let mut out = String::new();
    for (number, notification) in notifications.iter().enumerate() {
        let before = out.len();
        out.push('\n');
        let what = format!("{}: {}", level::word(notification.level), text::cut(&notification.title, NAME_MAX));
        paragraph(&mut out, &format!("{}. ", number + 1), "   ", &what);
        details(&mut out, "   ", notification, link_max);
        let body = text::cut(notification.body.as_deref().unwrap_or_default(), body_max);
        if !body.trim().is_empty() {
            out.push('\n');
            block(&mut out, "     ", &body);
        }
        if out.len() > room {
            out.truncate(before);
            return (number, out);
        }
    }
    (notifications.len(), out)
}

/// Where it comes from.
fn footer(out: &mut String, delivery: &Delivery) {
    if let Some(url) = inbox(delivery) {
        paragraph(out, "", "  ", &format!("Inbox: {url}"));
    }
    let (workspace, route) = (text::cut(&delivery.workspace, NAME_MAX), text::cut(&delivery.route, NAME_MAX));
    paragraph(out, "", "  ", &format!("Sent for the workspace {workspace} by its route {route}."));
}

fn inbox(delivery: &Delivery) -> Option<String> {
    let url = line(delivery.inbox_url.as_deref()?);
    (!url.is_empty() && url.len() <= URL_MAX / 2).then_some(url)
}
