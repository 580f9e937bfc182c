// Drives Chromium as a test says. Standard input holds orders, one JSON a line: {"run": "the body of an async function",
// "args": any}; it sees `page`, `context`, `args`, `open(options)` (another page, of a context of its own), `axe(page)` and `seen`.
// Each is answered by a line {"value": what it returned} or {"error": text}. A browser that nobody orders about any more ends.
//
// `seen` holds what no page of ours may bring about: errors of the console and of scripts, violations of the policy, dialogs, and
// requests to any other server.

import { createInterface } from "node:readline";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { chromium } from "playwright-core";

const [address] = process.argv.slice(2);
const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const program = process.env.PATH.split(delimiter).map((folder) => join(folder, "chromium")).find(existsSync);
const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
const seen = [];

function watch(page) {
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && seen.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => seen.push(`script: ${error}`));
  page.on("dialog", (dialog) => {
    seen.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(address) && !request.url().startsWith("data:")) seen.push(`request: ${request.url()}`);
  });
  page.setDefaultTimeout(30_000);
  return page;
}

const contexts = new Set();

async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, baseURL: address, ...options });
  contexts.add(context);
  return watch(await context.newPage());
}

// What axe finds wrong: the rule, and where.
async function axe(page) {
  // By the debugger, so that the policy of the page is not in the way.
  await page.evaluate(source);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)} ${node.failureSummary}`));
}

const page = await open();
const context = page.context();
const names = ["page", "context", "args", "open", "axe", "seen"];

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const { run, args } = JSON.parse(line);
    const body = Object.getPrototypeOf(async () => {}).constructor;
    const value = await new body(...names, run)(page, context, args, open, axe, seen);
    answer = { value: value ?? null };
  } catch (error) {
    answer = { error: `${error?.stack ?? error}\nseen: ${seen.join("\n")}` };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
