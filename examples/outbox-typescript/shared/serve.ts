/** What both servers share around the SDK: the command line, and an HTTP listener that lets the right requests in. */
import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { parseArgs } from "node:util";

export type Handle = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** The port of `--http PORT`, or undefined for stdio. Ends the process with a message when the line is wrong. */
export function httpPort(): number | undefined {
  try {
    const { values } = parseArgs({ options: { http: { type: "string" } } });
    if (values.http === undefined) return undefined;
    if (/^\d{1,5}$/.test(values.http) && Number(values.http) <= 65_535) return Number(values.http);
    throw new Error(`--http ${values.http}: give a port, 0 to 65535`);
  } catch (error) {
    console.error(`${(error as Error).message}\nusage: node dist/server.js [--http PORT]`);
    process.exit(2);
  }
}

/** Serves `handle` at http://127.0.0.1:`port`/mcp; 0 picks a free port. OUTBOX_TOKEN, where set, is required. */
export function serveHttp(port: number, handle: Handle): void {
  const token = process.env["OUTBOX_TOKEN"];
  const server = createServer((request, response) => {
    const refusal = refuse(request, token);
    if (refusal !== undefined) {
      response.writeHead(refusal.status, { ...refusal.headers, "content-type": "text/plain" }).end(`${refusal.why}\n`);
      return;
    }
    handle(request, response).catch((error: unknown) => {
      console.error(error);
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  });
  server.on("error", (error) => {
    console.error(`cannot listen on 127.0.0.1:${port}: ${error.message}`);
    process.exit(1);
  });
  server.listen(port, "127.0.0.1", () => {
    console.error(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  });
}

interface Refusal {
  status: number;
  headers: Record<string, string>;
  why: string;
}

function refuse(request: IncomingMessage, token: string | undefined): Refusal | undefined {
  // A page in somebody's browser can reach a loopback port under a name of its own: only loopback names are answered.
  const host = request.headers.host?.replace(/:\d+$/, "");
  if (host !== "127.0.0.1" && host !== "localhost") return { status: 403, headers: {}, why: "not a loopback host" };
  if (request.url?.split("?")[0] !== "/mcp") return { status: 404, headers: {}, why: "the endpoint is /mcp" };
  if (token && !same(request.headers.authorization ?? "", `Bearer ${token}`)) {
    return { status: 401, headers: { "www-authenticate": "Bearer" }, why: "give the bearer token" };
  }
  // Nothing is kept between requests, so there is no stream to open and no session to end.
  if (request.method !== "POST") return { status: 405, headers: { allow: "POST" }, why: "POST a message" };
  return undefined;
}

/** Compares in a time that tells nothing about where two texts differ. */
function same(left: string, right: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}
