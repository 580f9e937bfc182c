// The official TypeScript SDK 1.x.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { asked, exercise } from "./exercise.mjs";

const client = new Client({ name: "peer", version: "1.0.0" });
const headers = { Authorization: `Bearer ${asked.token}` };
const transport = asked.url
  ? new StreamableHTTPClientTransport(new URL(asked.url), { requestInit: { headers } })
  : new StdioClientTransport({ command: asked.command[0], args: asked.command.slice(1), env: asked.environment });
await client.connect(transport);
await exercise(client, () => ({ revision: transport.protocolVersion ?? null }));
