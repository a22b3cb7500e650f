# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Receivers of notices, as the environment names them, one line each, and what is wrong with such a line."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import typing as t
import urllib.parse

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError

WEBHOOK, MAIL = "NOVALITE_NOTIFY_WEBHOOK", "NOVALITE_NOTIFY_MAIL"
WEBHOOK_SECRET, MAIL_PASSWORD = "NOVALITE_NOTIFY_WEBHOOK_SECRET_FILE", "NOVALITE_NOTIFY_MAIL_PASSWORD_FILE"
_PORTS = {"smtp": 25, "smtps": 465}
_ADDRESS = re.compile(r"[^\s@,<>]+@[^\s@,<>]+")


@dataclasses.dataclass(frozen=True)
class Webhook:
    """Address that a JSON body is sent to, signed with the secret in a file, if there is one."""

    url: str
    secret_file: str | None = None
    name: t.ClassVar[str] = "webhook"

    @property
    def shown(self) -> str:
        """The address without what may be a secret of it."""
        parts = urllib.parse.urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")

    @property
    def mark(self) -> str:
        return _mark(self.url)


@dataclasses.dataclass(frozen=True)
class Mail:
    """Mail server, who logs in there, and whom mail is from and to."""

    server: str
    port: int
    tls: bool
    sender: str
    recipients: tuple[str, ...]
    user: str | None = None
    password_file: str | None = None
    name: t.ClassVar[str] = "mail"

    @property
    def shown(self) -> str:
        return f"{self.server}:{self.port}"

    @property
    def mark(self) -> str:
        return _mark(" ".join(self.recipients))


Receiver = Webhook | Mail


def receivers(environ: t.Mapping[str, str] | None = None) -> list[Receiver]:
    """Return the receivers that the environment names. Raises NovaliteError for what cannot be one."""
    environ = os.environ if environ is None else environ
    named: list[Receiver] = []
    if url := environ.get(WEBHOOK):
        named.append(_webhook(url, environ.get(WEBHOOK_SECRET) or None))
    if url := environ.get(MAIL):
        named.append(_mail(url, environ.get(MAIL_PASSWORD) or None))
    return named


def _webhook(url: str, secret_file: str | None) -> Webhook:
    parts = _split(WEBHOOK, url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        # the address is not repeated: it may be a secret
        raise NovaliteError(
            f"{WEBHOOK}: write https://host[:port]/path, or http, without a user; its secret is a file's"
        )
    return Webhook(url, secret_file)


def _mail(url: str, password_file: str | None) -> Mail:
    parts = _split(MAIL, url)
    words = urllib.parse.parse_qs(parts.query)
    senders, recipients = words.pop("from", []), words.pop("to", [])
    form = "write smtp[s]://[user@]server[:port]?from=cloud@example.org&to=admin@example.org"
    if parts.scheme not in _PORTS or not parts.hostname or parts.path.strip("/") or words or len(senders) != 1:
        raise NovaliteError(f"{MAIL}: {form}")
    if parts.password is not None:
        raise NovaliteError(f"{MAIL}: the password belongs into the file of {MAIL_PASSWORD}")
    if parts.username is not None and password_file is None:
        raise NovaliteError(f"{MAIL} names a user: name the file with the password, in {MAIL_PASSWORD}")
    for address in (*senders, *recipients):
        if not _ADDRESS.fullmatch(address):
            raise NovaliteError(f"{MAIL}: {address!r} is not a mail address: {form}")
    if not recipients:
        raise NovaliteError(f"{MAIL}: it is sent to nobody: {form}")
    user = None if parts.username is None else urllib.parse.unquote(parts.username)
    port = parts.port or _PORTS[parts.scheme]
    tls = parts.scheme == "smtps"
    return Mail(parts.hostname, port, tls, senders[0], tuple(recipients), user, password_file)


def _split(name: str, url: str) -> urllib.parse.SplitResult:
    try:
        parts = urllib.parse.urlsplit(url)
        _port = parts.port  # which is parsed when it is asked for
    except ValueError:
        parts = None
    if parts is None or not url.isprintable() or " " in url:
        raise NovaliteError(f"{name} is not an address: write scheme://host[:port]/...")
    return parts


def secret_of(path: str) -> str:
    """Return the secret in the file `path`. Raises NovaliteError for one that anybody may read, or that is empty."""
    try:
        with open(path, encoding="utf-8") as file:
            mode, text = os.fstat(file.fileno()).st_mode, file.read(4096).strip()
    except (OSError, ValueError) as error:
        raise NovaliteError(f"cannot read the secret {path}: {error}") from None
    if mode & 0o007:
        raise NovaliteError(f"the secret {path} is open to others: chmod 600 it")
    if not text:
        raise NovaliteError(f"the secret {path} is empty")
    return text


def _mark(text: str) -> str:
    """Return what tells one receiver from another, and nothing of the text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
