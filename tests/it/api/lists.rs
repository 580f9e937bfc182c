//! Lists: what they hold, and where they go on.

use serde_json::{Value, json};

use super::stage::{Api, As};

/// Events that are written while others walk.
const EVENTS: u64 = 300;

fn seqs(list: &Value) -> Vec<u64> {
    list["items"].as_array().unwrap().iter().map(|item| item["seq"].as_u64().unwrap()).collect()
}

/// From the newest to the first; the numbers that were met.
async fn walk_down(api: &Api) -> Vec<u64> {
    let mut met = Vec::new();
    let mut before = String::new();
    loop {
        let page = api.acme(&format!("/notifications?limit=7{before}")).await;
        met.extend(seqs(&page));
        match page["next"].as_u64() {
            Some(next) => before = format!("&before={next}"),
            None => return met,
        }
    }
}

#[tokio::test]
async fn whoever_walks_an_inbox_that_grows_meets_everything_once_both_ways() {
    let api = Api::start().await;
    let mut writer = api.outbox.add_all((1..=EVENTS).map(|number| format!("title {number}")));
    let (mut up, mut after) = (Vec::new(), 0);
    while up.len() < usize::try_from(EVENTS).unwrap() {
        let page = api.acme(&format!("/notifications?order=oldest&limit=5&after={after}")).await;
        up.extend(seqs(&page));
        after = page["next"].as_u64().or(up.last().copied()).unwrap_or(after);
        let down = walk_down(&api).await;
        let newest = down.first().copied().unwrap_or_default();
        assert_eq!(down, (1..=newest).rev().collect::<Vec<_>>(), "downwards");
    }
    assert_eq!(up, (1..=EVENTS).collect::<Vec<_>>(), "upwards");
    assert!(writer.wait().unwrap().success());
}

#[tokio::test]
async fn a_list_holds_what_is_asked_for() {
    let mut api = Api::start().await;
    for title in ["one", "Two words", "three"] {
        api.deliver(title).await;
    }
    api.post(As::Member, "/v1/workspaces/acme/notifications/read", &json!({"seqs": [1]})).await;
    api.post(As::Member, "/v1/workspaces/acme/notifications/acknowledge", &json!({"seqs": [2]})).await;
    for (query, expected) in [
        ("", vec![3, 2, 1]),
        ("order=oldest", vec![1, 2, 3]),
        ("order=oldest&limit=2", vec![1, 2]),
        ("after=1&before=3", vec![2]),
        ("unread=true", vec![3]),
        ("unacknowledged=true", vec![3, 1]),
        ("seqs=3,1", vec![3, 1]),
        ("query=two%20W", vec![2]),
        ("name=domain.*", vec![3, 2, 1]),
        ("name=*.failed", vec![]),
        ("source=regis*&level=info", vec![3, 2, 1]),
        ("level=urgent", vec![]),
        ("since=2020-01-01T00:00:00Z", vec![3, 2, 1]),
        ("since=2999-01-01T00:00:00Z", vec![]),
    ] {
        let list = api.acme(&format!("/notifications?{query}")).await;
        assert_eq!((seqs(&list), &list["unread"]), (expected, &json!(1)), "{query}");
    }
    let page = api.acme("/deliveries?limit=2").await;
    assert_eq!((page["items"].as_array().unwrap().len(), &page["next"]), (2, &json!(2)));
    let rest = api.acme("/deliveries?limit=2&before=2").await;
    assert_eq!((&rest["items"][0]["notifications"], &rest["next"]), (&json!([1]), &Value::Null));
    let exact = api.acme("/deliveries?limit=3").await;
    assert_eq!((exact["items"].as_array().unwrap().len(), &exact["next"]), (3, &Value::Null));
    for (query, count) in
        [("state=delivered,dead", 3), ("state=dead", 0), ("seq=2", 1), ("route=everything&plugin=slack", 3)]
    {
        let list = api.acme(&format!("/deliveries?{query}")).await;
        assert_eq!(list["items"].as_array().unwrap().len(), count, "{query}");
    }
}

#[tokio::test]
async fn routes_are_shown_with_the_names_of_secrets_and_no_credential() {
    let api = Api::start().await;
    let text = std::fs::read_to_string(api.world.path("workspaces/acme.yaml")).unwrap();
    let hook = "https://hooks.slack.com/services/T0000/B0000/abcdefghijklmnop";
    let target = format!(
        "      - id: page\n        plugin: slack\n        with: {{ webhook: \"{hook}\" }}\n        after: 15m\n        \
         unless: acknowledged\n        hold: {{ from: \"22:00\", to: \"07:00\", zone: Europe/Berlin, except: urgent }}\n        \
         at_most: {{ count: 5, per: 1h }}\n"
    );
    api.world.write("workspaces/acme.yaml", &(text + &target));
    let reloaded = api.post(As::Operator, "/v1/reload", &json!({})).await;
    assert_eq!(reloaded.status, 200, "{}", reloaded.text);
    let shown = api.get(As::Member, "/v1/workspaces/acme/routes").await;
    assert!(!shown.text.contains("abcdefghijklmnop"), "{}", shown.text);
    let routes = shown.json();
    let deliver = &routes["items"][0]["deliver"];
    assert_eq!(deliver[0]["with"], json!({"webhook": {"secret": "slack-ops"}}));
    let page = &deliver[1];
    assert_eq!((&page["id"], &page["unless"]), (&json!("page"), &json!("person")));
    assert_eq!(page["after"], json!({"wait": "15m", "except": null}));
    assert_eq!(page["hold"], json!({"from": "22:00", "to": "07:00", "zone": "Europe/Berlin", "except": "urgent"}));
    assert_eq!(page["atMost"], json!({"count": 5, "per": "1h", "except": "urgent"}));
    assert_eq!(routes["items"][0]["when"]["source"], json!(["registrar"]));
    let plugins = api.get(As::Member, "/v1/workspaces/acme/plugins").await.json();
    let slack = &plugins["items"][0];
    assert_eq!((&slack["name"], &slack["routes"]), (&json!("slack"), &json!(["everything"])));
    assert_eq!((slack["grants"]["http"].as_array().unwrap().len(), &slack["grants"]["mail"]), (1, &json!(false)));
}
