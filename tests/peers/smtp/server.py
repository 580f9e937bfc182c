"""A mail relay whose answers the recipient's address decides, on aiosmtpd.

The one argument is a JSON object: `tls` (`none`, `starttls`, `implicit`), `certificate` and `key` (files), `user` and
`password` (both or none). Reports are lines of JSON on standard output: `listening`, `connected`, `hello`, `signedIn`,
`recipient` and `mail`. It ends when its standard input does.

What is before the `@` up to the first dot decides:

    busy      RCPT is answered 451            deferred  the final dot is answered 451
    later     RCPT is answered 451 once       full      the final dot is answered 552
    gone      RCPT is answered 550            dropped   the connection is cut after the final dot
    closing   RCPT is answered 421            torn      the connection is cut at DATA
    echo      RCPT is answered 550 with the   bye       the connection is closed after an accepted mail
              password                        idle      421 after an accepted mail, and it is closed
"""

import asyncio
import base64
import json
import logging
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult, syntax

RECIPIENT_ANSWERS = {
    "busy": "451 4.7.1 Greylisted, come back later",
    "gone": "550 5.1.1 No such user here",
    "closing": "421 4.3.2 Too many connections",
}
MAIL_ANSWERS = {
    "deferred": "451 4.3.1 Out of storage for now",
    "full": "552 5.2.2 Mailbox full",
}


def report(kind, what):
    print(json.dumps({kind: what}), flush=True)


def manner(envelope):
    return envelope.rcpt_tos[0].split("@")[0].split(".")[0]


class Relay(SMTP):
    def __init__(self, *args, settings, **kwargs):
        super().__init__(*args, **kwargs)
        self.settings = settings

    def connection_made(self, transport):
        super().connection_made(transport)
        # STARTTLS makes a second connection of the same one.
        if transport.get_extra_info("sslcontext") is None or self.settings["tls"] == "implicit":
            report("connected", transport.get_extra_info("peername")[1])

    async def smtp_DATA(self, arg):
        if self.envelope.rcpt_tos and manner(self.envelope) == "torn":
            self.transport.abort()
            return
        await super().smtp_DATA(arg)
        last = getattr(self, "last", None)
        if last == "idle":
            await self.push("421 4.4.2 Idle for too long")
        if last in ("idle", "bye"):
            self.transport.close()
        self.last = None


class Handler:
    def __init__(self, settings):
        self.settings = settings
        self.seen = set()

    async def handle_EHLO(self, server, session, envelope, hostname, responses):
        session.host_name = hostname
        report("hello", hostname)
        return responses

    async def handle_RCPT(self, server, session, envelope, address, options):
        local = address.split("@")[0].split(".")[0]
        report("recipient", address)
        if local == "later" and address not in self.seen:
            self.seen.add(address)
            return RECIPIENT_ANSWERS["busy"]
        if local == "echo":
            return f"550 5.7.1 your password is {self.settings['password']}"
        if local == "closing":
            await server.push(RECIPIENT_ANSWERS[local])
            server.transport.close()
            raise asyncio.CancelledError
        if local in RECIPIENT_ANSWERS:
            return RECIPIENT_ANSWERS[local]
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 Recipient OK"

    async def handle_DATA(self, server, session, envelope):
        how = manner(envelope)
        answer = MAIL_ANSWERS.get(how, "250 2.0.0 Accepted")
        server.last = how
        if how == "dropped":
            server.transport.abort()
        report(
            "mail",
            {
                "from": envelope.mail_from,
                "to": envelope.rcpt_tos,
                "protected": session.ssl is not None or self.settings["tls"] == "implicit",
                "signedIn": session.authenticated is True,
                "accepted": answer.startswith("250") and how != "dropped",
                "content": base64.b64encode(envelope.original_content).decode(),
            },
        )
        return answer


def authenticator(settings):
    def judge(server, session, envelope, mechanism, data):
        given = (data.login.decode(), data.password.decode())
        accepted = given == (settings["user"], settings["password"])
        report("signedIn", {"mechanism": mechanism, "accepted": accepted})
        # The reply to it is left to the library.
        return AuthResult(success=accepted, handled=False)

    return judge


async def main(settings):
    tls = None
    if settings["tls"] != "none":
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(settings["certificate"], settings["key"])
    handler = Handler(settings)
    loop = asyncio.get_running_loop()

    def relay():
        return Relay(
            handler,
            settings=settings,
            hostname="relay.example",
            ident="a relay of the tests",
            loop=loop,
            enable_SMTPUTF8=False,
            tls_context=tls if settings["tls"] == "starttls" else None,
            authenticator=authenticator(settings) if settings.get("user") else None,
            auth_required=bool(settings.get("user")),
            auth_require_tls=settings["tls"] == "starttls",
        )

    implicit = tls if settings["tls"] == "implicit" else None
    server = await loop.create_server(relay, "127.0.0.1", 0, ssl=implicit)
    report("listening", server.sockets[0].getsockname()[1])
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


# Its advice on a password without TLS.
logging.getLogger("mail.log").setLevel(logging.ERROR)
asyncio.run(main(json.loads(sys.argv[1])))
