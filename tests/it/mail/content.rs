//! What another program reads in the mails that were sent.

use serde_json::{Value, json};
use switchbell::wasm::Message;

use super::relay::{PLAIN, Relay, content, read};
use super::stage::{client, mail, plain, send, send_as};

fn header<'a>(read: &'a Value, name: &str) -> Option<&'a str> {
    let headers = read["headers"].as_array().unwrap();
    let mut values = headers.iter().filter(|header| header[0] == name).map(|header| header[1].as_str().unwrap());
    let value = values.next();
    assert_eq!(values.next(), None, "{name} stands twice");
    value
}

#[tokio::test]
async fn every_text_is_read_as_it_was_written() {
    let mut relay = Relay::start(PLAIN).await;
    let client = client(plain(relay.port));
    let folded = "one two three four five six seven eight nine ten ".repeat(12);
    let long_word = "w".repeat(300);
    for (subject, text) in [
        ("plain", "plain\n"),
        ("größere Änderung an acme.example", "Straße, größer, 100 %\n"),
        (
            "日本語の件名、とても長い件名がここにありますので、折り返しが必要です。もっと長く、もっと長く",
            "日本語\nの本文\n",
        ),
        ("🔔🔔🔔🔔🔔🔔🔔🔔🔔🔔🔔🔔🔔🔔🔔🔔🔔🔔🔔🔔🔔🔔🔔", "🔔 and more\n"),
        ("=?utf-8?q?looks_encoded?=", "=?utf-8?q?looks_encoded?= and =3D\n"),
        ("a  b   c", "trailing space \ntab\t\n"),
        (folded.trim_end(), "From here\n.\n..\n.leading dot\n\n.\n"),
        (&long_word, &"long ".repeat(2000)),
        ("Subject: Bcc: a@b", "Bcc: else@other.example\n\nTo: a@b\n"),
        ("ends with a colon:", "no line break at the end"),
        ("e\u{301} عربى \u{200d}", "e\u{301} عربى\u{200d}\n"),
        ("x", "\u{1b}[31m and \0\n"),
    ] {
        let message = Message { subject: subject.to_owned(), text: text.to_owned(), ..mail(&["ops"]) };
        send(&client, message).await;
        let mail = content(&relay.next("mail").await);
        assert!(mail.is_ascii() && mail.split(|byte| *byte == b'\n').all(|line| line.len() <= 999), "{subject:?}");
        let read = read(&mail);
        assert_eq!(header(&read, "Subject"), Some(subject));
        // A mail always ends with a line break.
        assert_eq!(read["text"].as_str().unwrap().trim_end_matches('\n'), text.trim_end_matches('\n'));
        assert_eq!(
            (&read["defects"], &read["type"], &read["charset"]),
            (&json!([]), &json!("text/plain"), &json!("utf-8"))
        );
        assert_eq!(header(&read, "Bcc"), None);
        assert_eq!(read["to"], json!(["ops@example.com"]));
    }
}

#[tokio::test]
async fn the_headers_say_what_the_mail_is() {
    let mut relay = Relay::start(PLAIN).await;
    let client = client(plain(relay.port));
    let extras = json!({ "list_unsubscribe": "https://bell.example.com/off?route=domain-news" }).to_string();
    let message = Message { thread: Some("acme.example\r\nX: y".to_owned()), extras, ..mail(&["one", "two"]) };
    let mailed = send(&client, message.clone()).await;
    let one = read(&content(&relay.next("mail").await));
    let two = read(&content(&relay.next("mail").await));
    for (read, to) in [(&one, "one@example.com"), (&two, "two@example.com")] {
        assert_eq!(read["to"], json!([to]), "each sees its own address only");
        assert_eq!(read["from"], json!([["Switchbell", "bell@example.com"]]));
        assert_eq!(read["date"], "2026-09-01T18:42:10+00:00");
        assert_eq!(header(read, "Message-ID"), Some(mailed.message_id.as_str()));
        assert_eq!(header(read, "Auto-Submitted"), Some("auto-generated"));
        assert_eq!(header(read, "List-Id"), Some("<domain-news.acme.example.com>"));
        assert_eq!(header(read, "List-Unsubscribe"), Some("<https://bell.example.com/off?route=domain-news>"));
        assert_eq!(header(read, "References"), header(read, "In-Reply-To"));
        assert!(header(read, "References").unwrap().ends_with("@example.com>"));
    }
    let again = send(&client, message.clone()).await;
    assert_eq!(again.message_id, mailed.message_id, "another attempt of one delivery");
    let first_again = read(&content(&relay.next("mail").await));
    assert_eq!(first_again, one);
    let other = send_as(&client, message, 2).await.unwrap();
    assert_ne!(other.message_id, mailed.message_id);
    relay.next("mail").await;
    let of_the_thread = read(&content(&relay.next("mail").await));
    assert_eq!(header(&of_the_thread, "References"), header(&one, "References"), "one thread");
}
