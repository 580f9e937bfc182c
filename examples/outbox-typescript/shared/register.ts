/** Registers an outbox with a server of either SDK line. */
import { OutboxError, type Outbox } from "./outbox.js";

type Variables = Record<string, string | string[]>;
type Answer = { contents: { uri: string; mimeType: string; text: string }[] };
type About = { description: string; mimeType: string };

/** What both SDKs' `McpServer` have in common, as far as it is used here. */
export interface ResourceServer<Template> {
  registerResource(name: string, uri: string, about: About, read: (uri: URL) => Answer): unknown;
  registerResource(
    name: string,
    template: Template,
    about: About,
    read: (uri: URL, variables: Variables) => Answer,
  ): unknown;
}

// The SDK matches a query template only when every variable of it is there, in this order, and nothing else. So every
// selection that a host may send is a template of its own, and the bare URI, which asks for the first cursor, a
// resource.
const QUERY_SHAPES = [
  "cursor,maxEvents,maxAgeMs",
  "cursor,maxEvents",
  "cursor,maxAgeMs",
  "cursor",
  "maxEvents,maxAgeMs",
  "maxEvents",
  "maxAgeMs",
];

/** Serves `outbox` at `uri` and at `uri` with every query a host may send. */
export function registerOutbox<Template>(
  server: ResourceServer<Template>,
  template: (pattern: string) => Template,
  uri: string,
  outbox: Outbox,
): void {
  const about = { description: "Domains, replies and bounces.", mimeType: "application/json" };
  const answer = (asked: URL, variables: Variables = {}): Answer => {
    const number = (name: string) => (variables[name] === undefined ? undefined : Number(decoded(name, variables)));
    const result = outbox.read({
      cursor: decoded("cursor", variables),
      maxEvents: number("maxEvents"),
      maxAgeMs: number("maxAgeMs"),
    });
    return { contents: [{ uri: asked.href, mimeType: "application/json", text: JSON.stringify(result) }] };
  };
  server.registerResource("notifications", uri, about, (asked) => answer(asked));
  for (const shape of QUERY_SHAPES) {
    server.registerResource(`notifications?${shape}`, template(`${uri}{?${shape}}`), about, answer);
  }
}

/** The variable's text. The SDK hands it out as it stood in the URI, still percent-encoded. */
function decoded(name: string, variables: Variables): string | undefined {
  const raw = variables[name];
  if (raw === undefined) return undefined;
  try {
    return decodeURIComponent(String(raw));
  } catch {
    throw new OutboxError(`${name} is not percent-encoded as UTF-8: ${JSON.stringify(String(raw))}`);
  }
}
