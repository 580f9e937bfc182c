// The server that the notifications guide prints for TypeScript, with what it leaves out. It is JavaScript as it stands.
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";

// What the guide leaves out: three rows, positions in them, and the transport.
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";

const ROWS = [1, 2, 3].map((n) => ({
  id: `evt_${n}`, name: "domain.active", occurredAt: new Date(Date.UTC(2026, 8, 1, 18, 42, n)), payload: { n },
  subject: "acme", level: "info", title: `t${n}`, body: "b",
}));
const currentPosition = async () => String(ROWS.length);
const readOutboxAfter = async (cursor, limit) => {
  const from = Number(cursor) || 0;
  const rows = ROWS.slice(from, from + limit);
  return { rows, position: String(from + rows.length) };
};

// From here on it is as printed.
const server = new McpServer({ name: "acme", version: "1.0.0" });

server.registerResource(
  "notifications",
  new ResourceTemplate("acme://notifications{?cursor,maxEvents,maxAgeMs}", { list: undefined }),
  { description: "Domain lifecycle, campaign replies, bounces." },
  async (uri, { cursor, maxEvents, maxAgeMs }) => {
    const limit = Number(maxEvents ?? 100);
    const result = cursor
      ? await readOutboxAfter(String(cursor), limit, maxAgeMs ? Number(maxAgeMs) : undefined)
      : { rows: [], position: await currentPosition() };

    return {
      contents: [
        {
          uri: uri.href,
          mimeType: "application/json",
          text: JSON.stringify({
            events: result.rows.map((row) => ({
              eventId: row.id,
              name: row.name,
              timestamp: row.occurredAt.toISOString(),
              data: row.payload,
              _meta: {
                "ai.nimblebrain/notification": {
                  subject: row.subject,
                  level: row.level,
                  title: row.title,
                  body: row.body,
                },
              },
            })),
            cursor: result.position,
            truncated: false,
            hasMore: result.rows.length === limit,
          }),
        },
      ],
    };
  },
);

await server.connect(new StdioServerTransport());
