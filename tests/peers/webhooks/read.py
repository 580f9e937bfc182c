"""What the libraries of receivers make of a request.

Reads `{"headers": {...}, "body": "..."}` from standard input and writes JSON:

- `read.py event`: the attributes and the data of a CloudEvent, structured or binary,
- `read.py batch`: the same of each event of a batch, which the library has no reader for,
- `read.py verified`: the payload of a Standard Webhook, once its signature by the key in `KEY` was verified.
"""

import json
import os
import sys

from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from standardwebhooks import Webhook

STRUCTURED = {"content-type": "application/cloudevents+json"}


def event(headers, body):
    read = from_http_event(HTTPMessage(headers=headers, body=body))
    attributes = {name: str(value) for name, value in read.get_attributes().items()}
    return {"attributes": attributes, "data": read.get_data()}


def batch(headers, body):
    assert headers["content-type"].startswith("application/cloudevents-batch+json"), headers
    return [event(STRUCTURED, json.dumps(one).encode()) for one in json.loads(body)]


def verified(headers, body):
    return Webhook(os.environ["KEY"]).verify(body, headers)


request = json.load(sys.stdin)
read = {"event": event, "batch": batch, "verified": verified}[sys.argv[1]]
json.dump(read(request["headers"], request["body"].encode()), sys.stdout)
