"""Reads a mail on standard input as Python's `email` package does, and prints what it says as one JSON object."""

import json
import sys
from email import message_from_bytes
from email.policy import default

mail = message_from_bytes(sys.stdin.buffer.read(), policy=default)
print(
    json.dumps(
        {
            # The headers that a relay adds stand before those of the mail.
            "headers": [[name, str(value)] for name, value in mail.items()],
            "defects": [str(defect) for defect in mail.defects]
            + [str(defect) for value in mail.values() for defect in getattr(value, "defects", ())],
            "type": mail.get_content_type(),
            "charset": mail.get_content_charset(),
            "encoding": mail["Content-Transfer-Encoding"],
            "date": mail["Date"].datetime.isoformat(),
            "to": [address.addr_spec for address in mail["To"].addresses],
            "from": [[address.display_name, address.addr_spec] for address in mail["From"].addresses],
            # Lines of a mail end in CRLF on the wire, and in LF in a mailbox.
            "text": mail.get_content().replace("\r\n", "\n"),
        }
    )
)
