//! The texts of tokens: drawn at random, shown once, and known afterwards by their hash alone.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

use crate::inbox::TokenKind;
use crate::serve::problem::Problem;

/// Random bytes of a token: nobody guesses one.
const RANDOM_BYTES: usize = 32;
/// Bytes of the checksum, by which scanners tell a token from what merely looks like one.
const CHECK_BYTES: usize = 3;
/// Characters of a token: its prefix, 32 bytes and the checksum in base64url.
const CHARS: usize = 4 + 43 + 4;

/// The text of a token. It is never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenText(String);

impl fmt::Debug for TokenText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("TokenText(…)")
    }
}

impl TokenText {
    /// Draws one.
    ///
    /// # Errors
    /// [`Problem::Unavailable`] when the system gives no random numbers.
    pub fn draw(kind: TokenKind) -> Result<Self, Problem> {
        let mut random = [0; RANDOM_BYTES];
        let refused = |_| Problem::Unavailable("the system gives no random numbers".to_owned());
        SystemRandom::new().fill(&mut random).map_err(refused)?;
        let body = format!("{}{}", prefix(kind), URL_SAFE_NO_PAD.encode(random));
        let check = check(&body);
        Ok(Self(body + &check))
    }

    /// The text, to be shown once.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The hash that is kept of it.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(&self.0).into()
    }
}

/// The hash of a text that may be a token of this kind; none when it is none by its form.
pub(super) fn hash(kind: TokenKind, text: &str) -> Option<[u8; 32]> {
    let is_of_kind = text.len() == CHARS && text.is_ascii() && text.starts_with(prefix(kind));
    let (body, end) = text.split_at_checked(CHARS - 4).filter(|_| is_of_kind)?;
    (end == check(body)).then(|| Sha256::digest(text).into())
}

fn prefix(kind: TokenKind) -> &'static str {
    match kind {
        TokenKind::Bearer => "swb_",
        TokenKind::Link => "swl_",
        TokenKind::Session => "sws_",
    }
}

fn check(body: &str) -> String {
    let hash = Sha256::digest(body);
    URL_SAFE_NO_PAD.encode(hash.get(..CHECK_BYTES).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_hash_and_only_as_what_it_is() {
        for kind in [TokenKind::Bearer, TokenKind::Link, TokenKind::Session] {
            let text = TokenText::draw(kind).unwrap();
            assert_eq!((text.as_str().len(), hash(kind, text.as_str())), (CHARS, Some(text.hash())));
            assert_ne!(text, TokenText::draw(kind).unwrap());
            let others = [TokenKind::Bearer, TokenKind::Link, TokenKind::Session].into_iter().filter(|it| *it != kind);
            others.for_each(|other| assert_eq!(hash(other, text.as_str()), None));
            assert_eq!(format!("{text:?}"), "TokenText(…)");
        }
    }

    #[test]
    fn a_slip_in_a_token_is_told_by_its_checksum() {
        let text = TokenText::draw(TokenKind::Bearer).unwrap().as_str().to_owned();
        let other = if text.ends_with('A') { 'B' } else { 'A' };
        let slipped = format!("{}{other}", &text[..text.len() - 1]);
        let texts =
            [&slipped, &text[..text.len() - 1], &format!("{text}A"), &format!(" {text}"), "", "swb_", &"ü".repeat(26)];
        for wrong in texts {
            assert_eq!(hash(TokenKind::Bearer, wrong), None, "{wrong}");
        }
    }
}
