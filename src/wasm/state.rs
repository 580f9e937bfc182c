//! What one store holds for its plugin: limits, the inputs of inert WASI, and what the plugin wrote.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::bindings::switchbell::delivery::types::Delivery;
use super::limits::{CpuBudget, Limiter, STDERR_BYTES_MAX};
use super::text::one_line;

/// What a call of a plugin depends on besides its arguments.
#[derive(Clone, Debug)]
pub(super) struct Inputs {
    /// The host's key, which no plugin knows.
    pub(super) key: [u8; 32],
    /// The delivery of a step; none for `describe` and `check`.
    pub(super) delivery: Option<Arc<Delivery>>,
    /// How many effects came before.
    pub(super) past: u64,
}

/// The data of one store.
#[derive(Debug)]
pub(super) struct State {
    pub(super) limiter: Limiter,
    pub(super) cpu: CpuBudget,
    pub(super) stderr: Tail,
    inputs: Inputs,
    /// Blocks of randomness drawn in this step.
    drawn: u64,
}

impl State {
    /// Begins the first step of an instance.
    pub(super) fn begin(inputs: Inputs, memory_bytes_max: usize, cpu: CpuBudget) -> Self {
        let limiter = Limiter::new(memory_bytes_max);
        Self { limiter, cpu, stderr: Tail::default(), inputs, drawn: 0 }
    }

    /// Begins a further step: all that is counted for each step starts again.
    pub(super) fn begin_again(&mut self, inputs: Inputs, cpu: CpuBudget) {
        self.limiter.begin();
        self.cpu = cpu;
        self.stderr = Tail::default();
        self.inputs = inputs;
        self.drawn = 0;
    }

    /// The time, which stands still: when the attempt began.
    pub(super) fn now(&self) -> Timestamp {
        let now = self.inputs.delivery.as_ref().and_then(|delivery| delivery.now.parse().ok());
        now.unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// A number for hash tables, the same for every step of an attempt: a table that a kept instance made in an earlier
    /// step must be ordered as one that a fresh instance makes now.
    pub(super) fn hash_seed(&self) -> [u8; 32] {
        digest(&[&self.attempt_seed(), b"hash"])
    }

    /// Random bytes, the same for the same attempt and past.
    pub(super) fn random(&mut self, length: usize) -> Vec<u8> {
        let (seed, past) = (self.attempt_seed(), self.inputs.past.to_be_bytes());
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let block = digest(&[&seed, b"step", &past, &self.drawn.to_be_bytes()]);
            self.drawn = self.drawn.wrapping_add(1);
            bytes.extend(block.iter().take(length - bytes.len()));
        }
        bytes
    }

    fn attempt_seed(&self) -> [u8; 32] {
        let (id, attempt) = self.inputs.delivery.as_ref().map_or(("", 0), |delivery| (&*delivery.id, delivery.attempt));
        digest(&[&self.inputs.key, &attempt.to_be_bytes(), id.as_bytes()])
    }
}

fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

/// The last [`STDERR_BYTES_MAX`] bytes that were written.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: VecDeque<u8>,
    cut: bool,
}

impl Tail {
    pub(super) fn write(&mut self, bytes: &[u8]) {
        let kept = bytes.get(bytes.len().saturating_sub(STDERR_BYTES_MAX)..).unwrap_or_default();
        let surplus = (self.bytes.len() + kept.len()).saturating_sub(STDERR_BYTES_MAX);
        self.cut |= surplus > 0 || kept.len() < bytes.len();
        self.bytes.drain(..surplus.min(self.bytes.len()));
        self.bytes.extend(kept);
    }

    /// What was written, on one line fit to show; none when nothing was.
    pub(super) fn line(&self) -> Option<String> {
        if self.bytes.is_empty() {
            return None;
        }
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let line = one_line(&text, STDERR_BYTES_MAX);
        let shown = if self.cut { format!("… {line}") } else { line };
        (!shown.is_empty()).then_some(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_are_kept() {
        let mut tail = Tail::default();
        assert_eq!(tail.line(), None);
        tail.write(b"first\n");
        tail.write(b"second\x1b[0m");
        assert_eq!(tail.line().unwrap(), "first second [0m");
        tail.write(&[b'x'; STDERR_BYTES_MAX]);
        tail.write(b"last");
        let line = tail.line().unwrap();
        assert!(line.starts_with("… xxx") && line.ends_with("xxxlast"), "{line}");
        assert_eq!(line.len(), STDERR_BYTES_MAX + "… ".len());
        tail.write(&[b'y'; STDERR_BYTES_MAX + 1]);
        assert_eq!(tail.line().unwrap().len(), STDERR_BYTES_MAX + "… ".len());
    }
}
