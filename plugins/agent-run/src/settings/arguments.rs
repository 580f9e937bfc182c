//! The arguments of a tool, in which words in braces stand for what is only known in an attempt.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use switchbell_kit::secret::is_placeholder;

use crate::json::{Kind, Value, quoted};

/// What a message tells to write.
pub(super) const EXAMPLE: &str = "write for example {task: \"{prompt}\", context: \"{notification}\"}";

/// The longest arguments, in bytes as JSON.
const BYTES_MAX: usize = 16 * 1_024;

/// The words that stand for something.
const WORDS: [&str; 5] = ["{prompt}", "{notification}", "{input}", "{on_behalf_of}", "{id}"];

/// Whether the prompt and the notification have a place.
pub(super) fn check(arguments: Value<'_>) -> Result<(), String> {
    if arguments.kind() != Some(Kind::Object) {
        return Err(EXAMPLE.to_owned());
    }
    if arguments.raw().len() > BYTES_MAX {
        return Err(format!("longer than {BYTES_MAX} bytes"));
    }
    let is_secret = |piece: Piece<'_>| Value::new(piece.text).text().is_some_and(|text| is_placeholder(&text));
    if pieces(arguments.raw()).any(is_secret) {
        return Err("no argument can be a secret: the connector is called with its own credential".to_owned());
    }
    let has = |word: &str| pieces(arguments.raw()).any(|piece| piece.word() == Some(word));
    if has("{input}") || (has("{prompt}") && has("{notification}")) {
        return Ok(());
    }
    Err(format!(
        "name the arguments that take \"{{prompt}}\" and \"{{notification}}\", or one for \"{{input}}\": {EXAMPLE}"
    ))
}

/// The arguments with every text that is one of the words replaced by what `meaning` says.
pub(crate) fn fill(arguments: &str, meaning: impl Fn(&str) -> String) -> String {
    pieces(arguments).fold(String::with_capacity(arguments.len()), |mut filled, piece| {
        match piece.word() {
            Some(word) => filled.push_str(&quoted(&meaning(word))),
            None => filled.push_str(piece.text),
        }
        filled
    })
}

/// A string of the JSON text, or what is between two.
struct Piece<'a> {
    text: &'a str,
    /// Whether a colon follows, so that it names a field.
    is_name: bool,
}

impl Piece<'_> {
    /// The word that it is, if it is one.
    fn word(&self) -> Option<&'static str> {
        if self.is_name || !self.text.starts_with('"') {
            return None;
        }
        let text = Value::new(self.text).text()?;
        WORDS.into_iter().find(|word| *word == text)
    }
}

fn pieces(json: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = json;
    core::iter::from_fn(move || {
        let length =
            if rest.starts_with('"') { Value::new(rest).raw().len() } else { rest.find('"').unwrap_or(rest.len()) };
        let (text, after) = rest.split_at_checked(length).filter(|(text, _)| !text.is_empty())?;
        rest = after;
        Some(Piece { text, is_name: after.trim_start().starts_with(':') })
    })
}
