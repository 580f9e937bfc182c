//! What people do on the pages.

use serde_json::{Value, json};

use super::stage::Stage;
use crate::support::{Reply, run, versioned};

#[tokio::test]
async fn an_inbox_is_used_by_keys() {
    let mut stage = Stage::new().await;
    for title in ["one", "two", "three"] {
        stage.arrives(title, &[]).await;
    }
    let state = stage
        .run(
            "const focused = () => page.evaluate(() => document.activeElement.textContent);
             const keys = async (...all) => { for (const key of all) await page.keyboard.press(key); };
             await keys('j', 'j'); const second = await focused();
             await keys('k'); const first = await focused();
             await keys('j', 'e'); await page.locator('#n-2:not(.unread)').waitFor();
             await keys('x', 'j', 'x', 'a'); await page.locator('#n-1 .done:has-text(\"✓\")').waitFor();
             const acknowledged = await page.locator('.row .done:has-text(\"✓\")').count();
             await keys('/'); await page.keyboard.type('jax?e'); const typed = await page.locator('#q').inputValue();
             await page.locator('#q').blur(); await keys('?'); await page.getByRole('dialog').waitFor();
             await keys('Escape'); await page.getByRole('dialog').waitFor({ state: 'hidden' });
             await page.locator('#n-3 a.title').focus(); await keys('Enter'); await page.waitForURL('**/inbox/3');
             await page.locator('#marks').getByText('Read by').waitFor();
             await keys('j'); await page.waitForURL('**/inbox/2'); await keys('u'); await page.waitForURL('**/inbox');
             return [second, first, acknowledged, typed]",
            Value::Null,
        )
        .await;
    assert_eq!(state, json!(["two", "three", 2, "jax?e"]));
    let listed = stage.world.json(&stage.sink, &["inbox", "list"]);
    let by: Vec<&Value> = listed.as_array().unwrap().iter().map(|one| &one["acknowledgedBy"]).collect();
    assert_eq!(by, [&Value::Null, &json!("operator"), &json!("operator")]);
    stage.end().await;
}

#[tokio::test]
async fn what_is_selected_is_acknowledged_and_opening_reads() {
    let mut stage = Stage::new().await;
    for title in ["one", "two"] {
        stage.arrives(title, &[]).await;
    }
    let told = stage
        .run(
            "await page.getByRole('button', { name: 'Acknowledge' }).click();
             await page.getByText('nothing is selected').waitFor();
             await page.getByLabel('All on this page').check();
             await page.getByRole('button', { name: 'Acknowledge' }).click();
             await page.getByText('2 notifications acknowledged').waitFor();
             await page.waitForFunction(() => document.title.startsWith('Inbox'));
             return page.locator('.row.unread').count()",
            Value::Null,
        )
        .await;
    assert_eq!(told, json!(0));
    // The browser reports the refusal of what was not selected.
    stage.run("seen.length = 0", Value::Null).await;
    stage.end().await;
}

#[tokio::test]
async fn a_delivery_that_waits_for_a_person_is_tried_again() {
    let mut stage = Stage::new().await;
    stage.sink.answer_next([Reply { status: 404, headers: Vec::new(), body: "channel_not_found" }]);
    stage.add("kept back", &[]);
    let state = stage
        .run(
            "await page.goto('/w/acme/deliveries'); const waiting = page.locator('#waiting');
             await page.locator('.chip', { hasText: 'blocked' }).first().waitFor();
             await page.reload(); const about = await waiting.locator('.about-what').first().textContent();
             await waiting.getByRole('link').first().click();
             await page.locator('.standing', { hasText: 'blocked' }).waitFor();
             const reason = await page.locator('.attempts .why').textContent();
             await page.getByRole('button', { name: 'Retry now' }).click();
             await page.getByText('1 delivery to be tried again').waitFor();
             await page.locator('.standing', { hasText: 'delivered' }).waitFor();
             return [reason, await page.locator('.attempts > li').count(), about]",
            Value::Null,
        )
        .await;
    assert!(state[0].as_str().unwrap().contains("404"), "{state}");
    assert_eq!((&state[1], &state[2]), (&json!(2), &json!("kept back")));
    stage.end().await;
}

