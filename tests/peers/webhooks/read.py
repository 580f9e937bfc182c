"""What the libraries of receivers make of a request.

Reads `{"method", "target", "headers", "body", "more"}` from standard input and writes JSON:

- `read.py event`: the attributes and the data of a CloudEvent, structured or binary,
- `read.py batch`: the same of each event of a batch, which the library has no reader for,
- `read.py verified`: the payload of a Standard Webhook, once its signature by the key in `KEY` was verified,
- `read.py verified-ed25519`: the same where `KEY` is a public key, which the library does not know yet,
- `read.py stripe`: the event, once Stripe's library has verified its signature by `KEY`,
- `read.py aws`: the header that the library of AWS makes with the secret access key `KEY`, if it is the one that came;
  `more` has `id`, `region` and `service`.
"""

import base64
import json
import os
import sys


def event(request):
    from cloudevents.core.bindings.http import HTTPMessage, from_http_event

    read = from_http_event(HTTPMessage(headers=request["headers"], body=request["body"].encode()))
    attributes = {name: str(value) for name, value in read.get_attributes().items()}
    return {"attributes": attributes, "data": read.get_data()}


def batch(request):
    kind = request["headers"]["content-type"]
    assert kind.startswith("application/cloudevents-batch+json"), kind
    headers = {"content-type": "application/cloudevents+json"}
    return [event({"headers": headers, "body": json.dumps(one)}) for one in json.loads(request["body"])]


def verified(request):
    from standardwebhooks import Webhook

    return Webhook(os.environ["KEY"]).verify(request["body"].encode(), request["headers"])


def verified_ed25519(request):
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    headers = request["headers"]
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(os.environ["KEY"].removeprefix("whpk_")))
    message = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{request['body']}".encode()
    for signature in headers["webhook-signature"].split(" "):
        version, _, text = signature.partition(",")
        assert version == "v1a", version
        try:
            key.verify(base64.b64decode(text, validate=True), message)
            return json.loads(request["body"])
        except InvalidSignature:
            continue
    sys.exit("no signature is by this key")


def stripe(request):
    import stripe

    stripe.Webhook.construct_event(request["body"].encode(), request["headers"]["stripe-signature"], os.environ["KEY"])
    return json.loads(request["body"])


def aws(request):
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    headers, more = request["headers"], request["more"]
    _, _, words = headers["authorization"].partition(" ")
    parts = dict(word.split("=", 1) for word in words.split(", "))
    signed = {name: headers[name] for name in parts["SignedHeaders"].split(";")}
    url = f"http://{headers['host']}{request['target']}"
    ours = AWSRequest(method=request["method"], url=url, headers=signed, data=request["body"].encode())
    auth = SigV4Auth(Credentials(more["id"], os.environ["KEY"]), more["service"], more["region"])
    if auth.payload(ours) != headers["x-amz-content-sha256"]:
        sys.exit("the hash of the body is another")
    # As `add_auth` does, at the moment that the request names.
    ours.context["timestamp"] = headers["x-amz-date"]
    signature = auth.signature(auth.string_to_sign(ours, auth.canonical_request(ours)), ours)
    auth._inject_signature_to_request(ours, signature)
    if ours.headers["Authorization"] != headers["authorization"]:
        sys.exit("AWS makes another signature")
    return {"authorization": ours.headers["Authorization"]}


readers = {
    "event": event,
    "batch": batch,
    "verified": verified,
    "verified-ed25519": verified_ed25519,
    "stripe": stripe,
    "aws": aws,
}
json.dump(readers[sys.argv[1]](json.load(sys.stdin)), sys.stdout)
