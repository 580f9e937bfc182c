//! Connections that are kept, that died meanwhile, and relays that answer what nobody asked.

use std::sync::Arc;

use switchbell::config::MailTls;
use switchbell::wasm::Mailed;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::relay::{PLAIN, Relay, of_kind};
use super::stage::{client, mail, outcomes, plain, protected, send, send_as};

#[tokio::test]
async fn an_idle_connection_is_used_again_and_closed_at_the_end() {
    let relay = Relay::start(PLAIN).await;
    let client = Arc::new(client(plain(relay.port)));
    let stop = CancellationToken::new();
    let tending = tokio::spawn({
        let (client, stop) = (Arc::clone(&client), stop.clone());
        async move { client.tend(&stop).await }
    });
    for delivery in 1..=3 {
        let mailed = send_as(&client, mail(&["one", "gone"]), delivery).await.unwrap();
        assert_eq!(outcomes(&mailed)[0], "ok");
    }
    stop.cancel();
    tending.await.unwrap();
    let reports = relay.stop().await;
    assert_eq!((of_kind(&reports, "connected").len(), of_kind(&reports, "mail").len()), (1, 3));
}

#[tokio::test]
async fn mails_at_the_same_time_share_a_bounded_number_of_connections() {
    let relay = Relay::start(PLAIN).await;
    let client = client(plain(relay.port));
    let sending = (1..=40).map(|delivery| send_as(&client, mail(&["one"]), delivery));
    let mailed = futures_util::future::join_all(sending).await;
    assert!(mailed.iter().all(|mailed| outcomes(mailed.as_ref().unwrap()) == ["ok"]));
    let reports = relay.stop().await;
    assert_eq!(of_kind(&reports, "mail").len(), 40);
    assert!((1..=8).contains(&of_kind(&reports, "connected").len()), "{reports:?}");
}

/// The second mail goes out on a new connection, once.
async fn a_dead_connection_is_replaced(how_it_dies: &str) {
    let mut relay = Relay::start(PLAIN).await;
    let client = client(plain(relay.port));
    assert_eq!(outcomes(&send(&client, mail(&[how_it_dies])).await), ["ok"]);
    relay.next("mail").await;
    let mailed = send_as(&client, mail(&["one"]), 2).await.unwrap();
    assert_eq!(outcomes(&mailed), ["ok"]);
    let reports = relay.stop().await;
    assert_eq!((of_kind(&reports, "connected").len(), of_kind(&reports, "mail").len()), (1, 1));
}

#[tokio::test]
async fn a_connection_that_died_idle_is_replaced() {
    a_dead_connection_is_replaced("bye").await;
}

#[tokio::test]
async fn a_connection_that_was_given_up_idle_is_replaced() {
    a_dead_connection_is_replaced("idle").await;
}

/// A relay that answers each line that it is told with the next of these, and mails as they end.
async fn scripted(replies: &'static [&'static [u8]]) -> (u16, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let (read, mut write) = listener.accept().await.unwrap().0.into_split();
        let mut lines = BufReader::new(read).lines();
        let (mut heard, mut is_mail) = (Vec::new(), false);
        let mut replies = replies.iter();
        let mut reply = replies.next();
        while let Some(now) = reply {
            write.write_all(now).await.unwrap();
            if replies.len() == 0 {
                write.shutdown().await.unwrap();
            }
            is_mail |= now.starts_with(b"354");
            reply = None;
            // What is said after the last answer is heard, too.
            while let Ok(Some(line)) = lines.next_line().await {
                let is_over = !is_mail || line == ".";
                heard.push(line);
                if is_over {
                    is_mail = false;
                    reply = replies.next();
                    break;
                }
            }
        }
        heard
    });
    (port, serving)
}

const GREETED: [&[u8]; 5] =
    [b"220 hi\r\n", b"250-relay.example\r\n250 HELP\r\n", b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n"];

async fn sent_to(port: u16) -> Mailed {
    send(&client(plain(port)), mail(&["one"])).await
}

#[tokio::test]
async fn words_that_are_no_ascii_are_no_reason_for_doubt() {
    const REPLIES: &[&[u8]] =
        &[GREETED[0], GREETED[1], GREETED[2], GREETED[3], GREETED[4], b"250 angenommen f\xfcr sp\xe4ter\r\n"];
    let (port, serving) = scripted(REPLIES).await;
    assert_eq!(outcomes(&sent_to(port).await), ["ok"]);
    assert!(serving.await.unwrap().contains(&"RCPT TO:<one@example.com>".to_owned()));
    const REFUSED: &[&[u8]] =
        &[GREETED[0], GREETED[1], GREETED[2], b"550-5.1.1 unbekannt \xfc\r\n550 5.1.1 wirklich\r\n"];
    let (port, _serving) = scripted(REFUSED).await;
    assert_eq!(
        outcomes(&sent_to(port).await),
        ["refused recipient-refused 550: the relay refused: 550 5.1.1 unbekannt ? wirklich"]
    );
}

#[tokio::test]
async fn an_answer_that_is_none_after_the_dot_leaves_it_open() {
    for last in [&b"what?\r\n"[..], b"354 more\r\n", b"25", b""] {
        let replies: Vec<&'static [u8]> = GREETED.into_iter().chain([last]).collect();
        let (port, _serving) = scripted(Vec::leak(replies)).await;
        let outcomes = outcomes(&sent_to(port).await);
        assert!(outcomes[0].starts_with("unanswered no-answer: "), "{outcomes:?}");
    }
}

#[tokio::test]
async fn an_answer_to_an_earlier_question_is_none_to_a_later_one() {
    // The second line would be taken for the answer to the recipient.
    const REPLIES: &[&[u8]] = &[GREETED[0], GREETED[1], b"250 ok\r\n250 ok\r\n", b"550 no\r\n"];
    let (port, _serving) = scripted(REPLIES).await;
    let outcomes = outcomes(&sent_to(port).await);
    assert_eq!(
        outcomes,
        ["unsent lost: the connection to the relay was lost before the mail was: the relay spoke out of turn"]
    );
}

#[tokio::test]
async fn nothing_said_in_clear_counts_once_tls_has_begun() {
    const INJECTED: &[u8] = b"220 go ahead\r\n250-relay.example\r\n250 AUTH PLAIN\r\n";
    const REPLIES: &[&[u8]] = &[GREETED[0], b"250-relay.example\r\n250 STARTTLS\r\n", INJECTED];
    let (port, serving) = scripted(REPLIES).await;
    let mailed = send(&client(protected(port, MailTls::StartTls)), mail(&["one"])).await;
    assert!(outcomes(&mailed)[0].starts_with("unsent "), "{:?}", outcomes(&mailed));
    let heard = serving.await.unwrap();
    assert!(!heard.iter().any(|line| line.starts_with("AUTH") || line.starts_with("MAIL")), "{heard:?}");
}

#[tokio::test]
async fn a_relay_that_turns_this_server_away_is_told_so() {
    let (port, _serving) = scripted(&[b"554 5.7.1 no mail from you\r\n"]).await;
    let expected = "unsent relay-refused 554: the relay turned this server away: 554 5.7.1 no mail from you";
    assert_eq!(outcomes(&sent_to(port).await), [expected]);
    let (port, _serving) = scripted(&[b"421 4.7.0 too many connections\r\n"]).await;
    let expected = "refused relay-refused 421: the relay turned this server away: 421 4.7.0 too many connections";
    assert_eq!(outcomes(&sent_to(port).await), [expected]);
}
