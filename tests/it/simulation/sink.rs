//! A destination that keeps account of what it is sent and fails in every way, by what is sent and not by chance.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Response, Uri};
use jiff::Timestamp;
use serde_json::Value;
use switchbell::clock::Clock;
use tokio::sync::watch;

/// One request.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Timestamp,
    /// The path, which names the target, and the piece of the message.
    pub path: String,
    pub id: String,
    pub attempt: u64,
    pub seqs: Vec<u64>,
    pub urgent: bool,
}

#[derive(Clone)]
pub struct Sink {
    pub address: SocketAddr,
    clock: Clock,
    sent: Arc<Mutex<Vec<Sent>>>,
    /// Requests that came while another of their delivery was being worked on.
    overlapping: Arc<Mutex<Vec<Sent>>>,
    /// Deliveries that are being worked on.
    open: Arc<watch::Sender<HashSet<String>>>,
    /// Whether it answers; else it works on what it was sent until it does.
    answers: Arc<watch::Sender<bool>>,
}

impl Sink {
    pub async fn open(clock: &Clock) -> Self {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let answers = Arc::new(watch::Sender::new(true));
        let (sent, overlapping, open) = (Arc::default(), Arc::default(), Arc::default());
        let sink = Self { address, clock: clock.clone(), sent, overlapping, open, answers };
        let service = Router::new().fallback(receive).with_state(sink.clone());
        tokio::spawn(async move { axum::serve(listener, service).await });
        sink
    }

    /// Every request; none may have come while another of its delivery was being worked on.
    pub fn sent(&self) -> Vec<Sent> {
        assert!(self.overlapping.lock().unwrap().is_empty(), "two attempts of one delivery at once");
        self.sent.lock().unwrap().clone()
    }

    pub fn answer(&self, whether: bool) {
        self.answers.send_replace(whether);
    }

    /// Returns once so many deliveries are being worked on at least; none: once nothing is.
    pub async fn works_on(&self, count: usize) {
        let enough = |open: &HashSet<String>| if count == 0 { open.is_empty() } else { open.len() >= count };
        self.open.subscribe().wait_for(enough).await.unwrap();
    }
}

/// Takes a delivery out of those that are worked on, however its request ends.
struct Working(Sink, String);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.open.send_modify(|open| {
            open.remove(&self.1);
        });
    }
}

async fn receive(State(sink): State<Sink>, uri: Uri, body: Bytes) -> Response<Body> {
    let sent = sent(sink.clock.now(), uri.path(), &body);
    let mut is_alone = false;
    sink.open.send_modify(|open| is_alone = open.insert(sent.id.clone()));
    if !is_alone {
        sink.overlapping.lock().unwrap().push(sent.clone());
    }
    let working = Working(sink.clone(), sent.id.clone());
    let answer = answer(&sent);
    sink.sent.lock().unwrap().push(sent);
    sink.answers.subscribe().wait_for(|answers| *answers).await.unwrap();
    // Whoever is told has nothing open here any more.
    drop(working);
    answer
}

fn sent(at: Timestamp, path: &str, body: &[u8]) -> Sent {
    let body: Value = serde_json::from_slice(body).unwrap();
    let seqs = body["seqs"].as_array().unwrap().iter().map(|seq| seq.as_u64().unwrap()).collect();
    Sent {
        at,
        path: path.to_owned(),
        id: body["id"].as_str().unwrap().to_owned(),
        attempt: body["attempt"].as_u64().unwrap(),
        seqs,
        urgent: body["urgent"].as_bool().unwrap(),
    }
}

/// Most are accepted. Only what is sent to `/moody…` is ever refused for good; the rest fails for a while.
fn answer(sent: &Sent) -> Response<Body> {
    let draw = (sent.seqs.first().unwrap_or(&0) * 7_919 + sent.attempt * 104_729 + sent.path.len() as u64 * 31) % 100;
    let response = |status: u16| Response::builder().status(status);
    let is_moody = sent.path.starts_with("/moody");
    let answer = match draw {
        0..10 => response(503).body(Body::empty()),
        10..15 => response(429).header("retry-after", "45").body(Body::empty()),
        15..19 => {
            let broken = futures_util::stream::iter([Err::<Bytes, _>(std::io::Error::other("it breaks off"))]);
            response(200).header("content-length", "9").body(Body::from_stream(broken))
        }
        19..22 if is_moody => response(410).body(Body::empty()),
        22..24 if is_moody => response(401).body(Body::empty()),
        _ => response(200).body(Body::from("ok")),
    };
    answer.unwrap()
}
