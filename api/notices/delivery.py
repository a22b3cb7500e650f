# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Delivery of a message: one attempt, in bounded time, by HTTP or SMTP. Whoever calls tries again another time."""

from __future__ import annotations

import dataclasses
import email.message
import email.utils
import hashlib
import hmac
import http.client
import json
import smtplib
import ssl
import typing as t
import urllib.error
import urllib.request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject

from .receivers import Mail, Receiver, Webhook, secret_of

TIMEOUT = 10.0  # seconds for each step of the way
SIGNATURE = "X-Novalite-Signature"


@dataclasses.dataclass(frozen=True)
class Message:
    """Message to people: the subject and the text, and the same for programs."""

    subject: str
    text: str
    body: JsonObject


class DeliveryError(NovaliteError):
    """A receiver that did not take a message."""


def deliver(message: Message, receiver: Receiver) -> None:
    """Deliver the message. Raises DeliveryError when it was not taken, NovaliteError for a secret that is not there."""
    try:
        if isinstance(receiver, Webhook):
            _post(message, receiver)
        else:
            _send(message, receiver)
    except (OSError, http.client.HTTPException, smtplib.SMTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise DeliveryError(f"{receiver.name} {receiver.shown}: {reason}") from None


class _StayHere(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: it would lead somewhere that nobody configured."""

    def redirect_request(self, *_request: t.Any) -> None:
        return None


def _post(message: Message, webhook: Webhook) -> None:
    data = json.dumps(message.body).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "novalite"}
    if webhook.secret_file is not None:
        key = secret_of(webhook.secret_file).encode()
        headers[SIGNATURE] = f"sha256={hmac.new(key, data, hashlib.sha256).hexdigest()}"
    request = urllib.request.Request(webhook.url, data, headers, method="POST")
    try:
        with urllib.request.build_opener(_StayHere).open(request, timeout=TIMEOUT):
            pass  # it raises for what is no 2xx; nobody needs what is said with one
    except urllib.error.HTTPError as error:
        error.close()
        raise DeliveryError(f"{webhook.name} {webhook.shown} answered {error.code}") from None


def _send(message: Message, mail: Mail) -> None:
    letter = email.message.EmailMessage()
    letter["Subject"], letter["From"], letter["To"] = message.subject, mail.sender, ", ".join(mail.recipients)
    letter["Date"] = email.utils.formatdate()
    letter["Message-ID"] = f"<{message.body['id']}@{mail.sender.rpartition('@')[2]}>"
    letter["Auto-Submitted"] = "auto-generated"
    letter.set_content(message.text)
    tls = ssl.create_default_context()
    with (
        smtplib.SMTP_SSL(mail.server, mail.port, timeout=TIMEOUT, context=tls)
        if mail.tls
        else smtplib.SMTP(mail.server, mail.port, timeout=TIMEOUT)
    ) as server:
        server.ehlo()
        if not mail.tls and server.has_extn("starttls"):
            server.starttls(context=tls)
            server.ehlo()
        elif not mail.tls and mail.user is not None:
            raise DeliveryError(
                f"mail {mail.shown} offers no STARTTLS, and a password is not sent without: use smtps://"
            )
        if mail.user is not None:
            server.login(mail.user, secret_of(t.cast(str, mail.password_file)))
        server.send_message(letter)
