//! The address of `listen:`: lets connections in, so many at once, and serves each until it ends, asks nothing for a while, or
//! everything stops.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::Request;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::rt::{Sleep, Timer};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::room::{Place, Room};
use crate::clock::Clock;
use crate::telemetry::metrics::Metrics;

/// How long the head of a request may take to come: from the beginning of a connection, or from the end of the answer before.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);

/// Largest head of a request, in bytes; as much is kept of a body or an answer on its way.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// What the system keeps of an answer that is on its way, in bytes; Linux takes twice that. It would let it grow to megabytes
/// for each client that reads slowly.
const SEND_BUFFER_BYTES: usize = 64 * 1024;

/// Lets connections in.
#[derive(Debug)]
pub(super) struct Door {
    /// The listener.
    pub(super) listener: TcpListener,
    /// The time that answers are taken by.
    pub(super) clock: Clock,
    /// Counts who is cut off and who is not let in.
    pub(super) metrics: Arc<Metrics>,
    /// Counts who is in.
    pub(super) room: Room,
}

impl Door {
    /// Serves these routes until told to stop; then what is under way is finished. Handlers find the address of the other end as
    /// [`ConnectInfo`]. A proxy's connections are those of many, and not counted by its address; neither are those of this
    /// machine.
    pub(super) async fn serve(mut self, routes: Router, stop: CancellationToken, is_proxy: impl Fn(IpAddr) -> bool) {
        let mut open = JoinSet::new();
        loop {
            let (stream, address) = tokio::select! {
                accepted = Listener::accept(&mut self.listener) => accepted,
                Some(_) = open.join_next() => continue,
                () = stop.cancelled() => break,
            };
            let ip = address.ip().to_canonical();
            let Some(place) = self.room.enter((!ip.is_loopback() && !is_proxy(ip)).then_some(ip)) else {
                self.metrics.turned_away();
                continue;
            };
            open.spawn(talk_in(place, self.connection(stream), address, routes.clone(), stop.clone()));
        }
        drop(self.listener);
        while open.join_next().await.is_some() {}
    }

    fn connection(&self, stream: TcpStream) -> Connection<TcpStream> {
        // A connection is served without them, too.
        let small = stream.set_nodelay(true).is_ok() && set_socket_send_buffer_size(&stream, SEND_BUFFER_BYTES).is_ok();
        if !small {
            tracing::debug!("a connection keeps the buffers of the system");
        }
        Connection::new(stream, self.clock.clone(), Arc::clone(&self.metrics))
    }
}

/// A client is waited for by the real time, whatever the time is that the rest of the server goes by.
async fn talk_in(
    _place: Place,
    connection: Connection<TcpStream>,
    address: SocketAddr,
    routes: Router,
    stop: CancellationToken,
) {
    talk(connection, address, routes, stop, Clock::system()).await;
}

/// Answers the requests of one connection.
async fn talk<S: AsyncRead + AsyncWrite + Unpin>(
    connection: Connection<S>,
    address: SocketAddr,
    routes: Router,
    stop: CancellationToken,
    clock: Clock,
) {
    let routes = TowerToHyperService::new(routes);
    let answered = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(address));
        routes.call(request)
    });
    let mut rules = http1::Builder::new();
    rules.timer(Timed(clock)).header_read_timeout(HEAD_TIME_MAX).max_buf_size(HEAD_BYTES_MAX);
    let mut served = pin!(rules.serve_connection(TokioIo::new(connection), answered));
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

/// The timer that the library asks, by our clock.
#[derive(Debug)]
struct Timed(Clock);

impl Timer for Timed {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        let clock = self.0.clone();
        Box::pin(Nap(Box::pin(async move { clock.sleep(duration).await })))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.sleep(deadline.saturating_duration_since(self.now()))
    }
}

struct Nap(Pin<Box<dyn Future<Output = ()> + Send + Sync>>);

impl Future for Nap {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(context)
    }
}

impl Sleep for Nap {}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use futures_util::FutureExt;
    use jiff::Timestamp;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    fn routes() -> Router {
        Router::new().route("/", get(|ConnectInfo(from): ConnectInfo<SocketAddr>| async move { from.to_string() }))
    }

    fn talking(clock: &Clock) -> (DuplexStream, Pin<Box<dyn Future<Output = ()>>>) {
        let (client, server) = duplex(1 << 16);
        let connection = Connection::new(server, clock.clone(), Arc::default());
        let from = "192.0.2.7:4711".parse().unwrap();
        (client, Box::pin(talk(connection, from, routes(), CancellationToken::new(), clock.clone())))
    }

    #[tokio::test]
    async fn a_head_that_does_not_come_whole_ends_its_connection_however_often_a_byte_comes() {
        for before in [b"".as_slice(), REQUEST] {
            let clock = Clock::manual(Timestamp::UNIX_EPOCH);
            let (mut client, mut talk) = talking(&clock);
            client.write_all(before).await.unwrap();
            for _ in 1..HEAD_TIME_MAX.as_secs() {
                assert!((&mut talk).now_or_never().is_none());
                client.write_all(b"G").await.unwrap();
                clock.advance(Duration::from_secs(1));
            }
            assert!((&mut talk).now_or_never().is_none());
            clock.advance(Duration::from_secs(1));
            talk.await;
            let mut answered = String::new();
            client.read_to_string(&mut answered).await.unwrap();
            assert_eq!(answered.contains("192.0.2.7:4711"), !before.is_empty(), "{answered}");
        }
    }

    #[tokio::test]
    async fn a_connection_that_asks_nothing_ends() {
        for before in [b"".as_slice(), REQUEST] {
            let clock = Clock::manual(Timestamp::UNIX_EPOCH);
            let (mut client, mut talk) = talking(&clock);
            client.write_all(before).await.unwrap();
            assert!((&mut talk).now_or_never().is_none());
            clock.advance(HEAD_TIME_MAX);
            talk.await;
        }
    }

    async fn asked(client: &mut TcpStream) -> usize {
        // It may be closed before anything is written.
        let _ = client.write_all(REQUEST).await;
        client.read(&mut [0; 1024]).await.unwrap_or(0)
    }

    #[tokio::test]
    async fn who_finds_no_room_is_turned_away_at_once_and_counted_and_a_stop_ends_idle_connections() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let metrics = Arc::new(Metrics::default());
        let door = Door { listener, clock: Clock::system(), metrics: Arc::clone(&metrics), room: Room::new(1) };
        let stop = CancellationToken::new();
        let served = tokio::spawn(door.serve(routes(), stop.clone(), |_| false));
        let mut first = TcpStream::connect(address).await.unwrap();
        assert!(asked(&mut first).await > 0);
        let mut second = TcpStream::connect(address).await.unwrap();
        assert_eq!(asked(&mut second).await, 0);
        assert!(metrics.text().unwrap().contains("switchbell_connections_turned_away_total 1"));
        assert!(asked(&mut first).await > 0);
        drop(first);
        // The place is free once the server has seen that the first is gone.
        while asked(&mut TcpStream::connect(address).await.unwrap()).await == 0 {}
        stop.cancel();
        served.await.unwrap();
    }
}
