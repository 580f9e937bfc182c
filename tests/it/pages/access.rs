//! Pages for everybody: with a screen reader, a keyboard, a phone, without script; and pages that say what is wrong.

use serde_json::{Value, json};

use super::stage::Stage;
use crate::support::Reply;

/// Bytes of everything that the first view loads.
const FIRST_VIEW_BYTES_MAX: u64 = 100_000;

#[tokio::test]
async fn every_page_is_accessible_stands_still_and_fits_light_and_dark_on_a_phone_and_a_desktop() {
    let mut stage = Stage::new().await;
    stage.sink.answer_next([Reply { status: 404, headers: Vec::new(), body: "channel_not_found" }]);
    stage.add(
        "kept back",
        &["--level", "urgent", "--subject", "a.example", "--body", "More.\nAnd more.", "--link", "https://a.example/"],
    );
    stage.arrives("a long title ".repeat(12).trim(), &["--level", "attention"]).await;
    stage
        .run(
            "await page.goto('/w/acme/deliveries?state=blocked'); await page.locator('.card').first().waitFor()",
            Value::Null,
        )
        .await;
    let found = stage
        .run(
            "const delivery = await page.locator('.card a.title').first().getAttribute('href');
             const paths = ['/w/acme/inbox', '/w/acme/inbox?sort=level&name=*.*', '/w/acme/inbox/1?why=1', '/w/acme/inbox?q=none',
               '/w/acme/deliveries', delivery, '/w/acme/routes', '/w/acme/connectors', '/w/acme/consumers', '/w/acme/plugins', '/w/acme/gaps',
               '/plugins', '/configuration', '/w/none/inbox'];
             const storageState = await context.storageState(); const found = [];
             for (const colorScheme of ['light', 'dark']) for (const width of [360, 1280]) {
               const tab = await open({ colorScheme, storageState, viewport: { width, height: 800 }, timezoneId: 'Asia/Kathmandu' });
               await tab.addInitScript(() => { window.shifted = 0; new PerformanceObserver((list) =>
                 list.getEntries().forEach((entry) => (window.shifted += entry.value))).observe({ type: 'layout-shift', buffered: true }); });
               for (const path of paths) {
                 await tab.goto(path); await tab.waitForLoadState('load');
                 const wrong = await axe(tab);
                 const measured = await tab.evaluate(() => [window.shifted, document.documentElement.scrollWidth > innerWidth]);
                 if (wrong.length || measured[0] || measured[1]) found.push([path, colorScheme, width, wrong, measured]);
               }
               await tab.close();
             }
             // The browser reports that there is no such workspace.
             seen.splice(0, seen.length, ...seen.filter((line) => !line.includes('404')));
             return found",
            Value::Null,
        )
        .await;
    assert_eq!(found, json!([]));
    stage.end().await;
}

#[tokio::test]
async fn the_first_view_of_a_full_page_is_small() {
    let mut stage = Stage::new().await;
    let titles = (0..60).map(|number| format!("a title of an ordinary length, number {number}"));
    stage.outbox.add_all(titles).wait().unwrap();
    let bytes = stage
        .run(
            "await page.getByRole('link', { name: 'number 59' }).waitFor();
             const tab = await open({ storageState: await context.storageState() }); const loaded = [];
             tab.on('response', (answer) => { if (!answer.url().includes('/stream')) loaded.push(answer.body()); });
             await tab.goto('/w/acme/inbox'); await tab.waitForLoadState('load');
             return (await Promise.all(loaded)).reduce((sum, body) => sum + body.length, 0)",
            Value::Null,
        )
        .await;
    let bytes = bytes.as_u64().unwrap();
    assert!((20_000..FIRST_VIEW_BYTES_MAX).contains(&bytes), "{bytes} bytes");
    stage.end().await;
}

