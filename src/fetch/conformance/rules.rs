//! The rules that a server can keep or break. The wording is that of the notifications seed where it says something;
//! where it does not, the rule begins with who says it.

/// One rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Stable: programs may look for it.
    pub id: &'static str,
    /// How much it binds.
    pub level: Obligation,
    /// The rule.
    pub wording: &'static str,
    /// What usually has to be changed where it is broken.
    pub remedy: &'static str,
    /// What has to be there for the rule to be seen kept or broken.
    pub needs: &'static str,
}

/// How much a rule binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obligation {
    /// A host cannot do without it.
    Must,
    /// A host manages, with a loss.
    Should,
}

impl Obligation {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
        }
    }
}

use Obligation::{Must, Should};

const NEEDS_EVENTS: &str = "needs an event";
const NEEDS_TWO: &str = "needs two events";
const NEEDS_READ: &str = "needs a read after a cursor";
const NEEDS_ANSWER: &str = "needs an answer";

const TEMPLATE: &str = "The host reads your resource as the RFC 6570 template <resource>{?cursor,maxEvents,maxAgeMs}.";

/// Declares rules, and `RULES`, all of them in the order of a report.
macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = ($id:literal, $level:ident, $wording:expr, $remedy:expr, $needs:expr);)*) => {
        $($(#[$doc])* pub(super) static $name: Rule =
            Rule { id: $id, level: $level, wording: $wording, remedy: $remedy, needs: $needs };)*

        /// Every rule, in the order of a report.
        pub static RULES: &[&Rule] = &[$(&$name),*];
    };
}
pub(super) use rules;

