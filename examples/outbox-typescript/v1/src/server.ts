/**
 * An MCP server with an outbox, on @modelcontextprotocol/sdk 1.x: one resource, `acme://notifications`, that a host
 * reads on a schedule. `node dist/server.js` speaks stdio, `node dist/server.js --http PORT` streamable HTTP.
 */
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

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
  await build().connect(new StdioServerTransport());
} else {
  serveHttp(port, async (request, response) => {
    // Without sessions, which is the default, every request gets a server of its own.
    const server = build();
    response.on("close", () => void server.close());
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
    await server.connect(transport);
    await transport.handleRequest(request, response);
  });
}
