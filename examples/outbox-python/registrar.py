"""What the server is about: domains at a registrar. `PretendRegistrar` plays the upstream that changes by itself."""

from dataclasses import dataclass

from outbox import Outbox, now_ms

DOMAINS = "CREATE TABLE IF NOT EXISTS domains (domain TEXT PRIMARY KEY, state TEXT NOT NULL)"
PRETEND = "CREATE TABLE IF NOT EXISTS pretend (step INTEGER NOT NULL, due_ms INTEGER)"
# After a long silence at most so many steps are caught up in one read; the rest of the silence had no events.
CATCH_UP_STEPS_MAX = 20
# Active domains are forgotten beyond so many, since the pretended registrar never stops ordering new ones.
DOMAINS_KEPT = 1000


class Registrar:
    """The domains this server ordered, in the database of its outbox."""

    def __init__(self, outbox: Outbox):
        self.outbox = outbox
        with outbox.transaction() as connection:
            connection.execute(DOMAINS)

    def register(self, domain: str) -> bool:
        """Orders a domain and tells so, or neither. False when it was ordered before."""
        with self.outbox.transaction() as connection:
            return self._register(connection, domain)

    def refresh(self) -> int | None:
        """Looks for changes upstream, writes what it finds, and returns in how many milliseconds to look again.

        None says nothing about that. A real registrar would be asked here about its pending orders.
        """
        return None

    def _register(self, connection, domain: str, at_ms: int | None = None) -> bool:
        done = connection.execute("INSERT INTO domains VALUES (?, 'pending') ON CONFLICT DO NOTHING", (domain,))
        if done.rowcount == 0:
            return False
        # The same transaction: an order that is rolled back cannot leave an event that says it happened.
        self.outbox.add(
            connection,
            "domain.registered",
            level="info",
            subject=domain,
            title=f"{domain} is ordered",
            body="The registry was asked. It usually answers within the hour.",
            link=f"acme://domains/{domain}",
            data={"domain": domain, "state": "pending"},
            event_id=f"registered:{domain}",
            at_ms=at_ms,
        )
        return True


@dataclass(frozen=True)
class Fact:
    """One thing that happens upstream: what `Outbox.add` takes."""

    name: str
    level: str | None
    subject: str | None
    title: str | None
    body: str | None
    data: dict


ACTIVATE, REGISTER = object(), object()

SCRIPT = (
    ACTIVATE,
    Fact(
        "reply.received",
        "attention",
        "acme-outreach.test",
        "Re: autumn offer: “send us the price list”",
        "Purchasing at globex.example answered the second mail of the campaign.",
        {"campaign": "autumn", "from": "purchasing@globex.example", "thread": 4711},
    ),
    Fact(
        "bounce.received",
        "info",
        "acme-outreach.test",
        "Mail to sales@initech.example came back",
        "550 5.1.1 no such mailbox.\nNobody will be mailed there again.",
        {"campaign": "autumn", "to": "sales@initech.example", "code": 550, "enhanced": "5.1.1"},
    ),
    REGISTER,
    Fact(
        "domain.transfer-requested",
        "urgent",
        "acme-outreach.test",
        "Somebody asked to move acme-outreach.test to another registrar",
        "It goes through by itself in five days unless it is refused.",
        {"domain": "acme-outreach.test", "gaining_registrar": "registrar.example", "refuse_within_hours": 120},
    ),
    # No title: hosts show the name.
    Fact("campaign.finished", "info", "acme-mail.test", None, None, {"campaign": "summer", "sent": 1840, "hits": 31}),
    # Written by a stranger, as every reply is. It must ping nobody and link nowhere.
    Fact(
        "reply.received",
        "attention",
        "acme-mail.test",
        "Re: <!channel> & <http://evil.example|x>",
        "*Urgent*: press <http://evil.example|here>, @everyone. `rm -rf /`",
        {"campaign": "summer", "from": "stranger@evil.example", "thread": 4712},
    ),
    Fact(
        "domain.renewal-due",
        "attention",
        "acme-mail.test",
        "acme-mail.test runs out in 30 days",
        "Automatic renewal is off.",
        {"domain": "acme-mail.test", "days_left": 30, "auto_renew": False},
    ),
    # Nothing but the four required fields: still a notification.
    Fact("suppression.added", None, None, None, None, {"address": "sales@initech.example", "reason": "bounce"}),
    Fact(
        "mailbox.full",
        "attention",
        "post.acme-outreach.test",
        "The mailbox of post.acme-outreach.test is 98 % full",
        None,
        {"used_mib": 9800, "quota_mib": 10000},
    ),
    Fact("domain.test", "attention", "acme-mail.test", "Test of the registrar's connection", None, {"ok": True}),
)


