/**
 * An MCP server with an outbox, on @modelcontextprotocol/server 2.x: one resource, `acme://notifications`, that a host
 * reads on a schedule. `node dist/server.js` speaks stdio, `node dist/server.js --http PORT` streamable HTTP, each in
 * the 2026-07-28 revision and in the older ones.
 */
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

import { defaultPath, Outbox } from "./outbox.js";
import { registerOutbox } from "./register.js";
import { httpPort, serveHttp } from "./serve.js";

const outbox = new Outbox(defaultPath());

function build(): McpServer {
  const server = new McpServer({ name: "acme", version: "1.0.0" });
  const template = (pattern: string) => new ResourceTemplate(pattern, { list: undefined });
  registerOutbox(server, template, "acme://notifications", outbox);
  return server;
}

const port = httpPort();
if (port === undefined) {
  serveStdio(build);
} else {
  serveHttp(port, toNodeHandler(createMcpHandler(build)));
}
