//! Takes secrets out of texts, where a destination may have echoed them.
//!
//! Only what the request carried is looked for: to look for others would tell a plugin, by what is masked, what they are.
//! A weak secret is never looked for, for the same reason.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use serde_json::Value;
use url::Url;

use super::guard::{Carried, Fetched, basic, encoded};
use crate::config::{Secret, SecretPlace};
use crate::notification::Name;

/// The shortest part of a URL that counts as telling, bytes: what is shorter (`/`, `/hooks`) is no secret, and masking it
/// would spoil every other text.
const TELLING_BYTES_MIN: usize = 12;

/// What gives secrets away, with what stands in its place.
#[derive(Debug, Default)]
pub(super) struct Mask {
    /// Longest first within one secret.
    telling: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Mask {
    /// For the answer to a request.
    pub(super) fn of(carried: &[Carried<'_>], fetched: &Fetched) -> Self {
        let mut mask = Self::default();
        for Carried { name, secret } in carried {
            let value = secret.fixed().or_else(|| fetched.get(*name).map(String::as_str));
            value.into_iter().for_each(|value| mask.add(name, secret, value));
        }
        mask
    }

    /// For texts that are kept: all secrets with fixed values that an attempt was given.
    pub(super) fn of_all<'s>(secrets: impl Iterator<Item = (&'s Name, &'s Secret)>) -> Self {
        let mut mask = Self::default();
        for (name, secret) in secrets {
            secret.fixed().into_iter().for_each(|value| mask.add(name, secret, value));
        }
        mask
    }

    /// For what an authorization server says: the credentials that it was told for the token of this secret.
    pub(super) fn of_credentials(name: &Name, told: &[String]) -> Self {
        let mark = format!("[secret {name}]").into_bytes();
        let forms = told.iter().flat_map(|value| forms(&SecretPlace::Connector, value));
        Self { telling: forms.map(|form| (form.into_bytes(), mark.clone())).collect() }
    }

    fn add(&mut self, name: &Name, secret: &Secret, value: &str) {
        if secret.is_weak || secret.place == SecretPlace::Sign {
            return;
        }
        let mark = format!("[secret {name}]").into_bytes();
        let forms = forms(&secret.place, value).into_iter();
        self.telling.extend(forms.map(|form| (form.into_bytes(), mark.clone())));
    }

    /// Whether there is nothing to look for.
    pub(super) fn is_empty(&self) -> bool {
        self.telling.is_empty()
    }

    /// Takes the secrets out of a text.
    pub(super) fn apply(&self, text: &mut Vec<u8>) {
        let all = text.len();
        self.apply_and_cut(text, all);
    }

    /// Takes the secrets out of a text and leaves of it what was among the first `kept` bytes. Whoever chooses the cut must
    /// not see a part of a secret: what begins before the cut is looked for beyond it, too.
    pub(super) fn apply_and_cut(&self, text: &mut Vec<u8>, kept: usize) {
        let place = |telling: &[u8], from: usize| {
            let rest = text.get(from..)?;
            memmem::find(rest, telling).map(|at| from + at)
        };
        let mut places: Vec<Option<usize>> = self.telling.iter().map(|(telling, _)| place(telling, 0)).collect();
        let kept = kept.min(text.len());
        let (mut masked, mut at) = (Vec::with_capacity(kept), 0);
        while at < kept {
            let found = places.iter().zip(&self.telling).filter_map(|(place, telling)| Some(((*place)?, telling)));
            let next = found.min_by_key(|(place, (telling, _))| (*place, std::cmp::Reverse(telling.len())));
            let next = next.filter(|(place, _)| *place < kept);
            let until = next.map_or(kept, |(place, _)| place);
            masked.extend_from_slice(text.get(at..until).unwrap_or_default());
            at = until;
            let Some((_, (telling, mark))) = next else { break };
            masked.extend_from_slice(mark);
            at += telling.len();
            for (found, (telling, _)) in places.iter_mut().zip(&self.telling) {
                if found.is_some_and(|found| found < at) {
                    *found = place(telling, at);
                }
            }
        }
        *text = masked;
    }
}

/// What gives a secret away: its value as it is, as it stands in URLs, in JSON and in JSON that JSON quotes, in base64, and
/// what else its place makes of it. Of a URL that is what comes after the host, which servers like to quote.
fn forms(place: &SecretPlace, value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned(), encoded(value), STANDARD.encode(value)];
    let quoted = in_json(value);
    if quoted != value {
        forms.extend([in_json(&quoted), quoted]);
    }
    match place {
        SecretPlace::Basic => {
            forms.extend([basic(value), value.split_once(':').map_or(value, |(_, password)| password).to_owned()])
        }
        SecretPlace::Url => {
            if let Ok(url) = Url::parse(value) {
                let target = url.query().map(|query| format!("{}?{query}", url.path()));
                forms.extend([Some(url.to_string()), target, Some(url.path().to_owned())].into_iter().flatten());
                // Of an incoming webhook the last part alone is the credential.
                forms.extend(url.path_segments().and_then(|mut parts| parts.next_back()).map(str::to_owned));
            }
        }
        _ => {}
    }
    // The value itself is long enough, or is not looked for at all.
    forms.retain(|form| form == value || form.len() >= TELLING_BYTES_MIN);
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.dedup();
    forms
}

fn in_json(value: &str) -> String {
    let quoted = Value::from(value).to_string();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}
