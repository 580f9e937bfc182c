//! The framing compared with that of a client that everybody uses: answers of every form, cut into pieces, are read by both.

mod forms;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::*;
use forms::Form;

/// Answers compared: with both clients that takes a few seconds.
const ANSWERS: u64 = 800;
/// The same of answers of which one byte is another.
const DAMAGED: u64 = 1000;

/// An answer as it was understood: its status, its headers by name, its body.
#[derive(Debug, PartialEq, Eq)]
struct Understood {
    status: u16,
    headers: BTreeMap<String, Vec<String>>,
    body: String,
}

/// A listener that answers each connection with the same pieces, and closes it.
struct Answering {
    address: SocketAddr,
    pieces: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Answering {
    async fn open() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let (address, pieces) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<Vec<u8>>>>::default());
        let answering = Self { address, pieces: Arc::clone(&pieces) };
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let pieces = pieces.lock().unwrap().clone();
                stream.set_nodelay(true).unwrap();
                tokio::spawn(async move {
                    let Some(_) = peer::request(&mut stream).await else { return };
                    for piece in pieces {
                        if stream.write_all(&piece).await.is_err() {
                            return;
                        }
                        // Whoever reads does it before the next one is written.
                        tokio::task::yield_now().await;
                    }
                });
            }
        });
        answering
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

/// What our own client understands; a new one each time, so that no connection is used again.
async fn ours(at: &Answering, method: &str) -> Result<Understood, String> {
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let tls = tls.with_safe_default_protocol_versions().unwrap().with_root_certificates(rustls::RootCertStore::empty());
    let client = HttpClient::speaking(tls.with_no_client_auth());
    let request = Request { method: method.to_owned(), ..post(at.url(), "") };
    let answer = ask(&client, SLACK, request).await.map_err(|fault| fault.message)?;
    assert!(!answer.truncated);
    let mut headers = BTreeMap::<String, Vec<String>>::new();
    for (name, value) in answer.headers {
        headers.entry(name).or_default().push(value);
    }
    Ok(Understood { status: answer.status, headers, body: String::from_utf8_lossy(&answer.body).into_owned() })
}

/// What reqwest understands.
async fn theirs(at: &Answering, method: &str, client: &reqwest::Client) -> Result<Understood, String> {
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let answer = client.request(method, at.url()).send().await.map_err(|error| format!("{error:?}"))?;
    let status = answer.status().as_u16();
    let mut headers = BTreeMap::<String, Vec<String>>::new();
    for (name, value) in answer.headers() {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        headers.entry(name.to_string()).or_default().push(value);
    }
    let body = answer.bytes().await.map_err(|error| format!("{error:?}"))?;
    Ok(Understood { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
}

fn reqwest_client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    client.pool_max_idle_per_host(0).build().unwrap()
}

/// Cuts bytes at random places.
fn cut(bytes: &[u8], rng: &mut Rng) -> Vec<Vec<u8>> {
    let size = match rng.u8(..4) {
        0 => bytes.len().max(1),
        1 if bytes.len() < 300 => 1,
        1 | 2 => 40,
        _ => 3000,
    };
    let (mut pieces, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rng.usize(1..=size).min(rest.len()));
        pieces.push(piece.to_vec());
        rest = after;
    }
    pieces
}

/// What both understand of an answer.
async fn both(
    at: &Answering,
    client: &reqwest::Client,
    (method, bytes): (&str, &[u8]),
    rng: &mut Rng,
) -> (Result<Understood, String>, Result<Understood, String>) {
    *at.pieces.lock().unwrap() = cut(bytes, rng);
    (ours(at, method).await, theirs(at, method, client).await)
}

/// Answers that were understood otherwise, of which the first are told.
#[derive(Default)]
struct Differing(Vec<String>);

impl Differing {
    fn add(&mut self, seed: u64, (method, bytes): (&str, &[u8]), understood: [&Result<Understood, String>; 2]) {
        let mut told = format!("seed {seed}, {method}: {:?}\n", String::from_utf8_lossy(bytes));
        told.extend(understood.map(|understood| format!("{understood:?}\n")));
        self.0.push(told);
    }

    fn check(self) {
        let first: Vec<&str> = self.0.iter().take(5).map(|told| told.get(..1500).unwrap_or(told)).collect();
        assert!(self.0.is_empty(), "{} are understood otherwise:\n{}", self.0.len(), first.join("\n"));
    }
}

#[tokio::test]
async fn answers_of_every_form_are_understood_as_by_others_or_refused_where_they_are_ambiguous() {
    let (at, client, mut differing) = (Answering::open().await, reqwest_client(), Differing::default());
    let (mut understood, mut refused, mut stricter) = (0, 0, BTreeMap::<&str, usize>::new());
    for seed in 0..ANSWERS {
        let mut rng = Rng::with_seed(seed);
        let Form { method, bytes, refused_by_us } = forms::any(&mut rng);
        let (ours, theirs) = both(&at, &client, (method, &bytes), &mut rng).await;
        match (refused_by_us, &ours, &theirs) {
            (Some(why), Err(_), _) => *stricter.entry(why).or_default() += 1,
            (None, Ok(one), Ok(other)) if one == other => understood += 1,
            (None, Err(_), Err(_)) => refused += 1,
            _ => differing.add(seed, (method, &bytes), [&ours, &theirs]),
        }
    }
    differing.check();
    assert!(understood > ANSWERS / 2 && refused > ANSWERS / 20, "{understood} understood, {refused} refused");
    assert_eq!(stricter.len(), forms::STRICTER.len(), "each is there: {stricter:?}");
}

/// A damaged answer may be refused by us alone; what we take means the same to others.
#[tokio::test]
async fn no_damaged_answer_is_taken_that_others_refuse_or_understand_otherwise() {
    let (at, client, mut differing) = (Answering::open().await, reqwest_client(), Differing::default());
    let (mut taken, mut refused) = (0, 0);
    for seed in 0..DAMAGED {
        let mut rng = Rng::with_seed(seed);
        let Form { method, mut bytes, .. } = forms::any(&mut rng);
        let place = rng.usize(..bytes.len());
        bytes[place] = *rng.choice(b"\0\t\n\r ,:;/0159aAfFgHxX\x7f\x80\xff").unwrap();
        let (ours, theirs) = both(&at, &client, (method, &bytes), &mut rng).await;
        match (&ours, &theirs) {
            (Err(_), _) => refused += 1,
            (Ok(one), Ok(other)) if one == other => taken += 1,
            _ => differing.add(seed, (method, &bytes), [&ours, &theirs]),
        }
    }
    differing.check();
    assert!(taken > DAMAGED / 5 && refused > DAMAGED / 5, "{taken} taken, {refused} refused");
}
