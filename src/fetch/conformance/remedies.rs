//! What to change, where the words of an error tell more than the rule that is broken.

use crate::fetch::outbox::ReadError;

/// For servers on FastMCP or the official Python SDK whose resource has parameters under a URI without them.
const PYTHON_TEMPLATE: &str = "put the query into the URI that is registered, so that the parameters of the function have \
    their place: @mcp.resource(\"acme://notifications{?cursor,maxEvents,maxAgeMs}\", mime_type=\"application/json\"), all \
    three with a default, returning json.dumps(…). The bare URI is then served too";

/// For a server that knows the outbox only when every parameter is there.
pub(super) const WHOLE_TEMPLATE_ONLY: &str = "the SDK matches a template only when every variable of it is there: keep \
    {?cursor,maxEvents,maxAgeMs}, register the bare URI as a static resource besides it, with the same handler, and one \
    template more for each other query shape, first {?maxEvents,maxAgeMs}; decodeURIComponent the values, which come as they \
    stood in the URI";

/// For a server that knows no read of the outbox.
pub(super) const NO_SUCH_RESOURCE: &str =
    "check --resource: it must be the very URI that the server registers, without its {?…}";

/// Words in an error, and what to change.
const KNOWN: [(&str, &str); 6] = [
    ("URI template must contain at least one parameter", PYTHON_TEMPLATE),
    ("Mismatch between URI parameters", PYTHON_TEMPLATE),
    (
        "contents must be str, bytes",
        "return the JSON text itself, json.dumps(…): this release of FastMCP takes no dict",
    ),
    (
        "ModuleNotFoundError",
        "run the server with the interpreter that has its packages, such as .venv/bin/python, or install them",
    ),
    ("ERR_MODULE_NOT_FOUND", "install the server's packages: npm install, and build it"),
    ("Cannot find module", "install the server's packages: npm install, and build it"),
];

/// What to change, where this error tells it.
pub(super) fn of(error: &ReadError) -> Option<&'static str> {
    match error {
        ReadError::Http { status: 401 | 403, .. } => {
            Some("give the token with --bearer-env NAME, or a header with --header-env NAME=VARIABLE")
        }
        ReadError::NotFound(words)
        | ReadError::Refused { message: words, .. }
        | ReadError::NotConnected(words)
        | ReadError::Disconnected(words)
        | ReadError::NotMcp(words) => KNOWN.iter().find(|(known, _)| words.contains(known)).map(|(_, remedy)| *remedy),
        _ => None,
    }
}

/// What happened, without the remedies of a configuration that is not there.
pub(super) fn said(error: &ReadError) -> String {
    match error {
        ReadError::NotFound(words) => format!("not found ({words})"),
        ReadError::Refused { code, message } => format!("the error {code}: {message}"),
        ReadError::Http { status, .. } => format!("HTTP {status}"),
        error => {
            let said = error.to_string().replace("; check `commands`", "").replace("the connector's url", "--url");
            // Last words are the end of a stack trace, in which whole lines only underline others.
            let is_said = |line: &&str| line.trim().chars().any(|c| !matches!(c, '^' | '~'));
            said.split(" | ").filter(is_said).map(str::trim).collect::<Vec<_>>().join(" | ")
        }
    }
}
