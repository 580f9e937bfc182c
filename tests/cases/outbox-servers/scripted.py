"""A server by hand, for what no SDK would do: it writes to its standard output first, and ends, or is silent, at a read.

    python3 scripted.py chatters | dies | hangs | refuses
"""

import json
import sys

HABIT = sys.argv[1]

if HABIT == "chatters":
    print("listening to the world")
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        answer["result"] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"resources": {}},
            "serverInfo": {"name": "scripted", "version": "1"},
        }
    elif method != "resources/read":
        answer["error"] = {"code": -32601, "message": "Method not found"}
    elif "cursor" in params["uri"] and HABIT == "dies":
        sys.exit("ValueError: no such cursor")
    elif "cursor" in params["uri"] and HABIT == "hangs":
        continue
    elif "cursor" in params["uri"] and HABIT == "refuses":
        answer["error"] = {"code": -32603, "message": "invalid literal for int() with base 10: '7776000000'"}
    else:
        text = json.dumps({"events": [], "cursor": "c1"})
        answer["result"] = {"contents": [{"uri": params["uri"], "text": text}]}
    print(json.dumps(answer), flush=True)
