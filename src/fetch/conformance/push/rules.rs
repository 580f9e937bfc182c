//! The rules of the push-notifications extension that a server can keep or break, from its seed; where it says nothing,
//! the rule begins with who does.

use crate::fetch::conformance::rules::{Obligation, Rule, rules};
use Obligation::{Must, Should};

const NEEDS_ANSWER: &str = "needs an answer";
const NEEDS_EVENTS: &str = "needs a pending event";
const NEEDS_TWO: &str = "needs two pending events";
const NEEDS_STREAM: &str = "needs a live stream";
const NEEDS_LIVE: &str = "needs an event during the check: --trigger or --wait";
const NEEDS_ACK: &str = "needs --ack and a pending event";

const GATE: &str = "Servers reject extension requests from clients that did not declare support.";
const GATE_REMEDY: &str = "read io.modelcontextprotocol/clientCapabilities in the _meta of every request, and answer the error -32021 \
    where its extensions lack io.stagewise/push-notifications";

rules! {
    CONNECTION = ("connection", Must,
        "MCP 2026-07-28: the server is reached over HTTP, and answers what is not about the queue, too.",
        "see whether the URL is that of the MCP endpoint, and what the server logs", "needs a URL");
    ANSWER_FORM = ("answer.form", Must,
        "JSON-RPC: an answer is one object with the request's id and either a result or an error.",
        "answer each POST with one JSON-RPC object, as JSON or as the last event of a stream", NEEDS_ANSWER);
    ANSWER_BOUNDED = ("answer.bounded", Should,
        "Servers SHOULD bound event size and retrieval page size.",
        "answer with fewer events than were asked for, and say hasMore: a page of 1 MiB is plenty", NEEDS_ANSWER);

    DISCOVER = ("discover.extension", Must,
        "Both peers advertise an empty capability object under the identifier io.stagewise/push-notifications.",
        "let server/discover answer with capabilities.extensions[\"io.stagewise/push-notifications\"]: {}", NEEDS_ANSWER);
    GATE_GET = ("capability.get", Must, GATE, GATE_REMEDY, NEEDS_ANSWER);
    GATE_ACK = ("capability.ack", Must, GATE, GATE_REMEDY, NEEDS_ANSWER);
    GATE_LISTEN = ("capability.listen", Must, GATE, GATE_REMEDY, NEEDS_ANSWER);

    GET_ANSWERED = ("get.answered", Must,
        "The client retrieves a bounded page of unacknowledged events with io.stagewise/push-notifications/get.",
        "answer the method with the pending events of the consumer that the credentials name", NEEDS_ANSWER);
    GET_SHAPE = ("get.shape", Must,
        "A successful response contains complete pending events, and an indication that more existed: `events` is an array, \
         `hasMore` a boolean.",
        "answer with {\"events\": […], \"hasMore\": …}, also where nothing is pending", NEEDS_ANSWER);
    GET_NO_CURSOR = ("get.no-cursor", Should, "There is no cursor or page token.",
        "leave the field out: a client advances by acknowledging", NEEDS_ANSWER);
    GET_OPEN = ("get.unknown-keys", Should,
        "The extension's schema: what it does not define in the parameters of get passes.",
        "ignore the keys that you do not know", NEEDS_ANSWER);
    LIMIT_POSITIVE = ("limit.positive", Must, "`limit` MUST be a positive integer.",
        "refuse 0, negative numbers, fractions and texts with -32602", NEEDS_ANSWER);
    LIMIT_OPTIONAL = ("limit.optional", Should,
        "The extension's schema: `limit` may be left out. Servers MAY enforce a maximum, and may be asked for more.",
        "take your own maximum where it is left out or larger", NEEDS_ANSWER);
    LIMIT_HONOURED = ("limit.honoured", Must, "A page is bounded by `limit`.",
        "return at most `limit` events", NEEDS_EVENTS);
    HAS_MORE_CUT = ("has-more.cut", Must, "`hasMore` says that additional pending events existed.",
        "say true where a page leaves events out: a client stops at false", NEEDS_TWO);
    HAS_MORE_END = ("has-more.end", Must, "`hasMore` says that additional pending events existed.",
        "say false where no event is left: a client that follows true would ask forever", NEEDS_ANSWER);
    ORDER_STABLE = ("order.deterministic", Should,
        "A server SHOULD return pending events in deterministic order.",
        "sort by the number under which the event was queued", NEEDS_TWO);
    ORDER_OLDEST = ("order.oldest-first", Should, "A server SHOULD return pending events oldest first.",
        "sort by the number under which the event was queued", NEEDS_TWO);
    KEPT = ("pending.kept", Must,
        "An event remains pending until acknowledgement, and retrieval can return the same page again.",
        "delete nothing on retrieval, only on acknowledgement", NEEDS_EVENTS);

    EVENT_ID = ("event.id", Must, "`eventId` is stable and globally unique.",
        "give every event one id that is a text, keep it with the event, and use it for no other", NEEDS_EVENTS);
    EVENT_SOURCE = ("event.source", Must, "`sourceId` identifies what produced the event.",
        "give every event a sourceId that is a text", NEEDS_EVENTS);
    EVENT_TYPE = ("event.type", Must, "`type` is an open event type owned by the producer.",
        "give every event a type that is a text", NEEDS_EVENTS);
    EVENT_CREATED = ("event.created-at", Must, "`createdAt` is the source timestamp in ISO 8601 date-time form.",
        "write it as 2026-07-20T10:30:00.000Z", NEEDS_EVENTS);
    EVENT_ZONE = ("event.created-at.utc", Should, "The extension's schema: `createdAt` ends in Z.",
        "write it in UTC, as 2026-07-20T10:30:00.000Z", NEEDS_EVENTS);
    EVENT_CONTENT = ("event.content", Must,
        "`content` is an ordered array of canonical MCP content blocks; it may be empty.",
        "put text, image, audio, resource_link or resource blocks into an array, with the fields that MCP gives them and no other",
        NEEDS_EVENTS);
    EVENT_DATA = ("event.data", Must, "`data` is optional JSON, an object whose fields the type defines.",
        "make it an object, or leave it out", NEEDS_EVENTS);
    EVENT_FIELDS = ("event.fields", Should,
        "The event envelope: eventId, sourceId, type, createdAt, content and data.",
        "put what is the producer's own into data", NEEDS_EVENTS);
    EVENT_MEDIA = ("event.media", Should,
        "A producer SHOULD inline only bounded media. Larger media SHOULD use a resource link.",
        "put media of more than 1 MiB behind a resource_link", NEEDS_EVENTS);

    CONSUMER_TRUSTED = ("consumer.trusted", Must,
        "Servers derive the consumer from trusted context, never from a caller-provided queue key.",
        "ignore every parameter that looks like a consumer", NEEDS_EVENTS);
    CONSUMER_CHECKED = ("consumer.checked", Must,
        "Servers MUST apply the same authorization checks to retrieval, acknowledgement, and subscription delivery.",
        "answer a request with an unknown token with 401, on all three", "needs --bearer-env");

    ACK_EMPTY = ("ack.empty", Must, "The server returns an empty result.",
        "answer {} (resultType and _meta aside)", NEEDS_ANSWER);
    ACK_UNKNOWN = ("ack.unknown", Must,
        "Acknowledgement MUST succeed for an unknown identifier without disclosing whether it existed.",
        "answer the same for every id", NEEDS_ANSWER);
    ACK_ARGUMENTS = ("ack.arguments", Should,
        "The extension's schema: `eventIds` is an array of one or more texts.",
        "refuse what is none with -32602", NEEDS_ANSWER);
    ACK_EXCLUDES = ("ack.excludes", Must,
        "Acknowledgement MUST immediately exclude the IDs from subsequent retrieval.",
        "take the events out of the queue before the acknowledgement is answered", NEEDS_ACK);
    ACK_IDEMPOTENT = ("ack.idempotent", Must, "Acknowledgement MUST be idempotent.",
        "answer the second acknowledgement of an id as the first", NEEDS_ANSWER);

    LISTEN_FIRST = ("listen.acknowledged", Must,
        "The server confirms the same empty filter through notifications/subscriptions/acknowledged, before anything else.",
        "begin the stream with {\"notifications\": {\"io.stagewise/push-notifications\": {}}}", NEEDS_ANSWER);
    LISTEN_ID = ("listen.subscription-id", Must,
        "MCP 2026-07-28: every notification of a subscription carries the id of its request.",
        "put the request's id into params._meta[\"io.modelcontextprotocol/subscriptionId\"]", NEEDS_STREAM);
    LISTEN_FILTER = ("listen.filter", Must, "A client requests delivery with an empty extension filter.",
        "refuse a filter that is not empty with -32602", NEEDS_ANSWER);
    LISTEN_REPLACED = ("listen.replaced", Should,
        "A new authenticated subscription SHOULD replace and close the previous one.",
        "keep one stream for each consumer, and end the older", NEEDS_STREAM);
    LISTEN_GRACEFUL = ("listen.graceful", Should,
        "MCP 2026-07-28: a server that ends a subscription sends the result of its request.",
        "send {\"result\": {\"resultType\": \"complete\", …}} with the request's id before the stream ends", NEEDS_STREAM);
    LISTEN_ALIVE = ("listen.alive", Should,
        "MCP hosts and proxies: a stream on which nothing comes for a minute is taken for dead.",
        "send a comment every 15 seconds", "needs --keep-alive");
    LIVE_PENDING = ("live.pending", Must,
        "A server MUST durably add an event to the pending queue before pushing it. Receiving it does not acknowledge it.",
        "queue first, then push; take it out when it is acknowledged", NEEDS_LIVE);
    LIVE_SAME = ("live.same", Must, "A live event and the same event in retrieval are one.",
        "send the same envelope on both ways", NEEDS_LIVE);
    LIVE_PUSHED = ("live.pushed", Should, "A subscribed server MAY push pending events; without it events wait for a look.",
        "push every event that is queued while a stream is open", NEEDS_LIVE);
}
