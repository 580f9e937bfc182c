//! Puts secrets into one request, each where its own rule says.

use std::collections::BTreeMap;

use super::super::denied;
use super::super::secret::{MISPLACED, NOT_READ, PREFIX, Seals, host_allowed};
use crate::config::{Secret, SecretPlace, SecretValue};
use crate::notification::Name;
use crate::wasm::Fault;

/// Access tokens that were fetched for one request, by the secret's name.
pub type Fetched = BTreeMap<Name, String>;

/// A secret that a request carries.
#[derive(Clone, Copy, Debug)]
pub struct Carried<'a> {
    /// Its name.
    pub name: &'a Name,
    /// Its rule.
    pub secret: &'a Secret,
}

/// What goes into one request, and what of it went in.
pub(super) struct Filling<'a> {
    pub(super) seals: &'a Seals<'a>,
    fetched: &'a Fetched,
    carried: Vec<Carried<'a>>,
}

impl<'a> Filling<'a> {
    pub(super) fn new(seals: &'a Seals<'a>, fetched: &'a Fetched) -> Self {
        Self { seals, fetched, carried: Vec::new() }
    }

    pub(super) fn carried(self) -> Vec<Carried<'a>> {
        self.carried
    }

    /// The value of the secret with this placeholder, if its rule lets it stand here; none when there is no such
    /// placeholder.
    pub(super) fn value(
        &mut self,
        placeholder: &str,
        here: &str,
        fits: impl FnOnce(&SecretPlace) -> bool,
    ) -> Result<Option<(&'a str, &'a Secret)>, Fault> {
        let Some((name, secret)) = self.seals.get(placeholder) else { return Ok(None) };
        if !fits(&secret.place) {
            return Err(self.misplaced(name, here));
        }
        let value = match &secret.value {
            SecretValue::Fixed(value) => value.as_str(),
            SecretValue::Token(_) => self
                .fetched
                .get(name)
                .map(String::as_str)
                .ok_or_else(|| denied("token", format!("there is no access token for the secret {name}")))?,
            SecretValue::NotRead => {
                return Err(denied(NOT_READ, format!("the value of the secret {name} was not read")));
            }
        };
        self.carried.push(Carried { name, secret });
        Ok(Some((value, secret)))
    }

    /// A text in which each placeholder is replaced by what `encoded` makes of its value. What went in is not looked at
    /// again.
    pub(super) fn replaced(
        &mut self,
        text: &str,
        here: &str,
        fits: impl Fn(&SecretPlace) -> bool,
        encoded: impl Fn(&str) -> String,
    ) -> Result<String, Fault> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some(at) = rest.find(PREFIX) {
            let (before, from) = rest.split_at(at);
            filled.push_str(before);
            // What only looks like a placeholder stays as it is.
            let placeholder = self.seals.at_the_start_of(from).unwrap_or(PREFIX);
            match self.value(placeholder, here, &fits)? {
                Some((value, _)) => filled.push_str(&encoded(value)),
                None => filled.push_str(placeholder),
            }
            rest = from.get(placeholder.len()..).unwrap_or_default();
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// Refuses a text in which any placeholder stands.
    pub(super) fn none_in(&self, bytes: &[u8], here: &str) -> Result<(), Fault> {
        self.seals.found_in(bytes).map_or(Ok(()), |name| Err(self.misplaced(name, here)))
    }

    /// The refusal of a secret in a place that is not its own.
    pub(super) fn misplaced(&self, secret: &Name, here: &str) -> Fault {
        let own = self.seals.named(secret).map_or_else(String::new, |secret| format!("`in: {}`", secret.place));
        let message = format!("secret {secret} may not stand in {here}: it has one place, {own} in switchbell.yaml");
        denied(MISPLACED, message)
    }

    /// Refuses to send to this host what the rules of the secrets so far do not let go there.
    pub(super) fn goes_to(&self, host: &str) -> Result<(), Fault> {
        let strays = |carried: &&Carried<'a>| match carried.secret.place {
            SecretPlace::Sign => false,
            SecretPlace::Url => !carried.secret.hosts.is_empty() && !host_allowed(&carried.secret.hosts, host),
            _ => !host_allowed(&carried.secret.hosts, host),
        };
        let Some(Carried { name, secret }) = self.carried.iter().find(strays) else { return Ok(()) };
        // The host of a URL that is itself a secret is part of it.
        let host = if secret.place == SecretPlace::Url { "that host" } else { host };
        Err(denied("secret-host", format!("secret {name} may not be sent to {host}: see its `hosts`")))
    }
}
