# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Notices: what a receiver was told of, what it is to be told now, and the message that does."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import hashlib
import json
import os
import pathlib
import threading
import time
import typing as t

import jinja2

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host.files import read_text, write_atomically
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import behind
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import (
    Connection,
    open_ledger,
    place_of,
    reading,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import healing
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import status
from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import without_controls

from . import matters
from .delivery import Message, deliver
from .matters import HOST, LEDGER, SERVER, Matter
from .receivers import Receiver

DIRECTORY = "notices"  # in the ledger's home
TEMPLATE = pathlib.Path(__file__).with_name("notice.txt.j2")
MOST = 50  # matters that one message names
PATIENCE = 45.0  # seconds for all receivers, who are told at the same time


class State(t.NamedTuple):
    """State of a receiver: matters that it was told of, by their keys, and how many messages it got."""

    told: dict[str, JsonObject]
    messages: int


def look(connection: Connection) -> list[Matter]:
    """Return all that needs attention now, of all projects."""
    refusal = behind.sentence(connection)
    ledger = [Matter(LEDGER, LEDGER, "the ledger", "behind", refusal)] if refusal else []
    return [
        *ledger,
        *matters.of_healing(healing.status(connection)),
        *matters.of_servers(status.troubled(connection)),
        *matters.of_hosts(status.hosts(connection)),
    ]


def tell(now: t.Sequence[Matter], home: str, receivers: t.Sequence[Receiver], render: Render) -> list[str]:
    """Tell each receiver what it was not told yet, all at the same time; return what went wrong, which is tried again
    the next time."""
    failures: list[str] = []

    def attempt(receiver: Receiver) -> None:
        try:
            _tell_one(now, home, receiver, render)
        except (NovaliteError, OSError) as error:
            failures.append(str(error))

    threads = [threading.Thread(target=attempt, args=(receiver,), daemon=True) for receiver in receivers]
    deadline = time.monotonic() + PATIENCE
    for thread in threads:
        thread.start()
    for thread, receiver in zip(threads, receivers, strict=True):
        thread.join(max(deadline - time.monotonic(), 0))
        if thread.is_alive():
            failures.append(f"{receiver.name} {receiver.shown}: it did not take the message within {PATIENCE:g} s")
    return failures


def _tell_one(now: t.Sequence[Matter], home: str, receiver: Receiver, render: Render) -> None:
    directory = os.path.join(home, DIRECTORY)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    path = os.path.join(directory, f"{receiver.name}.json")
    with open(f"{path}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # another process is at it
        before, messages = _state(path, receiver)
        after = {matter.key: matter._asdict() for matter in now}
        appeared = [entry for key, entry in after.items() if key not in before]
        gone = [entry for key, entry in before.items() if key not in after]
        if appeared or gone:
            deliver(render(appeared, gone, messages), receiver)
            # a message that was sent and not written down is sent again, with the same id
            state = {"receiver": receiver.mark, "told": after, "messages": messages + 1}
            write_atomically(path, json.dumps(state), 0o600)


def _state(path: str, receiver: Receiver) -> State:
    """Return the state of the receiver in the file `path`; an empty one where it is another's."""
    with contextlib.suppress(ValueError, AttributeError):
        state = json.loads(read_text(path) or "{}")
        if state.get("receiver") == receiver.mark:
            return State(state["told"], state["messages"])
    return State({}, 0)


class Render:
    """Makes messages, with the text of the template in the file `template`, and links to the API at `url`."""

    def __init__(self, template: str | None = None, url: str | None = None) -> None:
        self._path, self._url = template or str(TEMPLATE), url
        environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        try:
            self._template = environment.from_string(pathlib.Path(self._path).read_text(encoding="utf-8"))
        except (OSError, ValueError, jinja2.TemplateError) as error:
            raise NovaliteError(f"the template of notices {self._path} cannot be used: {error}") from None

    def __call__(self, appeared: t.Sequence[JsonObject], gone: t.Sequence[JsonObject], number: int = 0) -> Message:
        """Make the receiver's message of this `number`, that matters have appeared and are gone. Raises
        NovaliteError."""
        counts = [f"{len(appeared)} new"] * bool(appeared) + [f"{len(gone)} over"] * bool(gone)
        left_out = max(len(appeared) - MOST, 0) + max(len(gone) - MOST, 0)
        words: JsonObject = {
            "appeared": [self._shown(entry) for entry in appeared[:MOST]],
            "gone": [self._shown(entry) for entry in gone[:MOST]],
            "left_out": left_out,
        }
        subject = f"novalite: {', '.join(counts) or 'a test'}"
        try:
            text = self._template.render(subject=subject, **words)
        except jinja2.TemplateError as error:
            raise NovaliteError(f"the template of notices {self._path} cannot be used: {error}") from None
        keys = [[entry["kind"], entry["id"], entry["state"]] for entry in (*appeared, *gone)]
        identity = hashlib.sha256(json.dumps([number, len(appeared), *keys]).encode()).hexdigest()[:32]
        sent_at = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Message(subject, text, {"id": identity, "sent_at": sent_at, "text": text, **words})

    def _shown(self, entry: JsonObject) -> JsonObject:
        """Return the matter with the address of its page; its words, of which some are tenants', as one line each."""
        paths = {HOST: "/hosts/", SERVER: "/instances/"}
        url = (
            f"{self._url.rstrip('/')}{paths[entry['kind']]}{entry['id']}"
            if self._url and entry["kind"] in paths
            else None
        )
        texts = {name: without_controls(str(value)) for name, value in entry.items()}
        return {**texts, "url": url}


def notify(
    home: str | None, url: str | None, receivers: t.Sequence[Receiver], render: Render, test: bool = False
) -> list[str]:
    """Look at the ledger and tell the receivers; with `test`, send each an empty message. Return what went wrong.
    Raises NovaliteError where the ledger cannot be read."""
    if test:
        return _send_tests(receivers, render)
    engine = open_ledger(home, url)
    try:
        with reading(engine) as connection:
            now = look(connection)
    finally:
        engine.dispose()
    return tell(now, place_of(home, url).home, receivers, render)


def _send_tests(receivers: t.Sequence[Receiver], render: Render) -> list[str]:
    failures = []
    for receiver in receivers:
        try:
            deliver(render([], []), receiver)
        except NovaliteError as error:
            failures.append(str(error))
    return failures