rules! {
    DECLARATION = ("declaration", Must,
        "It must carry a scheme. It must not carry a query string or a fragment. And its scheme must not be one the host \
         resolves itself — skill://, ui://, instructions://, artifact://, files://, app://.",
        "declare and serve the outbox under a URI such as acme://notifications", "needs --resource");
    CONNECTION = ("connection", Must,
        "MCP: the server starts, or is reached, and answers the handshake.",
        "run the server by hand to see why", "needs a declaration that holds");
    READ_ANSWERED = ("read.answered", Must, TEMPLATE,
        "register the template <resource>{?cursor,maxEvents,maxAgeMs}, and answer every read that has all three, in this order", NEEDS_READ);
    STDOUT = ("stdout", Must,
        "MCP: the server must not write anything to its standard output that is not a valid MCP message.",
        "write logs to standard error", "needs a server on standard input and output");

    ANSWER_TEXT = ("answer.text", Must, "An outbox is a resource that returns JSON.",
        "return the JSON as the text of the first content: not as a blob, not as an empty list", NEEDS_ANSWER);
    ANSWER_JSON = ("answer.json", Must, "An outbox is a resource that returns JSON.",
        "make the whole text one JSON document: json.dumps(…), JSON.stringify(…)", NEEDS_ANSWER);
    ANSWER_EVENTS = ("answer.events", Must,
        "The minimum correct answer is { \"events\": [...], \"cursor\": \"...\" }.",
        "answer with an object whose \"events\" is an array, empty where there are none", NEEDS_ANSWER);
    ANSWER_FLAGS = ("answer.flags", Must, "Both truncated and hasMore default to false.",
        "answer true or false there, or leave the field out", NEEDS_ANSWER);
    ANSWER_SIZE = ("answer.size", Must,
        "Switchbell: an answer has at most 8 MiB, and is asked for again with fewer events beyond it.",
        "return fewer events at once, and say hasMore", NEEDS_ANSWER);
    NEXT_POLL = ("next-poll", Must,
        "Your recommendation for when to be read next. Honoured inside the host's own floor and ceiling. Omit it for \
         \"no opinion\".",
        "give milliseconds, such as 60000, or leave nextPollMs out", "optional, and no answer has it");

    BOOTSTRAP_BARE = ("bootstrap.bare", Must, "A read with no query is the bootstrap.",
        "serve the bare URI too; the TypeScript SDKs need a static resource for it", NEEDS_ANSWER);
    BOOTSTRAP_BOUNDS = ("bootstrap.bounds", Must,
        "cursor: absent or null means \"start from now\". (RFC 6570: a parameter without a value is left out, so that \
         maxEvents and maxAgeMs may come alone.)",
        "make every parameter optional; the TypeScript SDKs need a template of its own for it, {?maxEvents,maxAgeMs}", NEEDS_ANSWER);
    BOOTSTRAP_EMPTY = ("bootstrap.empty", Must,
        "Absent or null means \"start from now\": answer with no events and a fresh cursor, so a first read never dumps \
         your backlog.",
        "return no events when there is no cursor", "needs a first read that is answered");
    BOOTSTRAP_CURSOR = ("bootstrap.cursor", Must,
        "Absent or null means \"start from now\": answer with no events and a fresh cursor.",
        "return the position after the newest event as cursor, also while the outbox is empty",
        "needs a first read that is answered");
    BOOTSTRAP_FRESH = ("bootstrap.fresh", Must,
        "Absent or null means \"start from now\": a first read never dumps your backlog.",
        "return the position after the newest event as the first cursor, not that of the oldest",
        "needs a first cursor");

    CURSOR_PRESENT = ("cursor.present", Must,
        "The minimum correct answer is { \"events\": [...], \"cursor\": \"...\" }.",
        "return a cursor with every answer; where there was nothing new, the one that was sent", NEEDS_READ);
    CURSOR_VALID = ("cursor.valid", Must,
        "cursor: opaque, server-issued. (Hosts take a string of 1 to 1,024 characters.)",
        "return a short string; keep what it stands for on your side", NEEDS_ANSWER);
    CURSOR_STRICTLY_AFTER = ("cursor.strictly-after", Must, "Return events strictly after it.",
        "compare with >, not with >=", NEEDS_EVENTS);
    CURSOR_POSITION = ("cursor.position", Must, "cursor: the position after the last event returned.",
        "return the position of the last event of this very answer, not of the newest there is", NEEDS_TWO);
    CURSOR_OF_EVENT = ("cursor.of-event", Must, "An event's cursor: optional; the position after this event.",
        "give each event the cursor that a page ending with it would have, or leave it out",
        "optional, and no event has one");
    CURSOR_ENCODING = ("cursor.encoding", Must, "cursor: opaque, server-issued, and echoed back to you.",
        "percent-decode the parameter once (the TypeScript SDKs hand it out encoded: decodeURIComponent), or use cursors of \
         letters, digits, - and _ only, such as unpadded URL-safe base64",
        "needs a cursor");
    CURSOR_UNKNOWN = ("cursor.unknown", Should,
        "truncated: the honest way to say \"you missed some\", rather than pretending a gap is not there.",
        "answer a cursor that you never issued with an error that says so, such as: unknown cursor; or with truncated: true", NEEDS_READ);

    CURSOR_DURABLE = ("cursor.durable", Should,
        "The host stores it per (workspace, connector) and sends it back next time.",
        "keep the outbox in a table or a file: a cursor, and the events after it, outlive the process and the connection",
        NEEDS_READ);

    EVENTS_OLDEST_FIRST = ("events.oldest-first", Must, "events: the batch, oldest first.",
        "sort by position, ascending", NEEDS_TWO);
    EVENT_ID_UNIQUE = ("event-id.unique", Must, "eventId: unique within your server, and the idempotency key.",
        "give every event an id of its own", NEEDS_TWO);
    EVENT_ID_STABLE = ("event-id.stable", Must,
        "Pick eventId from a stable upstream id where one exists, rather than minting a new one per read, or the dedupe has \
         nothing to work with.",
        "draw the id once, when the event is written, and store it", NEEDS_EVENTS);
    EVENT_UNCHANGED = ("event.unchanged", Should,
        "The host dedupes on (source, eventId), so a repeated event is a no-op there.",
        "leave an event as it was told; tell what changed as a new one", NEEDS_EVENTS);
    EVENTS_KEPT = ("events.kept", Must, "Delivery is at-least-once.",
        "keep events after they were read: the answer may not have arrived", NEEDS_EVENTS);
    EVENT_VALID = ("event.valid", Must,
        "A malformed event is dropped on its own — a bad timestamp or an invented level costs that one event.",
        "correct the field that is named", NEEDS_EVENTS);
    EVENT_SIZE = ("event.size", Must, "Hosts: an event has at most 64 KiB; a larger one is dropped.",
        "put a reference into data instead of the content", NEEDS_EVENTS);
    EVENT_NAME = ("event.name", Should, "name: your own dotted, lower-case name.",
        "name it like domain.active", NEEDS_EVENTS);
    EVENT_TIMESTAMP = ("event.timestamp", Should, "timestamp: ISO 8601, when the fact happened.",
        "write Z or an offset: datetime.now(timezone.utc).isoformat(), toISOString()", NEEDS_EVENTS);
    EVENT_TEXT = ("event.text", Should,
        "The host strips control characters and caps them (title 200 characters, body 2000). Send prose, not escape \
         sequences.",
        "shorten it yourself, where you know what matters", "needs an event with a title, subject or body");
    EVENT_FIELDS = ("event.fields", Should,
        "Fields the block does not define are dropped rather than honoured, so sending them does nothing.",
        "leave them out; what an agent needs belongs into data", NEEDS_EVENTS);

    MAX_EVENTS = ("max-events", Must, "maxEvents: ceiling on how many events to return in this batch.",
        "use maxEvents as the limit of the query", NEEDS_TWO);
    MAX_AGE = ("max-age", Must, "Honour the later of the cursor's position and now − maxAgeMs.",
        "leave out what was written before now − maxAgeMs, and say truncated", NEEDS_EVENTS);
    MAX_AGE_LARGE = ("max-age.large", Must,
        "maxAgeMs: the host's own replay bound. (90 days are 7776000000, beyond 32 bits.)",
        "read maxAgeMs as a 64-bit number", NEEDS_READ);
    HAS_MORE_CUT = ("has-more.cut", Must, "hasMore: true when the batch was cut at maxEvents.",
        "fetch one row more than asked, and say hasMore when it is there", NEEDS_TWO);
    HAS_MORE_END = ("has-more.end", Must,
        "hasMore: true when the batch was cut at maxEvents. The host polls again immediately, within its budget.",
        "fetch one row more than asked, and say hasMore only when it is there", NEEDS_READ);
    TRUNCATED_TOLD = ("truncated.told", Must,
        "truncated: true when delivery started later than the supplied cursor and events were skipped — the honest way to \
         say \"you missed some\".",
        "say truncated when maxAgeMs, or your own pruning, moved the start past events",
        "needs events that maxAgeMs skips");
    TRUNCATED_FALSE = ("truncated.false-alarm", Must,
        "truncated: true when delivery started later than the supplied cursor and events were skipped.",
        "say truncated only when events were skipped", NEEDS_READ);
    LATENCY = ("latency", Should, "Switchbell: a read that takes over a second keeps others waiting.",
        "answer from a table, and do slow work elsewhere", NEEDS_ANSWER);
}
