//! Words of a target that stand for a choice, each with the words that people write for it elsewhere.

use super::super::read::FromText;
use super::super::schema::{Form, Words, word};
use super::super::suggest;
use crate::inbox::delivery::OnUnknown;
use crate::route::timing::{By, Except};

/// `order` of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum Order {
    /// A delivery that fails lets later ones pass.
    BestEffort,
    /// A delivery that fails keeps later ones back.
    Strict,
}

/// What one of a few words stands for; else the message `objection` with the word that was probably meant, which `meant`
/// may know better than its spelling.
fn value<T: Words>((text, quoted): (&str, &str), objection: &str, meant: &[(&str, &'static str)]) -> Result<T, String> {
    if let Some(value) = word(text) {
        return Ok(value);
    }
    let known: Vec<&str> = T::words().into_iter().map(|(word, ..)| word).collect();
    let text = text.to_ascii_lowercase();
    let meant = meant.iter().find(|(other, _)| *other == text).map(|(_, word)| *word);
    let meant = meant.or_else(|| suggest::closest(&text, &known));
    let meant = meant.map_or_else(String::new, |meant| format!("; for {quoted} write {meant}"));
    Err(format!("{quoted} {objection}{meant}"))
}

impl FromText for Order {
    const WANTED: &'static str = "an order (best_effort or strict)";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        let meant = [
            ("fifo", "strict"),
            ("in_order", "strict"),
            ("ordered", "strict"),
            ("sequential", "strict"),
            ("any", "best_effort"),
            ("none", "best_effort"),
            ("unordered", "best_effort"),
        ];
        value((text, quoted), "is no order: the orders are best_effort and strict", &meant)
    }

    fn form() -> Form {
        Form::words::<Self>()
    }
}

impl FromText for OnUnknown {
    const WANTED: &'static str = "`retry` or `stop`";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        let meant = [
            ("repeat", "retry"),
            ("again", "retry"),
            ("ignore", "stop"),
            ("drop", "stop"),
            ("fail", "stop"),
            ("skip", "stop"),
        ];
        let objection = "is nothing that can be done: write retry (it is delivered again) or stop (a person decides)";
        value((text, quoted), objection, &meant)
    }

    fn form() -> Form {
        Form::words::<Self>()
    }
}

impl FromText for Except {
    const WANTED: &'static str = "`urgent` or `none`";
    const REMEDY: &'static str = "write `except: urgent`";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        let meant =
            [("critical", "urgent"), ("high", "urgent"), ("nothing", "none"), ("never", "none"), ("no", "none")];
        value((text, quoted), "cannot be excepted: write urgent or none", &meant)
    }

    fn form() -> Form {
        Form::words::<Self>()
    }
}

impl FromText for By {
    const WANTED: &'static str = "one of subject, source, name and none";
    const REMEDY: &'static str = "write one word, as in `by: subject`";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        let meant = [
            ("connector", "source"),
            ("server", "source"),
            ("event", "name"),
            ("type", "name"),
            ("kind", "name"),
            ("all", "none"),
            ("everything", "none"),
            ("nothing", "none"),
        ];
        let objection = "is nothing that a digest can share: write subject, source, name or none (all into one)";
        value((text, quoted), objection, &meant)
    }

    fn form() -> Form {
        Form::words::<Self>()
    }
}

impl Words for Order {
    fn words() -> Vec<(&'static str, Self, &'static str)> {
        vec![
            ("best_effort", Self::BestEffort, "A delivery that fails lets later ones pass."),
            ("strict", Self::Strict, "A delivery that fails keeps later ones back, until it is made or given up."),
        ]
    }
}

impl Words for OnUnknown {
    fn words() -> Vec<(&'static str, Self, &'static str)> {
        vec![
            ("retry", Self::Retry, "It is delivered again, perhaps twice."),
            ("stop", Self::Stop, "It stays until a person decides."),
        ]
    }
}

impl Words for Except {
    fn words() -> Vec<(&'static str, Self, &'static str)> {
        vec![("urgent", Self::Urgent, "What is urgent."), ("none", Self::Nothing, "Nothing.")]
    }
}

impl Words for By {
    fn words() -> Vec<(&'static str, Self, &'static str)> {
        vec![
            ("subject", Self::Subject, "One for each subject."),
            ("source", Self::Source, "One for each connector."),
            ("name", Self::Name, "One for each name of an event."),
            ("none", Self::None, "One for all."),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: FromText + PartialEq + std::fmt::Debug>(text: &str, expected: Result<T, &str>) {
        match (T::from_text(text, &format!("{text:?}")), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
            (Err(message), Err(part)) => assert!(message.contains(part), "{text}: {message}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn a_word_is_one_of_those_that_are_known() {
        check("best_effort", Ok(Order::BestEffort));
        check("strict", Ok(Order::Strict));
        check::<Order>("fifo", Err("for \"fifo\" write strict"));
        check::<Order>("best-effort", Err("for \"best-effort\" write best_effort"));
        check("retry", Ok(OnUnknown::Retry));
        check("stop", Ok(OnUnknown::Stop));
        check::<OnUnknown>("Repeat", Err("for \"Repeat\" write retry"));
        check("urgent", Ok(Except::Urgent));
        check("none", Ok(Except::Nothing));
        check::<Except>("attention", Err("cannot be excepted: write urgent or none"));
        check("subject", Ok(By::Subject));
        check("source", Ok(By::Source));
        check("name", Ok(By::Name));
        check("none", Ok(By::None));
        check::<By>("connector", Err("for \"connector\" write source"));
        check::<By>("subjects", Err("for \"subjects\" write subject"));
        check::<By>("title", Err("write subject, source, name or none"));
    }
}
