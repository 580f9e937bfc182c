//! Access tokens of secrets with `oauth:`: fetched when a request needs one, kept until shortly before they end, and
//! fetched once however many requests wait for it.

mod answer;
mod ask;
mod assertion;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Mutex as AsyncMutex;

use super::mask::Mask;
use super::{denied, fault};
use crate::clock::{Clock, later, until};
use crate::config::{TokenGrant, TokenSource};
use crate::notification::Name;
use crate::private_file::PrivateFile;
use crate::wasm::{Fault, Reach};
use answer::{Granted, Refused};

pub(super) use ask::Ask;

/// How long before its end a token is not used any more: longer than a request may take.
const MARGIN: Duration = Duration::from_secs(60);
/// How long a token counts that does not say (RFC 6749 §5.1 leaves it to other means).
const LIFE_ASSUMED: Duration = Duration::from_secs(300);
/// How long a refusal is told again without asking the server again: every delivery of a burst would.
const REFUSAL_KEPT: Duration = Duration::from_secs(30);

/// The tokens of one server.
#[derive(Clone)]
pub(super) struct Tokens {
    held: Arc<Mutex<HashMap<Name, Arc<AsyncMutex<Held>>>>>,
    clock: Clock,
    /// Where refresh tokens are kept that a server gave in exchange for the configured ones.
    folder: PathBuf,
}

#[derive(Default)]
struct Held {
    /// How the token was had: another way gives another token.
    source: Option<TokenSource>,
    token: Option<(String, Timestamp)>,
    refused: Option<(Fault, Timestamp)>,
    /// Servers that want the client's secret in the body answer `invalid_client` to one in the header.
    secret_in_body: bool,
}

/// Makes a request to a token endpoint: its status and its body.
pub(super) trait Post {
    /// Sends a form.
    fn post(&self, ask: Ask) -> impl Future<Output = Result<(u16, Vec<u8>), Fault>> + Send;
}

impl fmt::Debug for Tokens {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tokens").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Tokens {
    /// Keeps what has to be kept in `folder`, beside the store.
    pub(super) fn new(clock: Clock, folder: &Path) -> Self {
        Self { held: Arc::default(), clock, folder: folder.to_owned() }
    }

    /// A token of this secret that is good for a request.
    ///
    /// # Errors
    /// `denied` when the server refuses, `unsent` when it cannot be reached: nothing of the request was sent.
    pub(super) async fn get(&self, name: &Name, source: &TokenSource, client: &impl Post) -> Result<String, Fault> {
        let held = self.held_for(name);
        let mut held = held.lock().await;
        if held.source.as_ref() != Some(source) {
            *held = Held { source: Some(source.clone()), ..Held::default() };
        }
        let now = self.clock.now();
        if let Some((token, ends)) = &held.token
            && until(now, *ends) > Duration::ZERO
        {
            return Ok(token.clone());
        }
        if let Some((refusal, ends)) = &held.refused
            && until(now, *ends) > Duration::ZERO
        {
            return Err(refusal.clone());
        }
        match self.fetched(name, source, &mut held, client).await {
            Ok(granted) => {
                let life = granted.life.unwrap_or(LIFE_ASSUMED);
                // One that lives shorter than the margin serves half of its life.
                let good = life.checked_sub(MARGIN).unwrap_or(life / 2).max(life / 2);
                held.token = Some((granted.access_token.clone(), later(now, good)));
                held.refused = None;
                Ok(granted.access_token)
            }
            Err(refusal) => {
                if refusal.reach == Reach::Denied {
                    held.refused = Some((refusal.clone(), later(now, REFUSAL_KEPT)));
                }
                Err(refusal)
            }
        }
    }

    /// Forgets a token that a destination answered with 401, unless there is another by now.
    pub(super) async fn forget(&self, name: &Name, token: &str) {
        let held = self.held_for(name);
        let mut held = held.lock().await;
        if held.token.as_ref().is_some_and(|(held, _)| held == token) {
            held.token = None;
        }
    }

