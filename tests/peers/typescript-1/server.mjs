/**
 * The outbox on the TypeScript SDK 1.x. It hints by `resources/subscribe`, which a server of this SDK answers itself;
 * over HTTP it keeps sessions.
 */
import { randomUUID } from "node:crypto";

import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { SubscribeRequestSchema } from "@modelcontextprotocol/sdk/types.js";

import { hint, httpPort, register, serveHttp, URI } from "../typescript/outbox.mjs";

const subscribers = new Set();
const sessions = new Map();

function build() {
  const mcp = new McpServer({ name: "peer", version: "1.0.0" }, { capabilities: { resources: { subscribe: true } } });
  register(mcp, ResourceTemplate);
  mcp.server.setRequestHandler(SubscribeRequestSchema, () => {
    subscribers.add(mcp.server);
    return {};
  });
  mcp.server.onclose = () => subscribers.delete(mcp.server);
  return mcp;
}

async function handle(request, response) {
  const id = request.headers["mcp-session-id"];
  if (id !== undefined && !sessions.has(id)) {
    response.writeHead(404).end();
    return;
  }
  let transport = sessions.get(id);
  if (transport === undefined) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (begun) => sessions.set(begun, transport),
      onsessionclosed: (ended) => sessions.delete(ended),
    });
    await build().connect(transport);
  }
  await transport.handleRequest(request, response);
}

const port = httpPort();
if (port === undefined) await build().connect(new StdioServerTransport());
else serveHttp(port, handle);
hint(() => subscribers.forEach((server) => void server.sendResourceUpdated({ uri: URI })));
if (port === undefined) process.stdin.on("end", () => process.exit());
