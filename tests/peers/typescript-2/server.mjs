/**
 * The outbox on the TypeScript SDK 2.x, in 2026-07-28 and the revisions before it. It hints by `subscriptions/listen`,
 * which the SDK serves by itself to those who speak 2026-07-28.
 */
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

import { hint, httpPort, register, serveHttp, URI } from "../typescript/outbox.mjs";

let newest;

function build() {
  newest = new McpServer({ name: "peer", version: "1.0.0" }, { capabilities: { resources: { subscribe: true } } });
  register(newest, ResourceTemplate);
  return newest;
}

const port = httpPort();
if (port === undefined) {
  serveStdio(build);
  hint(() => void newest?.server.sendResourceUpdated({ uri: URI }).catch(() => {}));
  process.stdin.on("end", () => process.exit());
} else {
  const handler = createMcpHandler(build);
  serveHttp(port, toNodeHandler(handler));
  hint(() => handler.notify.resourceUpdated(URI));
}