#[tokio::test]
async fn filters_narrow_and_are_addresses() {
    let mut stage = Stage::new().await;
    stage.add("alpha", &["--level", "attention", "--subject", "north.example"]);
    stage.add("beta", &["--level", "info", "--subject", "south.example", "--body", "looked for"]);
    stage.arrives("gamma", &["--level", "attention"]).await;
    let found = stage
        .run(
            "const titles = () => page.locator('.rows a.title').allTextContents(); const found = [];
             const show = async () => { await page.getByRole('button', { name: 'Show', exact: true }).click(); await page.waitForLoadState(); found.push([new URL(page.url()).search, await titles()]); };
             await page.getByLabel('Least level').selectOption('attention'); await show();
             await page.goto('/w/acme/inbox'); await page.getByLabel('Order').selectOption('level'); await show();
             await page.goto('/w/acme/inbox'); await page.getByLabel('Search').fill('LOOKED'); await show();
             await page.goto('/w/acme/inbox'); await page.getByText('More filters').click();
             await page.getByLabel('Subject', { exact: true }).fill('north.*'); await show();
             await page.goto('/w/acme/inbox?name=domain.**&source=registrar&unread=1'); found.push(await titles());
             await page.goto('/w/acme/inbox?name=a%20b'); found.push(await page.getByText('cannot be used').count());
             return found",
            Value::Null,
        )
        .await;
    let titles = |index: usize| found[index][1].clone();
    assert_eq!(titles(0), json!(["gamma", "alpha"]));
    assert_eq!(titles(1), json!(["gamma", "alpha", "beta"]));
    assert_eq!(titles(2), json!(["beta"]));
    assert_eq!(titles(3), json!(["alpha"]));
    assert_eq!((&found[4], &found[5]), (&json!(["gamma", "beta", "alpha"]), &json!(1)));
    stage.end().await;
}

#[tokio::test]
async fn a_filter_is_kept_while_one_after_the_other_is_read() {
    let mut stage = Stage::new().await;
    for (title, level) in [("alpha", "attention"), ("beta", "info"), ("gamma", "attention")] {
        stage.arrives(title, &["--level", level]).await;
    }
    let seen = stage
        .run(
            "await page.goto('/w/acme/inbox?level=attention'); await page.getByRole('link', { name: 'gamma' }).click();
             await page.waitForURL('**/inbox/3?level=attention'); const older = page.getByRole('link', { name: 'Older' });
             await older.click(); await page.waitForURL('**/inbox/1?level=attention');
             const ends = await older.count();
             await page.getByRole('link', { name: 'Explain' }).click(); await page.waitForURL('**/inbox/1?level=attention&why=1#why');
             await page.keyboard.press('k'); await page.waitForURL('**/inbox/3?level=attention');
             await page.keyboard.press('u'); await page.waitForURL('**/inbox?level=attention');
             return [ends, await page.locator('.rows a.title').allTextContents()]",
            Value::Null,
        )
        .await;
    assert_eq!(seen, json!([0, ["gamma", "alpha"]]));
    stage.end().await;
}

#[tokio::test]
async fn why_somebody_was_told_stands_in_the_page_and_connectors_are_read_at_once() {
    let mut stage = Stage::new().await;
    stage.arrives("explained", &[]).await;
    let state = stage
        .run(
            "await page.getByRole('link', { name: 'explained' }).click();
             await page.getByRole('link', { name: 'Explain who is told' }).click(); await page.waitForURL('**?why=1*');
             const why = await page.locator('#why').textContent();
             await page.goto('/w/acme/connectors'); await page.getByRole('button', { name: 'Read now' }).click();
             await page.getByText('registrar was read: 0 events').waitFor();
             await page.goto('/w/acme/routes');
             return [why, await page.locator('main').textContent()]",
            Value::Null,
        )
        .await;
    assert!(state[0].as_str().unwrap().contains("everything matches"), "{state}");
    assert!(state[1].as_str().unwrap().contains("at once, each alone"), "{state}");
    stage.end().await;
}

#[tokio::test]
async fn the_operator_loads_a_plugin_rolls_it_back_and_reloads() {
    let mut stage = Stage::new().await;
    for version in ["1.0.0", "1.1.0"] {
        let path = stage.world.path(&format!("{version}.wasm"));
        std::fs::write(&path, versioned("spare", version, "deliver")).unwrap();
        stage
            .run(
                "await page.goto('/plugins'); await page.getByLabel('Load a component').setInputFiles(args.path);
                 await page.getByRole('button', { name: 'Load', exact: true }).click();
                 await page.locator('#notice', { hasText: `spare ${args.version} runs` }).waitFor()",
                json!({ "path": path, "version": version }),
            )
            .await;
    }
    stage
        .run(
            "page.removeAllListeners('dialog'); page.on('dialog', (dialog) => dialog.accept());
             const panel = page.locator('.panel', { has: page.getByRole('heading', { name: 'spare' }) });
             await panel.getByRole('button', { name: 'Roll back to this' }).click();
             await page.locator('#notice', { hasText: 'spare 1.0.0 runs' }).waitFor();
             await page.goto('/configuration'); await page.getByRole('button', { name: 'Reload' }).click();
             await page.getByText('taken: nothing differs').waitFor()",
            Value::Null,
        )
        .await;
    let (code, out, _) = run(&stage.world, &stage.sink, &["plugin", "list"]);
    assert!(code == 0 && out.contains("1.0.0"), "{out}");
    stage.end().await;
}
