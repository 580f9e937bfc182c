//! What of an answer is handed on to the plugin.

use serde::Deserialize;

use crate::send::effect::denied;
use crate::send::effect::mask::Mask;
use crate::wasm::{Fault, Response};

/// Headers that are left out unless they are asked for: they hold credentials, or places that nobody goes to.
const ON_DEMAND: [&str; 5] =
    ["location", "set-cookie", "www-authenticate", "proxy-authenticate", "authentication-info"];

/// What a request's `extras` ask of its answer.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Wishes {
    /// Headers that are otherwise left out.
    #[serde(default)]
    answer_headers: Vec<String>,
}

impl Wishes {
    /// Reads a request's `extras`; keys it does not know are somebody else's.
    pub(super) fn of(extras: &str) -> Result<Self, Fault> {
        if extras == "{}" {
            return Ok(Self::default());
        }
        let wrong = |error| {
            let message =
                format!("the request's extras cannot be read, where `answer_headers` is a list of names: {error}");
            denied("extras", message)
        };
        serde_json::from_str(extras).map_err(wrong)
    }

    fn has(&self, header: &str) -> bool {
        self.answer_headers.iter().any(|asked| asked.eq_ignore_ascii_case(header))
    }
}

/// An answer without the secrets that its request carried, and without what nobody asked for. A body in an encoding that was
/// not asked for is left out, since nothing could be masked in it.
pub(super) fn handed_on(mut answer: Response, wishes: &Wishes, mask: &Mask, kept_bytes: usize) -> Response {
    let is_encoded = |(name, value): &(String, String)| {
        name == "content-encoding" && !value.trim().is_empty() && !value.trim().eq_ignore_ascii_case("identity")
    };
    if answer.headers.iter().any(is_encoded) {
        answer.truncated |= !answer.body.is_empty();
        answer.body.clear();
    }
    answer.headers.retain(|(name, _)| !ON_DEMAND.contains(&name.as_str()) || wishes.has(name));
    if !mask.is_empty() {
        for (_, value) in &mut answer.headers {
            let mut bytes = std::mem::take(value).into_bytes();
            mask.apply(&mut bytes);
            *value = String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    answer.truncated |= answer.body.len() > kept_bytes;
    mask.apply_and_cut(&mut answer.body, kept_bytes);
    answer
}
