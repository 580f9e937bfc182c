// A mock of the APIs of OpenAI and Anthropic (aimock). What it answers is decided by the model that is asked for.
//
// It takes requests with the key in KEY only. Prints one line of JSON with its `url`, and ends when its standard input
// does. GET /__aimock/journal tells what it was asked.
import { LLMock } from "@copilotkit/aimock";

const mock = new LLMock({ port: 0, host: "127.0.0.1", logLevel: "silent", auth: { apiKeys: [process.env.KEY] } });
const error = (status, type, message, retryAfter) => ({ error: { message, type }, status, retryAfter });
mock.on({ model: "busy", sequenceIndex: 0 }, error(429, "rate_limit_error", "Too much at once.", 1));
mock.on({ model: "busy" }, { content: "All is well at last." });
mock.on({ model: "overloaded", sequenceIndex: 0 }, error(529, "overloaded_error", "Overloaded."));
mock.on({ model: "overloaded" }, { content: "All is well at last." });
mock.on({ model: "wrong" }, error(400, "invalid_request_error", "No such thing."));
mock.on({ model: "locked" }, error(401, "authentication_error", "Invalid key."));
mock.on({ model: "broken" }, error(500, "api_error", "It broke."));
mock.on({}, { content: "All is well.\nNothing to do." });
const url = await mock.start();
console.log(JSON.stringify({ url }));
process.stdin.on("end", () => process.exit(0)).resume();
