"""An MCP server over stdio with a small outbox, which misbehaves as it is told. The standard library is enough.

    python3 server.py FOLDER

Everything that drives it is a file in FOLDER, read again for every request:

    mode    how it misbehaves: the name of a function below, and after a space what that takes. Empty: it behaves
    events  the titles of what happened, one a line
    log     written by the server: `start PID` and `child PID` for processes, else the method and the URI of a request
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import parse_qs

FOLDER = Path(sys.argv[1])
OUTBOX = "acme://notifications"
OUT = sys.stdout.buffer

# A line that no reader of MCP may accept, in bytes.
TOO_LONG = 17 << 20


def note(line):
    with open(FOLDER / "log", "a", encoding="utf-8") as log:
        log.write(line + "\n")


def write(text):
    OUT.write(text if isinstance(text, bytes) else text.encode())
    OUT.flush()


def say(message):
    write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def complain(text):
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def hang():
    while True:
        time.sleep(600)


def leave_a_child():
    """A grandchild of the host, which holds every pipe open."""
    child = subprocess.Popen(["sleep", "600"])
    note(f"child {child.pid}")


# What it answers when it behaves.


def events():
    titles = (FOLDER / "events").read_text(encoding="utf-8").splitlines()
    for number, title in enumerate(titles, 1):
        yield {
            "eventId": f"e-{number}",
            "name": "domain.active",
            "timestamp": "2026-09-01T18:42:10Z",
            "data": {},
            "_meta": {"ai.nimblebrain/notification": {"level": "urgent", "title": title}},
        }


def poll(uri):
    bare, _, query = uri.partition("?")
    if bare != OUTBOX:
        return None
    happened = list(events())
    cursor = parse_qs(query).get("cursor")
    if cursor is None:
        return {"events": [], "cursor": f"c-{len(happened)}"}
    at = int(cursor[0].removeprefix("c-"))
    page = happened[at : at + int(parse_qs(query)["maxEvents"][0])]
    return {"events": page, "cursor": f"c-{at + len(page)}", "hasMore": at + len(page) < len(happened)}


def answer_to(request):
    method, parameters = request["method"], request.get("params", {})
    if method == "initialize":
        server = {"name": "misbehaving", "version": "1"}
        capabilities = {"resources": {}}
        return {"result": {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": server}}
    if method == "resources/read":
        answer = poll(parameters["uri"])
        if answer is None:
            return {"error": {"code": -32002, "message": "Resource not found"}}
        contents = [{"uri": parameters["uri"], "mimeType": "application/json", "text": json.dumps(answer)}]
        return {"result": {"contents": contents}}
    return {"error": {"code": -32601, "message": "Method not found"}}


def line_for(request):
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer_to(request)})


# How it misbehaves when it starts.


def exits_at_the_start():
    complain("ModuleNotFoundError: No module named 'cheese'")
    sys.exit(3)


def hangs_at_the_start():
    hang()


def leaves_a_child_at_the_start():
    leave_a_child()
    sys.exit(3)


# How it misbehaves when it is asked what it speaks. Whatever it returns is in place of the answer.


def is_silent_to_discovery(_request):
    return None


def answers_discovery_with(request, code):
    say({"id": request["id"], "error": {"code": int(code), "message": "what is this?"}})


def exits_at_discovery(_request):
    complain("KeyError: 'server/discover'")
    sys.exit(1)


# How it misbehaves when its outbox is read.


def dies_in_the_middle(_request):
    complain("out of cheese")
    sys.exit(7)


def is_killed_in_the_middle(_request):
    os.kill(os.getpid(), 9)


def dies_after_the_answer(request):
    write(line_for(request) + "\n")
    sys.exit(0)


def leaves_a_child_and_dies(_request):
    leave_a_child()
    sys.exit(7)


def hangs(_request):
    hang()


def writes_a_line_that_is_too_long(request):
    write(b'{"jsonrpc":"2.0","id":%d,"result":"' % request["id"] + b"x" * TOO_LONG + b'"}\n')


def begins_a_line_and_hangs(request):
    write(line_for(request)[:40])
    hang()


def begins_a_line_and_dies(request):
    write(line_for(request)[:40])
    sys.exit(7)


def writes_without_end(_request):
    while True:
        write(b"x" * (1 << 16))


def logs_between_messages(request):
    write("Listening on port 3000\n\n[INFO] reading\n{\"level\": \"info\", \"msg\": \"reading\"}\n")
    write(line_for(request) + "\n")
    write("done\n")


def glues_a_log_before_the_answer(request):
    write("reading... " + line_for(request) + "\n")


def glues_a_log_after_the_answer(request):
    write(line_for(request) + " done\n")


def fills_standard_error(request):
    for _ in range(200):
        sys.stderr.write("a line of a log that says nothing at all " * 250 + "\n")
    sys.stderr.flush()
    write(line_for(request) + "\n")


def pushes_what_nobody_asked_for(request):
    for number in range(50):
        say({"method": "notifications/message", "params": {"level": "info", "data": number}})
        say({"method": "notifications/of/another/time", "params": {"number": number}})
        say({"method": "notifications/resources/updated", "params": {"uri": "acme://something/else"}})
        say({"id": f"server-{number}", "method": "ping"})
    write(line_for(request) + "\n")


def answers_another_request(request):
    say({"id": request["id"] + 1_000, "result": {"contents": []}})


def misbehave(moment, *arguments):
    """Does what the mode says if it is about this moment; whether it was."""
    name, *words = (FOLDER / "mode").read_text(encoding="utf-8").split()[:2] or ["behaves"]
    at_the_start, at_discovery = name.endswith("_at_the_start"), "discovery" in name
    when = "start" if at_the_start else "server/discover" if at_discovery else "resources/read"
    if name == "behaves" or moment != when:
        return False
    globals()[name](*arguments, *words)
    return True


def main():
    note(f"start {os.getpid()}")
    misbehave("start")
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "method" not in request or "id" not in request:
            continue
        note(f"{request['method']} {request.get('params', {}).get('uri', '')}".rstrip())
        if not misbehave(request["method"], request):
            write(line_for(request) + "\n")


main()
