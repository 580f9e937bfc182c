//! Who needs no further mail: kept in the delivery's `resume`, so that nobody gets a mail twice and nobody is forgotten.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use switchbell_kit::fields::{Field, Fields};
use switchbell_kit::json::{self, Object};

/// The longest words of a relay about a recipient, in characters.
const WORDS_MAX: usize = 160;

/// How far the delivery is.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Progress {
    /// Whose mail the relay took.
    pub(crate) accepted: Vec<String>,
    /// Whose mail it refused for good, and in which words.
    pub(crate) refused: Vec<(String, String)>,
    /// The mail's Message-ID, once the relay took one.
    pub(crate) message_id: Option<String>,
}

impl Progress {
    /// Reads what an earlier attempt kept. What is not of this form counts as nothing.
    pub(crate) fn read(resume: Option<&str>) -> Self {
        let Some(fields) = resume.and_then(|resume| Fields::read(resume.as_bytes(), 3).ok()) else {
            return Self::default();
        };
        let refused = match fields.get("refused") {
            Some(Field::List(items)) => items.iter().filter_map(refusal).collect(),
            _ => Vec::new(),
        };
        Self {
            accepted: fields.texts("accepted").map(str::to_owned).collect(),
            refused,
            message_id: fields.text("messageId").map(str::to_owned),
        }
    }

    /// For `resume`.
    pub(crate) fn write(&self) -> String {
        let refused = self.refused.iter();
        let refused = refused.map(|(to, words)| Object::new().text("to", to).text("words", words).end());
        Object::new()
            .raw("accepted", &json::list(self.accepted.iter().map(|to| json::text(to))))
            .raw("refused", &json::list(refused))
            .optional("messageId", self.message_id.as_deref())
            .end()
    }

    /// The recipients for whom nothing is final yet.
    pub(crate) fn left(&self, to: &[String]) -> Vec<String> {
        let is_done = |to: &String| self.accepted.contains(to) || self.refused.iter().any(|(refused, _)| refused == to);
        to.iter().filter(|to| !is_done(to)).cloned().collect()
    }

    /// Notes that the relay refused the mail to this recipient for good.
    pub(crate) fn refuse(&mut self, to: &str, words: &str) {
        self.refused.push((to.to_owned(), switchbell_kit::text::cut(words, WORDS_MAX)));
    }
}

fn refusal(item: &Field) -> Option<(String, String)> {
    let Field::Object(fields) = item else { return None };
    Some((fields.text("to")?.to_owned(), fields.text("words").unwrap_or_default().to_owned()))
}
