"""A server with a push queue, as one that is killed: each line of `pending` is an event, each line of `acked` an id.

It ends at the step that DIE names, once: after the stream was opened, before or after a page was answered, before or after
an acknowledgement was kept. Everything it keeps is in the folder that it is started in.
"""

import json
import os
import sys

EXTENSION = "io.stagewise/push-notifications"
DIE = os.environ.get("DIE", "")


def lines(name):
    try:
        with open(name, encoding="utf-8") as file:
            return [line.rstrip("\n") for line in file]
    except FileNotFoundError:
        return []


def keep(name, added):
    with open(name, "a", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in added))
        file.flush()
        os.fsync(file.fileno())


def dies(step):
    if DIE == step and not os.path.exists("died"):
        keep("died", [step])
        os._exit(7)


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def pending():
    acked = set(lines("acked"))
    return [line for line in lines("pending") if json.loads(line)["eventId"] not in acked]


def event(line):
    say('{"jsonrpc":"2.0","method":"%s/event","params":{"event":%s}}' % (EXTENSION, line))


def answer(message):
    method, params = message["method"], message.get("params", {})
    own = method.startswith(EXTENSION) or method == "subscriptions/listen"
    declared = params.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities", {}).get("extensions", {})
    if own and EXTENSION not in declared:
        return '"error":{"code":-32003,"message":"Missing required client capability"}'
    keep("log", [method.removeprefix(EXTENSION)])
    if method == "initialize":
        return '"result":' + json.dumps(
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {"extensions": {EXTENSION: {}}},
                "serverInfo": {"name": "queue", "version": "1"},
            }
        )
    if method == "subscriptions/listen":
        say(json.dumps({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {"notifications": params["notifications"]}}))
        for line in pending()[:1]:
            event(line)
        dies("listened")
        return None
    if method == EXTENSION + "/get":
        dies("asked")
        page = pending()
        most = min(params["limit"], 2)
        more = "true" if len(page) > most else "false"
        return '"result":{"events":[%s],"hasMore":%s}' % (",".join(page[:most]), more)
    if method == EXTENSION + "/ack":
        dies("acknowledging")
        keep("acked", params["eventIds"])
        dies("acknowledged")
        return '"result":{}'
    return '"error":{"code":-32601,"message":"Method not found"}'


for received in sys.stdin:
    request = json.loads(received)
    if "id" not in request or "method" not in request:
        continue
    said = answer(request)
    if said is not None:
        say('{"jsonrpc":"2.0","id":%s,%s}' % (json.dumps(request["id"]), said))
    if request["method"] == EXTENSION + "/get":
        dies("answered")
