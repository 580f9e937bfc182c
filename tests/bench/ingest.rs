//! Events a second from the text of an outbox's answer to the committed inbox: parse, judge, select, write.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use jiff::Timestamp;
use switchbell::config::{Config, Workspace};
use switchbell::fetch::{answer, event};
use switchbell::inbox::{Ended, Entry, Inbox, Intake};
use switchbell::notification::Level;
use switchbell::route::{Facts, owed};

use crate::world::{World, name};
use crate::{ROUNDS, median, rate};

/// Events of one answer.
const BATCH: usize = 500;
/// Outboxes read at the same time.
const OUTBOXES: usize = 4;
/// Answers of each outbox.
const ANSWERS: usize = 40;
const EVENTS: usize = BATCH * OUTBOXES * ANSWERS;

pub async fn run() {
    let world = World::new(100).await;
    println!(
        "\ningest: {EVENTS} events in answers of {BATCH} from {OUTBOXES} outboxes, 100 routes, SQLite with synchronous=FULL"
    );
    for (label, event_name) in [("owing nothing", "reply.received"), ("owing one delivery each", "domain.active")] {
        let mut rates = Vec::new();
        let mut shares = Vec::new();
        for round in 0..ROUNDS {
            let inbox: Arc<dyn Inbox> = Arc::new(world.inbox(&format!("{event_name}-{round}.db")));
            let began = Instant::now();
            let outboxes = (0..OUTBOXES)
                .map(|outbox| tokio::spawn(read(Arc::clone(&world.config), Arc::clone(&inbox), outbox, event_name)));
            let spent: Duration = join_all(outboxes).await.into_iter().map(|spent| spent.expect("an outbox")).sum();
            rates.push(rate(EVENTS, began.elapsed()));
            shares.push(spent.as_secs_f64() * 1e6 / EVENTS as f64);
        }
        println!(
            "  {label:<24} {:>9.0} events/s  (parse, judge and select: {:.1} µs each)",
            median(rates),
            median(shares)
        );
    }
}

/// Takes the answers of one outbox; returns the time spent before writing.
async fn read(config: Arc<Config>, inbox: Arc<dyn Inbox>, outbox: usize, event_name: &'static str) -> Duration {
    let workspace = config.workspaces.get("acme").expect("a workspace");
    let mut spent = Duration::ZERO;
    for number in 0..ANSWERS {
        let text = answer_text(outbox, number, event_name);
        let began = Instant::now();
        let entries = entries(workspace, &text);
        spent += began.elapsed();
        let intake = Intake {
            is_first: false,
            workspace: workspace.name.clone(),
            source: name(&format!("outbox-{outbox}")),
            received_at: Timestamp::UNIX_EPOCH,
            entries,
            notices: Vec::new(),
            cursor: Some(format!("c{number}")),
            ended: Ended::Answered { revision: None, is_backlog: false },
        };
        let accepted = inbox.accept(intake).await.expect("a write");
        assert!(accepted.seqs.len() == BATCH && accepted.seqs.iter().all(Option::is_some));
    }
    spent
}

fn entries(workspace: &Workspace, text: &str) -> Vec<Entry> {
    let answer = answer::parse(text).expect("an answer");
    let source = name("registrar");
    let entry = |raw: &&serde_json::value::RawValue| {
        let event = event::judge(raw).expect("an event").event;
        let effective_level = event.level.capped(Level::Urgent);
        let facts = Facts { source: &source, name: &event.name, effective_level, subject: event.subject.as_deref() };
        let owed = owed(&workspace.router.select(&facts), &workspace.routes);
        Entry { event, effective_level, owed, consumers: Vec::new() }
    };
    answer.events.iter().map(entry).collect()
}

fn answer_text(outbox: usize, number: usize, event_name: &str) -> String {
    let event = |place: usize| {
        format!(
            r#"{{"eventId":"evt_{outbox}_{number}_{place}","name":"{event_name}","timestamp":"2026-09-01T18:42:10Z","data":{{"campaign_id":"cmp_8f2a","provider":"acme-registrar"}},"_meta":{{"ai.nimblebrain/notification":{{"subject":"acme-outreach.test","level":"attention","title":"acme-outreach.test is active","body":"DNS propagated. Two mailboxes can now be created on it.","link":{{"resource":"acme://campaigns/cmp_8f2a"}}}}}}}}"#
        )
    };
    let events: Vec<String> = (0..BATCH).map(event).collect();
    format!(r#"{{"events":[{}],"cursor":"c{number}","truncated":false,"hasMore":false}}"#, events.join(","))
}
