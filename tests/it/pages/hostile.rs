//! What connectors and destinations write is text, whatever it is.

use serde_json::{Value, json};

use super::stage::Stage;
use crate::support::{Over, Peer, Reply, Stage as Outbox, World};

const MARKUP: &str = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;</bdi></title>";

/// What a program says before it ends badly.
const BROKEN: &str =
    "{ run: [sh, -c, \"echo '<img src=https://evil.example/a onerror=alert(3)>' >&2; exit 1\"], workspaces: [acme] }";

fn event(id: &str, name: &str, title: &str, subject: &str, body: &str, link: &str) -> Value {
    let block =
        json!({ "title": title, "subject": subject, "body": body, "level": "urgent", "link": { "resource": link } });
    json!({ "eventId": id, "name": name, "timestamp": "2026-09-01T18:42:10Z",
        "data": { "payload": "never shown" }, "_meta": { "ai.nimblebrain/notification": block } })
}

#[tokio::test]
async fn hostile_content_is_text_everywhere_and_brings_nothing_about() {
    let outbox = Outbox::new(Peer::FastMcp3, Over::Stdio, "0").await;
    let command = outbox.command();
    let mut stage = Stage::with(|world, _| {
        let file = std::fs::read_to_string(world.config()).unwrap();
        let start = file.find("commands: ").unwrap();
        let end = start + file[start..].find('\n').unwrap();
        let commands = format!("commands: {{ outbox: {command}, broken: {BROKEN} }}");
        world.write("switchbell.yaml", &format!("{}{commands}{}", &file[..start], &file[end..]));
        let connectors = World::stdio_connector();
        let more = ", broken: { command: broken, notifications: { resource: \"broken://notifications\" } } }";
        let file = std::fs::read_to_string(world.path("workspaces/acme.yaml")).unwrap();
        let both = format!("{}{more}", connectors.trim_end().strip_suffix('}').unwrap());
        world.write("workspaces/acme.yaml", &file.replace(&connectors, &both));
    })
    .await;
    let refusal = "<b>no</b><script>alert(4)</script>";
    stage.sink.answer_next([Reply { status: 400, headers: Vec::new(), body: refusal }]);
    let long = "W".repeat(1_800);
    let body = format!("{MARKUP}\n{long}\nhttps://evil.example/auto");
    let name = "<script>alert(5)</script>";
    let title = format!("{MARKUP} pay\u{200d}pal \u{5e9}\u{5dc}\u{5d5}\u{5dd}");
    outbox.add_event(
        &event("\"><script>alert(6)</script>", name, &title, MARKUP, &body, "https://good.example@evil.example/x"),
        "1",
    );
    outbox.add_event(&event("two", "two", "\u{202e}detacilpmoc", "two", "two", "acme://<b>x</b>"), "2");
    let shown = stage
        .run(
            "await page.locator('#n-2, li.row').filter({ hasText: 'detacilpmoc' }).waitFor();
             await page.locator('.rows a.title', { hasText: 'alert(1)' }).click();
             const text = (selector) => page.locator(selector).first().textContent();
             await page.getByText('Bad Request').or(page.locator('#deliveries .chip')).first().waitFor();
             return { title: await text('h1'), subject: await text('article .subject'), body: await text('article .body'),
               fields: await text('article .fields'), page: await page.title(),
               links: await page.locator('a[href*=evil]').evaluateAll((all) => all.map((link) => [link.href, link.rel, link.target])),
               open: await page.locator('article .link a').textContent() }",
            Value::Null,
        )
        .await;
    let marked = |text: &str| text.replace('\u{200d}', "U+200D");
    assert_eq!(shown["title"], marked(&title));
    assert_eq!(shown["subject"], MARKUP);
    assert_eq!(shown["body"], body);
    assert!(shown["fields"].as_str().unwrap().contains(name), "{shown}");
    assert!(shown["fields"].as_str().unwrap().contains("\"><script>alert(6)</script>"), "{shown}");
    assert!(shown["page"].as_str().unwrap().contains(&marked(&title)), "{shown}");
    let link = json!([["https://good.example@evil.example/x", "noopener noreferrer nofollow", "_blank"]]);
    assert_eq!(shown["links"], link);
    assert!(shown["open"].as_str().unwrap().starts_with("Open evil.example"), "{shown}");
    assert!(!shown.to_string().contains("never shown"), "{shown}");

    let others = stage
        .run(
            "await page.goto('/w/acme/connectors'); await page.getByText('evil.example/a').first().waitFor();
             const error = await page.locator('.why').first().textContent();
             const markup = [];
             for (const path of ['inbox', 'inbox?sort=level', 'deliveries', 'connectors', 'gaps', 'inbox/1?why=1', 'inbox/2?why=1', 'inbox/3?why=1']) {
               await page.goto(`/w/acme/${path}`);
               markup.push(await page.locator('main script, main img, main iframe, main b b, main [onerror], main [style]').count());
               const html = await page.content(); if (html.includes('never shown')) markup.push(path);
             }
             return [error, markup]",
            Value::Null,
        )
        .await;
    assert!(others[0].as_str().unwrap().contains("<img src=https://evil.example/a onerror=alert(3)>"), "{others}");
    assert_eq!(others[1], json!([0, 0, 0, 0, 0, 0, 0, 0]));
    stage.end().await;
}
