//! What the relay answers for each recipient, and what becomes of it.

use switchbell::wasm::Message;

use super::relay::{PLAIN, Relay, of_kind};
use super::stage::{client, mail, outcomes, plain, send};

/// The recipients of the mails that the relay accepted, in order.
fn accepted(reports: &[serde_json::Value]) -> Vec<String> {
    let mails = of_kind(reports, "mail").into_iter().filter(|mail| mail["accepted"] == true);
    mails.map(|mail| mail["to"][0].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn one_good_one_later_one_never_and_each_is_told_apart() {
    let relay = Relay::start(PLAIN).await;
    let mailed =
        send(&client(plain(relay.port)), mail(&["one", "busy", "gone", "two", "full", "deferred", "three"])).await;
    assert_eq!(
        outcomes(&mailed),
        [
            "ok",
            "refused recipient-refused 451: the relay refused: 451 4.7.1 Greylisted, come back later",
            "refused recipient-refused 550: the relay refused: 550 5.1.1 No such user here",
            "ok",
            "refused recipient-refused 552: the relay refused: 552 5.2.2 Mailbox full",
            "refused recipient-refused 451: the relay refused: 451 4.3.1 Out of storage for now",
            "ok",
        ]
    );
    let reports = relay.stop().await;
    assert_eq!(accepted(&reports), ["one@example.com", "two@example.com", "three@example.com"]);
    assert_eq!(of_kind(&reports, "connected").len(), 1, "one connection carries them all");
}

#[tokio::test]
async fn a_connection_lost_after_the_final_dot_is_unanswered_and_before_it_unsent() {
    let relay = Relay::start(PLAIN).await;
    let mailed = send(&client(plain(relay.port)), mail(&["one", "dropped", "torn", "two"])).await;
    let outcomes = outcomes(&mailed);
    assert_eq!((outcomes[0].as_str(), outcomes[3].as_str()), ("ok", "ok"));
    assert!(outcomes[1].starts_with("unanswered no-answer: the mail was sent whole, but"), "{}", outcomes[1]);
    assert!(outcomes[2].starts_with("unsent lost: "), "{}", outcomes[2]);
    let reports = relay.stop().await;
    assert_eq!(accepted(&reports), ["one@example.com", "two@example.com"]);
    assert_eq!(of_kind(&reports, "mail").len(), 3, "the one that was cut off was sent once");
}

#[tokio::test]
async fn a_relay_that_closes_is_left_alone() {
    let relay = Relay::start(PLAIN).await;
    let mailed = send(&client(plain(relay.port)), mail(&["one", "closing", "two"])).await;
    let closing = "refused relay-closing 421: the relay closed the connection: 421 4.3.2 Too many connections";
    assert_eq!(outcomes(&mailed), ["ok", closing, closing]);
    let reports = relay.stop().await;
    assert_eq!((accepted(&reports).len(), of_kind(&reports, "connected").len()), (1, 1));
}

#[tokio::test]
async fn what_the_operator_does_not_allow_keeps_nobody_else_from_the_mail() {
    let relay = Relay::start(PLAIN).await;
    let to = ["one@example.com", "else@other.example", "x@y@example.com", "ONE@example.com", "one@EXAMPLE.com"];
    let message = Message { to: to.map(str::to_owned).to_vec(), ..mail(&[]) };
    let mailed = send(&client(plain(relay.port)), message).await;
    let outcomes = outcomes(&mailed);
    assert_eq!((outcomes[0].as_str(), outcomes[3].as_str(), outcomes[4].as_str()), ("ok", "ok", "ok"));
    assert!(outcomes[1].starts_with("denied recipient-not-allowed: mail may not go to else@other.example"));
    assert!(outcomes[2].starts_with("denied address: "));
    assert!(mailed.recipients.iter().map(|recipient| recipient.address.as_str()).eq(to));
    let reports = relay.stop().await;
    // Whether case counts before the @ is the recipient's server's to say, after it never.
    assert_eq!(accepted(&reports), ["one@example.com", "ONE@example.com"], "who stands twice gets one mail");
}

#[tokio::test]
async fn without_a_relay_or_a_connection_nothing_is_sent() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mailed = send(&client(plain(nobody)), mail(&["one", "two"])).await;
    let outcomes = outcomes(&mailed);
    assert!(
        outcomes.iter().all(|outcome| outcome.starts_with("unsent connect: no connection to the relay: ")),
        "{outcomes:?}"
    );

    let config = super::stage::config(None, "");
    let client = switchbell::send::effect::MailClient::new(&config).unwrap();
    let fault = super::stage::send_as(&client, mail(&["one"]), 1).await.unwrap_err();
    assert_eq!(fault.code, "not-configured");
}
