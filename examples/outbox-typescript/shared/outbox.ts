/**
 * A durable outbox: one file of JSON lines that holds the facts a server has to tell, oldest first. It is only ever
 * appended to, one write for each row, so several processes may add and a crash can tear no line but the last.
 *
 * Nothing in this file knows MCP.
 */
import { createHash, randomUUID } from "node:crypto";
import { appendFileSync, closeSync, fstatSync, openSync, readSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const LEVELS = ["info", "attention", "urgent"] as const;
export type Level = (typeof LEVELS)[number];

/** What a fact says; only the name is required. */
export interface Fact {
  /** Dotted and lower-case, such as `domain.active`. */
  name: string;
  /** The id the fact has upstream; drawn when left out. Hosts take an id once, so a repeated row does no harm. */
  eventId?: string;
  /** When it happened; now when left out. */
  timestamp?: Date;
  level?: string;
  subject?: string;
  title?: string;
  body?: string;
  /** A URI with a scheme. */
  link?: string;
  data?: Record<string, unknown>;
}

/** One event as hosts read it. */
export interface EventOccurrence {
  eventId: string;
  name: string;
  timestamp: string;
  data: unknown;
  cursor: string;
  _meta?: { "ai.nimblebrain/notification": Record<string, unknown> };
}

/** The answer to one poll. `nextPollMs` is left out: this outbox has no opinion. */
export interface PollResult {
  events: EventOccurrence[];
  cursor: string;
  truncated: boolean;
  hasMore: boolean;
}

/** A read or a row that cannot be served as asked. Its text is for whoever reads the other side's log. */
export class OutboxError extends Error {}

/** One line of the file. */
interface Row {
  name: string;
  timestamp: string;
  level?: string;
  subject?: string;
  title?: string;
  body?: string;
  link?: string;
  data: unknown;
  eventId: string;
  /** When the row was written: what `maxAgeMs` counts from. */
  recordedAtMs: number;
}

// What hosts take. A row that breaks one of these rules is dropped by the host without a word back, so it is refused
// here, where somebody can still read why.
const NAME = /^[^\s\x00-\x1f\x7f-\x9f]{1,200}$/u;
const EVENT_ID = /^[^\x00-\x1f\x7f-\x9f]{1,200}$/u;
const LINK = /^(?!(?:javascript|data|vbscript|file|blob):)[a-z][a-z0-9+.-]*:[^\s\x00-\x1f\x7f-\x9f]+$/iu;
const LINK_CHARACTERS_MAX = 2048;
const EVENT_BYTES_MAX = 64 * 1024;

/** One answer holds at most so many events, whatever the reader asks for. */
const EVENTS_MAX = 1000;
/** About half a million rows; a stale reader is served from them in seconds. Beyond it the file must be moved away. */
const FILE_BYTES_MAX = 256 * 1024 * 1024;
/** A cursor remembers so much of what stands before it. A row ends in its own id and time, so this tells rows apart. */
const SEAL_BYTES = 256;
const CHUNK_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

/** The outbox in the file at `path`, which is created with the first row. */
export class Outbox {
  constructor(readonly path: string) {}

  /** Appends one row and returns its event id. */
  add(fact: Fact): string {
    const now = new Date();
    const row: Row = {
      name: fact.name,
      timestamp: (fact.timestamp ?? now).toISOString(),
      ...optional({ level: fact.level, subject: fact.subject, title: fact.title, body: fact.body, link: fact.link }),
      data: fact.data ?? {},
      eventId: fact.eventId ?? `evt_${randomUUID()}`,
      recordedAtMs: now.getTime(),
    };
    check(row);
    const line = `${JSON.stringify(row)}\n`;
    const { sizeBytes, torn } = this.reading((file) => ({ sizeBytes: file.sizeBytes, torn: !file.endsLine() }));
    if (sizeBytes + Buffer.byteLength(line) > FILE_BYTES_MAX) {
      throw new OutboxError(`${this.path} is full (${FILE_BYTES_MAX} bytes); move it away, and readers start from now`);
    }
    // A crash may have left half a row at the end. A line of its own keeps it from spoiling this one.
    appendFileSync(this.path, torn ? `\n${line}` : line, { flush: true });
    return row.eventId;
  }

  /**
   * Answers one poll: the rows strictly after `cursor`, oldest first. Without a cursor it starts from now: no events
   * and a fresh cursor. Rows written before now − `maxAgeMs` are skipped. Throws an `OutboxError` for a cursor this
   * outbox never gave.
   */
  read(query: { cursor?: string; maxEvents?: number | undefined; maxAgeMs?: number | undefined }): PollResult {
    const limit = Math.min(wholeNumber("maxEvents", query.maxEvents ?? 100, 1), EVENTS_MAX);
    const oldestMs = query.maxAgeMs === undefined ? 0 : Date.now() - wholeNumber("maxAgeMs", query.maxAgeMs, 0);
    return this.reading((file) => {
      if (!query.cursor) {
        return { events: [], cursor: file.cursorAt(file.lastLineEnd()), truncated: false, hasMore: false };
      }
      let position = file.positionOf(query.cursor);
      let truncated = false;
      const events: EventOccurrence[] = [];
      for (const { row, end } of file.rowsAfter(position)) {
        const tooOld = row !== undefined && row.recordedAtMs < oldestMs;
        if (row !== undefined && !tooOld) {
          // One row more than asked: it tells whether there is more without an empty read later.
          if (events.length === limit) return { events, cursor: file.cursorAt(position), truncated, hasMore: true };
          events.push({ ...event(row), cursor: file.cursorAt(end) });
        }
        truncated ||= tooOld;
        position = end;
      }
      return { events, cursor: file.cursorAt(position), truncated, hasMore: false };
    });
  }

  private reading<Result>(work: (file: OutboxFile) => Result): Result {
    let descriptor: number | undefined;
    try {
      descriptor = openSync(this.path, "r");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
    try {
      return work(new OutboxFile(descriptor));
    } finally {
      if (descriptor !== undefined) closeSync(descriptor);
    }
  }
}

/** The file as it was when it was opened; a missing file is an empty one. Positions are byte offsets of line ends. */
class OutboxFile {
  readonly sizeBytes: number;

  constructor(private readonly descriptor: number | undefined) {
    this.sizeBytes = descriptor === undefined ? 0 : fstatSync(descriptor).size;
  }

  /** An opaque cursor. Base64 of digits, a–f and a colon has no `+`, which some servers read as a space. */
  cursorAt(position: number): string {
    return Buffer.from(`${position}:${this.seal(position)}`).toString("base64");
  }

  positionOf(cursor: string): number {
    const [digits] = Buffer.from(cursor, "base64").toString("latin1").split(":");
    const position = Number(digits);
    const ours = Number.isSafeInteger(position) && position >= 0 && position <= this.sizeBytes;
    if (!ours || this.cursorAt(position) !== cursor) {
      throw new OutboxError(
        `unknown cursor ${JSON.stringify(cursor)}: this outbox never gave it; read without a cursor to start from now`,
      );
    }
    return position;
  }

  endsLine(): boolean {
    return this.sizeBytes === 0 || this.bytes(this.sizeBytes - 1, this.sizeBytes)[0] === NEWLINE;
  }

  /** Where the last whole line ends: behind it is at most a row that a crash tore. */
  lastLineEnd(): number {
    for (let end = this.sizeBytes; end > 0; end -= CHUNK_BYTES) {
      const start = Math.max(0, end - CHUNK_BYTES);
      const newline = this.bytes(start, end).lastIndexOf(NEWLINE);
      if (newline >= 0) return start + newline + 1;
    }
    return 0;
  }

  /** Every whole line after `position`; a line that is no row, such as a torn one, has none. */
  *rowsAfter(position: number): Generator<{ row: Row | undefined; end: number }> {
    let rest = Buffer.alloc(0);
    for (let start = position; start < this.sizeBytes; start += CHUNK_BYTES) {
      rest = Buffer.concat([rest, this.bytes(start, Math.min(start + CHUNK_BYTES, this.sizeBytes))]);
      let from = 0;
      for (let to = rest.indexOf(NEWLINE); to >= 0; to = rest.indexOf(NEWLINE, from)) {
        position += to + 1 - from;
        yield { row: parse(rest.toString("utf8", from, to)), end: position };
        from = to + 1;
      }
      rest = rest.subarray(from);
    }
  }

  /** Tells this file from another that was put in its place: eight hexadecimal digits of what stands before. */
  private seal(position: number): string {
    const before = this.bytes(Math.max(0, position - SEAL_BYTES), position);
    return createHash("sha256").update(before).digest("hex").slice(0, 8);
  }

  private bytes(start: number, end: number): Buffer {
    const buffer = Buffer.alloc(end - start);
    if (this.descriptor === undefined || end === start) return buffer;
    return buffer.subarray(0, readSync(this.descriptor, buffer, 0, end - start, start));
  }
}

/** The file that OUTBOX_FILE names, else outbox.jsonl beside the package. */
export function defaultPath(): string {
  return process.env["OUTBOX_FILE"] || fileURLToPath(new URL("../outbox.jsonl", import.meta.url));
}

/** The row as hosts read it. What a row does not say is left out. */
function event(row: Row): Omit<EventOccurrence, "cursor"> {
  const { eventId, name, timestamp, data, level, subject, title, body } = row;
  const link = row.link === undefined ? undefined : { resource: row.link };
  const notification = optional({ subject, level, title, body, link });
  const meta = Object.keys(notification).length > 0 ? { _meta: { "ai.nimblebrain/notification": notification } } : {};
  return { eventId, name, timestamp, data, ...meta };
}

function check(row: Row): void {
  const refuse = (what: string): never => {
    throw new OutboxError(what);
  };
  if (!NAME.test(row.name)) {
    refuse(`name ${JSON.stringify(row.name)}: give 1 to 200 characters without white space, such as domain.active`);
  }
  if (!EVENT_ID.test(row.eventId)) {
    refuse(`event id ${JSON.stringify(row.eventId)}: give 1 to 200 characters without control characters`);
  }
  if (row.level !== undefined && !LEVELS.some((level) => level === row.level)) {
    refuse(`level ${JSON.stringify(row.level)}: choose one of ${LEVELS.join(", ")}`);
  }
  if (row.link !== undefined && !(LINK.test(row.link) && row.link.length <= LINK_CHARACTERS_MAX)) {
    refuse(`link ${JSON.stringify(row.link)}: give a URI with a scheme, such as acme://domains/1`);
  }
  if (typeof row.data !== "object" || row.data === null || Array.isArray(row.data)) {
    refuse('data: give a JSON object, such as {"campaign": "autumn"}');
  }
  const sizeBytes = Buffer.byteLength(JSON.stringify(event(row)));
  if (sizeBytes > EVENT_BYTES_MAX) refuse(`the event is ${sizeBytes} bytes; hosts take at most ${EVENT_BYTES_MAX}`);
}

function parse(line: string): Row | undefined {
  try {
    const row = JSON.parse(line) as Partial<Row> | null;
    return typeof row?.eventId === "string" && typeof row.recordedAtMs === "number" ? (row as Row) : undefined;
  } catch {
    return undefined;
  }
}

function wholeNumber(what: string, value: number, least: number): number {
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new OutboxError(`${what} is ${value}; give a whole number, ${least} or more`);
}

/** The fields that are there. */
function optional<Fields extends object>(fields: Fields): Partial<Fields> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<Fields>;
}
