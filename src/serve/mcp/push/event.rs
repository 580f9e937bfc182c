//! Notifications as events of the extension (push-notifications seed, "Event envelope").

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::notification::{Event, Notification};
use crate::serve::mcp::list::is_readable;
use crate::text::line;

/// Length of a line that tells of a link, in characters: a URI of the longest that a notification has, and a name.
const LINK_CHARS_MAX: usize = 2_300;

/// The first year of the seed's date-time form, which knows no sign.
const FIRST: Timestamp = Timestamp::constant(-62_167_219_200, 0);

/// An event. The envelope is closed: there is no more than this.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventJson<'a> {
    event_id: String,
    source_id: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    created_at: String,
    content: [TextJson; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
}

/// A text block of MCP.
#[derive(Debug, Serialize)]
struct TextJson {
    #[serde(rename = "type")]
    kind: &'static str,
    text: String,
}

/// What is read of a content block that a push queue brought.
#[derive(Deserialize)]
struct BlockJson {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    uri: Option<String>,
}

impl<'a> From<&'a Notification> for EventJson<'a> {
    fn from(of: &'a Notification) -> Self {
        let data: Option<&RawValue> = serde_json::from_str(&of.event.data).ok();
        // What usual readers cannot take would cost them the whole page, again and again, since they never get to acknowledge it.
        let data = data.filter(|data| is_readable(data.get()));
        let mut text = text(&of.event);
        if data.is_none() {
            let seq = of.seq;
            text.push_str(&format!(
                "\n\n(The payload is left out: usual readers of JSON take neither its depth nor its numbers. It is in the \
                 inbox, notification {seq}.)"
            ));
        }
        Self {
            event_id: of.global_id(),
            source_id: of.source.as_str(),
            kind: &of.event.name,
            created_at: of.event.timestamp.max(FIRST).to_string(),
            content: [TextJson { kind: "text", text }],
            data,
        }
    }
}

/// Title, body and links, with an empty line between.
fn text(event: &Event) -> String {
    let links = links(event).join("\n");
    let parts = [Some(event.title.as_str()), event.body.as_deref(), Some(links.as_str())];
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// The link of a notification and those among its content, one a line. They are text here: whether a consumer may follow them is
/// not for this server to say, as it would by a link of MCP.
fn links(event: &Event) -> Vec<String> {
    let blocks: Vec<&RawValue> =
        event.content.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    // The library would take an array for an object.
    let blocks = blocks
        .iter()
        .filter(|block| block.get().starts_with('{'))
        .filter_map(|block| serde_json::from_str::<BlockJson>(block.get()).ok());
    let mut links: Vec<String> = event.link.iter().cloned().collect();
    for block in blocks.filter(|block| block.kind == "resource_link") {
        let Some(uri) = block.uri.filter(|uri| Some(uri) != event.link.as_ref()) else { continue };
        let name = block.name.filter(|name| !name.is_empty()).map(|name| format!("{name}: ")).unwrap_or_default();
        links.push(line(&format!("{name}{uri}"), LINK_CHARS_MAX));
    }
    links
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::notification::Level;

    fn notification(data: &str, content: Option<Value>) -> Notification {
        Notification {
            workspace: "acme".parse().unwrap(),
            seq: 17,
            source: "crm".parse().unwrap(),
            received_at: Timestamp::UNIX_EPOCH,
            effective_level: Level::Info,
            event: Event {
                event_id: "evt_1".to_owned(),
                name: "domain.active".to_owned(),
                timestamp: "2026-09-01T18:42:10.5Z".parse().unwrap(),
                level: Level::Urgent,
                subject: Some("a.example".to_owned()),
                title: "Active".to_owned(),
                body: Some("a.example is\nactive".to_owned()),
                link: Some("acme://domains/a".to_owned()),
                data: data.to_owned(),
                content: content.map(|content| content.to_string()),
            },
        }
    }

    fn written(of: &Notification) -> String {
        serde_json::to_string(&EventJson::from(of)).unwrap()
    }

    #[test]
    fn an_event_has_the_parts_of_the_envelope_and_no_others_and_its_payload_as_it_came() {
        let data = "{ \"b\": 1.50,\r\n \"a\" : 12345678901234567890123 }";
        let text = r#"{"type":"text","text":"Active\n\na.example is\nactive\n\nacme://domains/a"}"#;
        assert_eq!(
            written(&notification(data, None)),
            format!(
                r#"{{"eventId":"acme:crm:evt_1","sourceId":"crm","type":"domain.active","createdAt":"2026-09-01T18:42:10.5Z","content":[{text}],"data":{data}}}"#
            )
        );
        let mut bare = notification("{}", None);
        (bare.event.body, bare.event.link, bare.event.timestamp) = (None, None, Timestamp::MIN);
        let bare: Value = serde_json::from_str(&written(&bare)).unwrap();
        assert_eq!((&bare["content"][0]["text"], &bare["data"]), (&json!("Active"), &json!({})));
        assert_eq!(bare["createdAt"], "0000-01-01T00:00:00Z");
    }

    #[test]
    fn links_among_the_content_are_lines_of_the_text() {
        let content = json!([
            { "type": "text", "text": "Active" },
            { "type": "resource_link", "name": "the\nzone", "uri": "acme://zones/a" },
            { "type": "resource_link", "uri": "acme://domains/a", "name": "the link again" },
            { "type": "resource_link", "name": "without" },
            { "type": "resource", "uri": "acme://embedded" },
            "no block",
            ["resource_link", "a", "b"],
            { "type": "resource_link", "uri": "acme://zones/b" },
        ]);
        let event = notification("{}", Some(content)).event;
        let expected = ["acme://domains/a", "the zone: acme://zones/a", "acme://zones/b"];
        assert_eq!(links(&event), expected);
        assert_eq!(text(&event), format!("Active\n\na.example is\nactive\n\n{}", expected.join("\n")));
        for content in ["{}", "null", "[", "[1e400]"] {
            let event = Event { content: Some(content.to_owned()), ..event.clone() };
            assert_eq!(links(&event), ["acme://domains/a"], "{content}");
        }
    }

    #[test]
    fn a_payload_that_would_cost_the_page_is_left_out_and_that_is_said() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        for data in ["{\"a\":1e400}", deep.as_str()] {
            let event: Value = serde_json::from_str(&written(&notification(data, None))).unwrap();
            assert_eq!(event.get("data"), None);
            let text = event["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("The payload is left out") && text.contains("notification 17"), "{text}");
        }
    }
}
