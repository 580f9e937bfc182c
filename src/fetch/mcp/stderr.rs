//! What a child writes to its standard error: drained, so that it never blocks on it, and the end of it kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;

use super::fault::Faults;
use super::seen::Seen;
use crate::notification::Name;

/// Lines kept of what a child wrote: enough for the end of a stack trace.
const LINES_MAX: usize = 5;

/// Longest line that is kept and logged, in bytes.
const LINE_BYTES_MAX: usize = 1_000;

/// The last lines of a child's standard error.
#[derive(Clone, Debug, Default)]
pub(super) struct LastWords {
    lines: Arc<Mutex<VecDeque<String>>>,
    whole: watch::Sender<bool>,
}

impl LastWords {
    fn add(&self, line: String) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    pub(super) fn text(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join(" | ")
    }

    /// Returns once nothing more can come.
    pub(super) async fn is_whole(&self) {
        let _ = self.whole.subscribe().wait_for(|whole| *whole).await;
    }
}

/// Whose words they are, and who counts them.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    pub workspace: Name,
    pub source: Name,
    pub faults: Faults,
    pub seen: Seen,
    pub words: LastWords,
}

impl Listener {
    /// Drains `stderr` until it ends or floods: the last lines are kept, each is logged.
    pub(super) async fn listen(self, mut stderr: impl AsyncRead + Unpin) {
        let (mut line, mut is_cut) = (Vec::new(), false);
        let mut chunk = [0; 8_192];
        while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
            for &byte in chunk.iter().take(count) {
                match byte {
                    b'\n' => self.say(&mut line, &mut is_cut),
                    _ if line.len() < LINE_BYTES_MAX => line.push(byte),
                    _ => is_cut = true,
                }
            }
            if self.seen.error_bytes(count) {
                break;
            }
        }
        self.say(&mut line, &mut is_cut);
        self.words.whole.send_replace(true);
    }

    fn say(&self, line: &mut Vec<u8>, is_cut: &mut bool) {
        let said = std::mem::take(line);
        let said = if std::mem::take(is_cut) {
            self.faults.beginning(&said)
        } else {
            self.faults.masked(String::from_utf8_lossy(&said).trim_end())
        };
        if !said.is_empty() {
            let (workspace, source) = (&self.workspace, &self.source);
            tracing::debug!(%workspace, %source, "the server says: {}", self.faults.fit(&said));
            self.words.add(said);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    async fn last_words(written: &str) -> String {
        let words = LastWords::default();
        let listener = Listener {
            workspace: "acme".parse().unwrap(),
            source: "registrar".parse().unwrap(),
            faults: Faults::new(vec!["s3cret-token".to_owned()], Clock::system()),
            seen: Seen::new(),
            words: words.clone(),
        };
        listener.listen(written.as_bytes()).await;
        words.is_whole().await;
        words.text()
    }

    #[tokio::test]
    async fn the_last_lines_are_kept_without_secrets() {
        assert_eq!(last_words("1\n2\n\n3\n4\n5 s3cret-token\n6").await, "2 | 3 | 4 | 5 *** | 6");
    }

    #[tokio::test]
    async fn a_line_that_is_cut_says_so_and_shows_no_part_of_a_secret() {
        let filler = "x".repeat(LINE_BYTES_MAX - 6);
        let cut = last_words(&format!("{filler}s3cret-token is no good\nand now?\n")).await;
        assert_eq!(cut, format!("{filler}*** … (the line was longer) | and now?"));
        let exact = "y".repeat(LINE_BYTES_MAX);
        assert_eq!(last_words(&exact).await, exact, "what is just as long is whole");
    }
}
