// The official TypeScript SDK 2.x with the push-notifications extension, as far as a client without a package for it goes: it
// reads what is pending, is told of one event live, acknowledges it, and is replaced by itself. What it gets it prints, one JSON
// value a line. The one argument says how to reach the server: {"url", "token"} or {"command", "environment"}.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const EXTENSION = "io.stagewise/push-notifications";
const asked = JSON.parse(process.argv[2]);
const print = (value) => console.log(JSON.stringify(value));
const anything = { "~standard": { version: 1, vendor: "peer", validate: (value) => ({ value }) } };

const capabilities = { extensions: { [EXTENSION]: {} } };
const client = new Client({ name: "peer", version: "1.0.0" }, { capabilities, versionNegotiation: { mode: "auto" } });
const headers = { Authorization: `Bearer ${asked.token}` };
const transport = asked.url
  ? new StreamableHTTPClientTransport(new URL(asked.url), { requestInit: { headers } })
  : new StdioClientTransport({ command: asked.command[0], args: asked.command.slice(1), env: asked.environment });
const told = new Promise((resolve) => {
  client.fallbackNotificationHandler = async (notification) => resolve(notification);
});
await client.connect(transport);
print({ revision: client.getNegotiatedProtocolVersion(), capabilities: client.getServerCapabilities() });

const request = (method, params) => client.request({ method: `${EXTENSION}/${method}`, params }, anything);
const ids = (page) => page.events.map((event) => event.eventId);
const first = await client.listen({ [EXTENSION]: {} });
print({ honoured: first.honoredFilter });
const page = await request("get", { limit: 10 });
print({ page, acknowledged: await request("ack", { eventIds: ids(page) }) });
const notification = await told;
print({ notification });
await request("ack", { eventIds: [notification.params.event.eventId] });
print({ rest: await request("get", {}) });
const second = await client.listen({ [EXTENSION]: {} });
print({ closed: await first.closed });
await second.close();
print({ refused: await request("get", { limit: 0 }).catch((error) => ({ code: error.code, message: error.message })) });
await client.close();
