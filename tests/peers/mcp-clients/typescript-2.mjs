// The official TypeScript SDK 2.x, which speaks 2026-07-28 with those who do.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { asked, exercise } from "./exercise.mjs";

const client = new Client({ name: "peer", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
const headers = { Authorization: `Bearer ${asked.token}` };
const transport = asked.url
  ? new StreamableHTTPClientTransport(new URL(asked.url), { requestInit: { headers } })
  : new StdioClientTransport({ command: asked.command[0], args: asked.command.slice(1), env: asked.environment });
await client.connect(transport);
await exercise(client, () => ({ revision: client.getNegotiatedProtocolVersion() }));