#[tokio::test]
async fn times_are_in_the_zone_of_the_reader_and_exact_in_utc_beside() {
    let mut stage = Stage::new().await;
    stage.arrives("timed", &[]).await;
    let shown = stage
        .run(
            "const tab = await open({ storageState: await context.storageState(), timezoneId: 'Asia/Kathmandu', locale: 'en-GB' });
             await tab.clock.install(); await tab.clock.setFixedTime(Date.now() + 3 * 86_400_000);
             await tab.goto('/w/acme/inbox');
             return tab.locator('.row time').evaluate((time) => { const at = new Date(time.dateTime);
               return [time.textContent, at.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' }), time.title, at.toISOString()]; })",
            Value::Null,
        )
        .await;
    let text = |index: usize| shown[index].as_str().unwrap();
    assert!(text(0).ends_with(text(1)), "{shown}");
    assert_eq!(text(2), format!("{} UTC", text(3).replace('T', " ").split('.').next().unwrap()));
    stage.end().await;
}

#[tokio::test]
async fn reading_works_without_script() {
    let mut stage = Stage::new().await;
    stage.add("quiet", &["--level", "info"]);
    stage.arrives("loud", &["--level", "attention", "--body", "all of it"]).await;
    let shown = stage
        .run(
            "const tab = await open({ storageState: await context.storageState(), javaScriptEnabled: false });
             await tab.goto('/w/acme/inbox'); const first = await tab.locator('.rows a.title').allTextContents();
             await tab.getByLabel('Least level').selectOption('attention');
             await tab.getByRole('button', { name: 'Show', exact: true }).click();
             const second = await tab.locator('.rows a.title').allTextContents();
             await tab.getByRole('link', { name: 'loud' }).click();
             return [first, second, await tab.locator('article .body').textContent(), await tab.locator('#marks').textContent(),
               await tab.locator('#marks time').count()]",
            Value::Null,
        )
        .await;
    assert_eq!((&shown[0], &shown[1]), (&json!(["loud", "quiet"]), &json!(["loud"])));
    assert_eq!(shown[2], "all of it");
    assert!(shown[3].as_str().unwrap().contains("Nobody has read it yet"), "looking changes nothing: {shown}");
    stage.end().await;
}

#[tokio::test]
async fn what_a_visitor_may_not_see_is_said_on_a_page() {
    let mut stage = Stage::with(|world, _| {
        let path = world.path("workspaces/acme.yaml");
        let file = std::fs::read_to_string(&path).unwrap();
        let members = "members: { admin@example.com: admin, reader@example.com: member }";
        world.write("workspaces/acme.yaml", &file.replace("members: { admin@example.com: admin }", members));
        world.write("workspaces/beta.yaml", "members: { admin@example.com: admin }\n");
    })
    .await;
    stage.arrives("for all", &[]).await;
    let link = stage.link(&["--role", "member", "--workspace", "acme", "--member", "reader@example.com"]);
    let shown = stage
        .run(
            "const tab = await open(); await tab.goto(args); await tab.waitForURL('**/w/acme/inbox'); const shown = [];
             for (const path of ['/plugins', '/configuration', '/w/beta/inbox', '/w/none/inbox', '/w/acme/inbox/99', '/nothing']) {
               const answer = await tab.goto(path); shown.push([answer.status(), await tab.locator('h1').textContent()]);
             }
             await tab.goto('/w/acme/connectors');
             const buttons = await tab.getByRole('button', { name: 'Read now' }).count();
             const pages = await tab.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents();
             const marked = await tab.evaluate(async () => (await fetch('/w/acme/connectors/registrar/poll', { method: 'POST',
               headers: { 'Switchbell-Request': '1' } })).status);
             const unmarked = await tab.evaluate(async () => (await fetch('/w/acme/inbox/mark', { method: 'POST',
               body: 'deed=read&seq=1' })).status);
             seen.length = 0;
             return [shown, buttons, pages.map((page) => page.trim()), marked, unmarked]",
            json!(link),
        )
        .await;
    let (gone, forbidden) = (json!([404, "Not here"]), json!([403, "Not allowed"]));
    assert_eq!(shown[0], json!([forbidden, forbidden, gone, gone, gone, gone]));
    assert_eq!(shown[1], json!(0));
    assert_eq!(
        shown[2],
        json!(["Inbox1 unread", "Deliveries", "Routes", "Connectors", "Consumers", "Plugins", "Gaps"])
    );
    assert_eq!((&shown[3], &shown[4]), (&json!(403), &json!(403)));
    stage.end().await;
}