class PretendRegistrar(Registrar):
    """A registrar at which something happens every `seconds`. It needs no background loop: the read is the tick."""

    def __init__(self, outbox: Outbox, seconds: float):
        super().__init__(outbox)
        self.interval_ms = max(1, round(seconds * 1000))
        with outbox.transaction() as connection:
            connection.execute(PRETEND)
            step = connection.execute("DELETE FROM pretend RETURNING step").fetchone()
            next_step = step["step"] if step else 0
            # Due once the first read has been answered: what happens before that nobody would be told.
            connection.execute("INSERT INTO pretend VALUES (?, NULL)", (next_step,))
            (self.tag,) = connection.execute("SELECT tag FROM outbox_itself").fetchone()
            for domain in ("acme-outreach.test", "acme-mail.test"):
                self._register(connection, domain)

    def refresh(self) -> int:
        now = now_ms()
        with self.outbox.transaction() as connection:
            step, due_ms = connection.execute("SELECT step, due_ms FROM pretend").fetchone()
            if due_ms is None:
                due_ms = now + self.interval_ms
            due_ms = max(due_ms, now - CATCH_UP_STEPS_MAX * self.interval_ms)
            while due_ms <= now:
                self._happen(connection, step, due_ms)
                step, due_ms = step + 1, due_ms + self.interval_ms
            connection.execute("UPDATE pretend SET step = ?, due_ms = ?", (step, due_ms))
        return due_ms - now

    def _happen(self, connection, step: int, at_ms: int) -> None:
        round_number, place = divmod(step, len(SCRIPT))
        what = SCRIPT[place]
        if what is REGISTER:
            self._register(connection, f"acme-shop-{round_number + 1}.test", at_ms)
        elif what is ACTIVATE:
            self._activate(connection, at_ms)
        else:
            self.outbox.add(
                connection,
                what.name,
                level=what.level,
                subject=what.subject,
                title=what.title,
                body=what.body,
                data=what.data,
                # The tag keeps the ids of two databases apart, the step those of two rounds.
                event_id=f"upstream:{self.tag}:{step}",
                at_ms=at_ms,
            )

    def _activate(self, connection, at_ms: int) -> None:
        """The domain that has been pending longest becomes active."""
        row = connection.execute(
            "UPDATE domains SET state = 'active' WHERE rowid = (SELECT min(rowid) FROM domains WHERE state = 'pending')"
            " RETURNING domain"
        ).fetchone()
        if row is None:
            return
        domain = row["domain"]
        self.outbox.add(
            connection,
            "domain.active",
            level="attention",
            subject=domain,
            title=f"{domain} is active",
            body="Its name servers answer everywhere. Mailboxes can be made on it now.",
            link=f"acme://domains/{domain}",
            data={"domain": domain, "state": "active"},
            event_id=f"active:{domain}",
            at_ms=at_ms,
        )
        connection.execute(
            "DELETE FROM domains WHERE state = 'active' AND rowid <= (SELECT max(rowid) FROM domains) - ?",
            (DOMAINS_KEPT,),
        )
