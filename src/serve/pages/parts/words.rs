//! Routes in words.

use crate::config::{Target, duration_text};
use crate::inbox::delivery::{OnUnknown, Schedule};
use crate::notification::Level;
use crate::route::Matcher;
use crate::route::timing::{By, Except, Timing, Unless};

/// `1 attempt`, `2 attempts`.
pub(in super::super) fn count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `1 delivery`, `2 deliveries`.
pub(in super::super) fn deliveries(count: usize) -> String {
    if count == 1 { "1 delivery".to_owned() } else { format!("{count} deliveries") }
}

/// `a`, `a or b`, `a, b or c`.
pub(in super::super) fn joined(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [firsts @ .., end] => format!("{} {last} {end}", firsts.join(", ")),
    }
}

/// What a route asks for, each condition with what it is about.
pub(in super::super) fn conditions(of: &Matcher) -> Vec<(&'static str, String)> {
    let lists = [("Source", &of.source), ("Name", &of.name), ("But not", &of.not), ("Subject", &of.subject)];
    let mut found: Vec<(&str, String)> =
        lists.into_iter().filter(|(_, list)| !list.is_empty()).map(|(key, list)| (key, joined(list, "or"))).collect();
    let level = |least: Level| if least == Level::Urgent { least.to_string() } else { format!("{least} or louder") };
    found.extend(of.level.map(|least| ("Level", level(least))));
    found
}

/// When a target hears of something: a line for each stage, in their order.
pub(in super::super) fn timing_words(of: &Timing) -> Vec<String> {
    let mut lines = Vec::new();
    let but = |except: Except| if except == Except::Urgent { ", but urgent at once" } else { "" };
    let unless = of.unless.map(|unless| match unless {
        Unless::AcknowledgedByPerson => "unless a person has acknowledged it",
        Unless::AcknowledgedByAnyone => "unless a person or an agent has acknowledged it",
    });
    match (&of.after, unless) {
        (Some(after), unless) => {
            let unless = unless.map(|words| format!(" {words}")).unwrap_or_default();
            lines.push(format!("{} after it came{}{unless}", duration_text(after.wait), but(after.except)));
        }
        (None, Some(unless)) => lines.push(unless.to_owned()),
        (None, None) => {}
    }
    if let Some(hold) = &of.hold {
        let zone = hold.zone.iana_name().unwrap_or("UTC");
        let time = |time: jiff::civil::Time| time.strftime("%H:%M").to_string();
        let (from, to) = (time(hold.from), time(hold.to));
        lines.push(format!("held from {from} to {to} ({zone}){}", but(hold.except)));
    }
    if let Some(collect) = &of.collect {
        let by = match collect.by {
            By::Subject => " of the same subject",
            By::Source => " of the same source",
            By::Name => " of the same name",
            By::None => "",
        };
        let wait = duration_text(collect.wait);
        lines.push(format!("collected for {wait}{by}, {} at most{}", collect.most, but(collect.except)));
    }
    if let Some(at_most) = &of.at_most {
        let per = duration_text(at_most.per);
        let but = if at_most.except == Except::Urgent { ", urgent not counted" } else { "" };
        lines.push(format!("{} at most in {per}, the rest as one{but}", at_most.count));
    }
    lines
}

/// What a target asks for when attempts fail, where that is not the usual.
pub(in super::super) fn retry_words(of: &Target) -> Vec<String> {
    let mut lines = Vec::new();
    if of.retry != Schedule::default() {
        let [first, most, end] = [of.retry.first, of.retry.most, of.retry.give_up].map(duration_text);
        lines.push(format!(
            "tried again after {first}, then less often, every {most} at the least; given up after {end}"
        ));
    }
    match of.on_unknown {
        Some(OnUnknown::Stop) => lines.push("not repeated where it may have been made".to_owned()),
        Some(OnUnknown::Retry) => lines.push("repeated where it may have been made".to_owned()),
        None => {}
    }
    if of.is_strict {
        lines.push("in strict order: one that fails keeps all later ones back".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::tz::TimeZone;

    use super::*;
    use crate::route::timing::{After, AtMost, Collect, Hold};

    #[test]
    fn timing_is_told_in_the_order_in_which_it_is_applied() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let timing = Timing {
            after: Some(After { wait: minutes(15), except: Except::Urgent }),
            unless: Some(Unless::AcknowledgedByPerson),
            hold: Some(Hold {
                from: jiff::civil::time(22, 0, 0, 0),
                to: jiff::civil::time(7, 0, 0, 0),
                zone: TimeZone::get("Europe/Berlin").unwrap(),
                except: Except::Nothing,
            }),
            collect: Some(Collect { by: By::Subject, wait: minutes(5), most: 50, except: Except::Nothing }),
            at_most: Some(AtMost { count: 5, per: minutes(60), except: Except::Urgent }),
        };
        assert_eq!(
            timing_words(&timing),
            [
                "15m after it came, but urgent at once unless a person has acknowledged it",
                "held from 22:00 to 07:00 (Europe/Berlin)",
                "collected for 5m of the same subject, 50 at most",
                "5 at most in 1h, the rest as one, urgent not counted",
            ]
        );
        assert!(timing_words(&Timing::default()).is_empty());
    }

    #[test]
    fn conditions_are_told_in_words() {
        let list = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let matcher = Matcher {
            name: list(&["domain.*", "crm.**", "mail"]),
            not: list(&["domain.test"]),
            level: Some(Level::Attention),
            ..Matcher::default()
        };
        let told = conditions(&matcher);
        let expected =
            [("Name", "domain.*, crm.** or mail"), ("But not", "domain.test"), ("Level", "attention or louder")];
        assert_eq!(told, expected.map(|(key, words)| (key, words.to_owned())));
    }
}
