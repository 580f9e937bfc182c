/**
 * What the TypeScript servers share: the rows of the outbox, what they report to the test, and how they are started.
 * The Python servers' outbox.py says what the command line and the variables mean.
 */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";

export const URI = "acme://notifications";

/** How often the file is looked at for rows that want a hint. */
const LOOK_MS = 20;

// Both SDKs match a query only when every variable of a template is there and nothing else, and hand each out as it
// stood in the URI. A host reads the bare URI first, and then with all three.
const QUERY = "{?cursor,maxEvents,maxAgeMs}";

let handedOut = 0;

const [host, reportPort] = process.env.OUTBOX_REPORTS.split(":");
const reports = connect(Number(reportPort), host);
reports.on("close", () => process.exit());
reports.on("error", () => process.exit());
// What the test says nothing by is read all the same: only so is the end of the connection seen.
reports.resume();
report({ started: process.pid });

export function report(what) {
  reports.write(`${JSON.stringify(what)}\n`);
}

/** Serves the outbox on a server of either SDK. */
export function register(server, ResourceTemplate) {
  const about = { mimeType: "application/json" };
  const answer = (uri, variables = {}) => {
    const value = (name) => (variables[name] === undefined ? null : decodeURIComponent(String(variables[name])));
    const number = (name) => (value(name) === null ? null : Number(value(name)));
    const text = JSON.stringify(read(value("cursor"), number("maxEvents"), number("maxAgeMs")));
    return { contents: [{ uri: uri.href, mimeType: about.mimeType, text }] };
  };
  server.registerResource("notifications", URI, about, (uri) => answer(uri));
  server.registerResource("page", new ResourceTemplate(URI + QUERY, { list: undefined }), about, answer);
}

/** Calls `send` again and again while a row that wants a hint was not handed out, for ever. */
export function hint(send) {
  setInterval(() => {
    if (rows().slice(handedOut).some((row) => row.hint)) send();
  }, LOOK_MS);
}

/** The port of `--http PORT`; nothing for stdio. */
export function httpPort() {
  const at = process.argv.indexOf("--http");
  return at < 0 ? undefined : Number(process.argv[at + 1]);
}

/** Serves `handle` at http://127.0.0.1:`port`/mcp. */
export function serveHttp(port, handle) {
  const server = createServer((request, response) => {
    const writeHead = response.writeHead.bind(response);
    response.writeHead = (status, ...more) => {
      report({ http: { method: request.method, status } });
      return writeHead(status, ...more);
    };
    void handle(request, response);
  });
  server.listen(port, "127.0.0.1", () => report({ listening: port }));
}

function read(cursor, maxEvents, maxAgeMs) {
  report({ read: { cursor, maxEvents, maxAgeMs } });
  const all = rows();
  if (cursor === null) return { events: [], cursor: all.at(-1).cursor };
  const before = all.findIndex((row) => row.cursor === cursor);
  if (before < 0) throw new Error(`unknown cursor ${JSON.stringify(cursor)}`);
  const page = all.slice(before + 1, before + 1 + maxEvents);
  const end = before + 1 + page.length;
  handedOut = Math.max(handedOut, end);
  return { events: page.map((row) => row.event), cursor: all[end - 1].cursor, hasMore: end < all.length };
}

function rows() {
  const lines = readFileSync(process.env.OUTBOX_ROWS, "utf8").split("\n");
  // The last line counts once it ends.
  return lines.slice(0, -1).map((line) => JSON.parse(line));
}
