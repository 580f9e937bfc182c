//! What arrives while somebody looks.

use serde_json::{Value, json};

use super::stage::Stage;

/// The titles of the lines, from the top.
const TITLES: &str = "return page.locator('.rows a.title').allTextContents()";

#[tokio::test]
async fn a_link_signs_in_once_and_signing_out_ends_it() {
    let mut stage = Stage::new().await;
    let link = stage.link(&["--role", "admin"]);
    let came = stage
        .run(
            "const first = await open(), second = await open();
             await first.goto('/w/acme/deliveries?state=stuck'); const asked = first.url();
             await first.goto(args); await first.waitForURL('**/w/acme/inbox');
             await second.goto(args); await second.getByText('already').or(second.getByRole('alert')).first().waitFor();
             await first.getByRole('button', { name: 'Sign out' }).click(); await first.waitForURL('**/sign-in*');
             await first.goto('/w/acme/inbox');
             return [asked, second.url(), first.url(), await first.evaluate(() => document.cookie)]",
            json!(link),
        )
        .await;
    let urls: Vec<&str> = came.as_array().unwrap().iter().map(|url| url.as_str().unwrap()).collect();
    assert!(urls[0].ends_with("/sign-in?back=%2Fw%2Facme%2Fdeliveries%3Fstate%3Dstuck"), "{urls:?}");
    assert!(urls[1].contains("/sign-in") && urls[2].contains("/sign-in"), "{urls:?}");
    assert_eq!(urls[3], "", "a script can read no cookie");
    // The refusal of the second try is what the browser reports.
    stage.run("seen.length = 0", Value::Null).await;
    stage.end().await;
}

#[tokio::test]
async fn what_arrives_appears_by_itself_is_announced_and_moves_no_focus() {
    let mut stage = Stage::new().await;
    stage.arrives("the first", &["--level", "attention"]).await;
    stage.run("await page.locator('.rows a.title').first().focus()", Value::Null).await;
    stage.arrives("the second", &[]).await;
    assert_eq!(stage.run(TITLES, Value::Null).await, json!(["the second", "the first"]));
    let state = stage
        .run(
            "await page.waitForFunction(() => document.title.startsWith('(2) Inbox'));
             return page.evaluate(() => [document.title, document.activeElement.textContent,
               document.getElementById('announcement').textContent, document.querySelector('#unread').textContent])",
            Value::Null,
        )
        .await;
    assert_eq!(state, json!(["(2) Inbox · acme · Switchbell", "the first", "1 new notification", "2 unread"]));
    stage.end().await;
}

#[tokio::test]
async fn what_arrives_above_a_reader_waits_behind_a_button_and_nothing_moves() {
    let mut stage = Stage::new().await;
    for number in 0..4 {
        stage.add(&format!("number {number}"), &[]);
    }
    stage.arrives("number 4", &[]).await;
    stage
        .run(
            "await page.setViewportSize({ width: 800, height: 240 });
             await page.locator('.rows a.title').last().scrollIntoViewIfNeeded();
             await page.evaluate(() => { scrollTo(0, document.body.scrollHeight); window.shifted = 0;
               new PerformanceObserver((list) => list.getEntries().forEach((entry) => (window.shifted += entry.value)))
                 .observe({ type: 'layout-shift' }); })",
            Value::Null,
        )
        .await;
    stage.add("above", &[]);
    stage.add("far above", &[]);
    let state = stage
        .run(
            "const button = page.getByRole('button', { name: '2 new – show' }); await button.waitFor();
             const state = await page.evaluate(() => [document.querySelectorAll('.rows .row').length, window.shifted, scrollY > 0]);
             await button.click(); await page.getByRole('link', { name: 'far above' }).waitFor();
             return [...state, await page.locator('.rows .row').count(), await page.evaluate(() => scrollY)]",
            Value::Null,
        )
        .await;
    assert_eq!(state, json!([5, 0, true, 7, 0]));
    stage.end().await;
}

#[tokio::test]
async fn only_what_fits_the_filter_appears() {
    let mut stage = Stage::new().await;
    stage.run("await page.goto('/w/acme/inbox?level=attention')", Value::Null).await;
    stage.add("quiet", &["--level", "info"]);
    stage.arrives("loud", &["--level", "urgent"]).await;
    assert_eq!(stage.run(TITLES, Value::Null).await, json!(["loud"]));
    stage.end().await;
}

#[tokio::test]
async fn after_the_server_was_down_what_came_meanwhile_is_shown() {
    let mut stage = Stage::new().await;
    stage.arrives("before", &[]).await;
    stage.run("await page.locator('main[data-connected=true]').waitFor()", Value::Null).await;
    stage.stop();
    stage.run("await page.getByText('Connection lost').waitFor()", Value::Null).await;
    stage.add("meanwhile", &[]);
    stage.start();
    stage
        .run(
            "await page.getByRole('link', { name: 'meanwhile' }).waitFor();
             await page.locator('#connection').waitFor({ state: 'hidden' })",
            Value::Null,
        )
        .await;
    stage.arrives("after", &[]).await;
    assert_eq!(stage.run(TITLES, Value::Null).await, json!(["after", "meanwhile", "before"]));
    // What the browser reports is that it could not connect.
    let seen = stage.run("return seen.splice(0)", Value::Null).await;
    let is_connecting = |line: &Value| line.as_str().is_some_and(|line| line.contains("net::ERR_"));
    assert!(seen.as_array().unwrap().iter().all(is_connecting), "{seen}");
    stage.end().await;
}

#[tokio::test]
async fn tabs_of_one_workspace_share_a_connection_and_one_takes_over() {
    let mut stage = Stage::new().await;
    stage.run("await page.locator('main[data-connected=true]').waitFor()", Value::Null).await;
    let streams = stage
        .run(
            "globalThis.tabs = []; let streams = 0;
             for (let number = 0; number < 8; number++) {
               const tab = await context.newPage();
               tab.on('request', (request) => (streams += request.url().includes('/stream')));
               await tab.goto('/w/acme/inbox'); tabs.push(tab);
             }
             return streams",
            Value::Null,
        )
        .await;
    assert_eq!(streams, json!(0));
    stage.add("everywhere", &[]);
    stage
        .run(
            "for (const tab of [page, ...tabs]) await tab.getByRole('link', { name: 'everywhere' }).waitFor();
             await page.goto('about:blank')",
            Value::Null,
        )
        .await;
    stage.add("after the first has gone", &[]);
    stage
        .run(
            "for (const tab of tabs) await tab.getByRole('link', { name: 'after the first has gone' }).waitFor();
             seen.length = 0",
            Value::Null,
        )
        .await;
    stage.end().await;
}