    /// Forgets the tokens of secrets that are not there any more.
    pub(super) fn keep(&self, is_there: impl Fn(&Name) -> bool) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).retain(|name, _| is_there(name));
    }

    fn held_for(&self, name: &Name) -> Arc<AsyncMutex<Held>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(held.entry(name.clone()).or_default())
    }

    async fn fetched(
        &self,
        name: &Name,
        source: &TokenSource,
        held: &mut Held,
        client: &impl Post,
    ) -> Result<Granted, Fault> {
        let kept = match &source.grant {
            TokenGrant::RefreshToken { refresh_token, .. } => Some(Kept::of(&self.folder, name, refresh_token)?),
            TokenGrant::ClientCredentials { .. } | TokenGrant::JwtBearer { .. } => None,
        };
        // Another process that renews the same token would make this one's void.
        let _lock = match &kept {
            Some(kept) => Some(kept.file.lock().await.map_err(|why| unavailable(name, &why))?),
            None => None,
        };
        let refresh_token = kept.as_ref().map(Kept::current).transpose().map_err(|why| unavailable(name, &why))?;
        let ask = |secret_in_body| {
            Ask::new(source, refresh_token.as_deref(), secret_in_body, self.clock.now())
                .map_err(|why| denied("token-refused", format!("no access token for the secret {name}: {why}")))
        };
        let mut answered = self.asked(name, ask(held.secret_in_body)?, client).await?;
        if matches!(&answered, Err(refused) if refused.is_about_the_client()) && source.grant.has_client_secret() {
            held.secret_in_body = !held.secret_in_body;
            answered = self.asked(name, ask(held.secret_in_body)?, client).await?;
        }
        let granted = answered.map_err(|refused| {
            let message = format!("the authorization server gives no access token for the secret {name}: {refused}");
            denied("token-refused", message)
        })?;
        if let (Some(kept), Some(new)) = (&kept, &granted.refresh_token) {
            kept.replace(new).await.map_err(|why| unavailable(name, &why))?;
        }
        Ok(granted)
    }

    async fn asked(&self, name: &Name, ask: Ask, client: &impl Post) -> Result<Result<Granted, Refused>, Fault> {
        let mask = Mask::of_credentials(name, &ask.credentials);
        let (status, mut body) = client.post(ask).await.map_err(|fault| unavailable(name, &fault.message))?;
        // Servers quote what they refuse. A token that is given is not looked through: it may be the very one it was asked by.
        if !(200..300).contains(&status) {
            mask.apply(&mut body);
        }
        answer::read(status, &body).map_err(|why| unavailable(name, &why))
    }
}

fn unavailable(name: &Name, why: &str) -> Fault {
    fault(Reach::Unsent, "token-unavailable", format!("no access token for the secret {name} just now: {why}"))
}

/// The refresh token that is good now: that of the configuration, or what the server gave instead of it.
struct Kept {
    file: PrivateFile,
    /// Of the configuration. Another one there means that a person began anew.
    first: String,
}

impl Kept {
    fn of(folder: &Path, name: &Name, first: &str) -> Result<Self, Fault> {
        // No workspace has a name that begins with a dot.
        Ok(Self {
            file: PrivateFile::new(folder.join(".secrets").join(format!("{name}.json"))),
            first: first.to_owned(),
        })
    }

    fn current(&self) -> Result<String, String> {
        let said = |error: &dyn fmt::Display| format!("{} cannot be read: {error}", self.file.path().display());
        let Some((text, _)) = self.file.read().map_err(|error| said(&error))? else { return Ok(self.first.clone()) };
        let kept = answer::kept(&text).ok_or_else(|| said(&"it is not what was written there; remove it"))?;
        Ok(if kept.first == answer::digest(&self.first) { kept.current } else { self.first.clone() })
    }

    async fn replace(&self, new: &str) -> Result<(), String> {
        let written = self.file.replace(answer::to_keep(&self.first, new)).await;
        written.map_err(|error| format!("{} cannot be written: {error}", self.file.path().display()))
    }
}

#[cfg(test)]
mod tests;
