# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every route, with every method, is sent what no client would send: nothing of it may be our fault (5xx).

Requests are drawn at random from what hurts: paths, queries, headers, bodies, and bodies that are right but for one
value. NOVALITE_FUZZ_EXAMPLES says how many of them each route gets from each user (default: 1, with --thorough 2),
NOVALITE_FUZZ_SEED which; a failure names the seed.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import json
import logging
import os
import pathlib
import random
import re
import sqlite3
import traceback
import typing as t
import urllib.parse

import pytest
from flask.testing import FlaskClient

from api.dashboard import session
from api.v1 import streams
from tests.api import conftest, foreign, scenes, seeds
from tests.api.web.fuzz_words import (
    BODIES,
    FIELDS,
    FORMS,
    HEADERS,
    KINDS,
    QUERIES,
    RAW,
    SEGMENTS,
    SOMETHING,
    TEXTS,
    VALUES,
    VARIABLE,
)

EXAMPLES = os.environ.get("NOVALITE_FUZZ_EXAMPLES")
SEED = int(os.environ.get("NOVALITE_FUZZ_SEED", "1"))
USERS = ("demo", "reader", "admin", "alt")  # alt's are the objects that routes are about
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
DERIVED = ("HEAD", "OPTIONS")  # Flask answers them by what GET does, or by itself: one of each is enough
SERVICES = ("identity", "compute", "image", "network", "volume", "v1", "pages")


NOT_READY = ("/readyz",)  # 503 is what it says while no worker runs


class Fault(t.NamedTuple):
    """An answer of 5xx: what was sent, and where it went wrong."""

    route: str
    status: int
    where: str
    sent: str


class Faults(logging.Handler):
    """Where in our files the last exception that the application logged came from."""

    def __init__(self) -> None:
        super().__init__()
        self.where = "no exception was logged"

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1]:
            error = record.exc_info[1]
            ours = [frame for frame in traceback.extract_tb(error.__traceback__) if ".venv" not in frame.filename]
            frames = [f"{os.path.relpath(frame.filename)}:{frame.lineno}" for frame in ours[-3:]]
            self.where = f"{type(error).__name__}: {str(error)[:200]} at {' > '.join(frames)}"
        elif record.levelno >= logging.ERROR:
            self.where = record.getMessage()[:300]


@pytest.fixture(scope="module")
def api(seeded: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[seeds.Api]:
    with conftest.application(seeded, tmp_path_factory.mktemp("fuzz") / "cloud") as opened:
        yield opened


class Fuzz:
    """Draws requests, sends them, and keeps what came back as 5xx."""

    def __init__(self, api: seeds.Api) -> None:
        self.api = api
        self.random = random.Random(SEED)
        self.objects = foreign.make(api)
        self.scene = scenes.build(api)
        self.faults: list[Fault] = []
        self.statuses: collections.Counter[int] = collections.Counter()
        self.log = Faults()
        self.tokens = {user: api.token(user) for user in USERS}

    def begin(self, service: str) -> None:
        """The same requests for a service, whatever was asked of others before."""
        self.random = random.Random(f"{SEED} {service}")
        self.faults, self.statuses = [], collections.Counter()

    def path(self, rule: str, wild: bool) -> str:
        """A path of that rule: with objects that there are or, if `wild`, mostly with others."""
        parts = rule.split("/")[1:]
        made: list[str] = []
        for position, part in enumerate(parts):
            variable = VARIABLE.search(part)
            if variable is None:
                made.append(part)
                continue
            where = (parts[0], made[position - 1] if position else parts[0])
            kind = foreign.OWNED.get(where)
            known = self.objects.id(kind) if kind is not None else foreign.SHARED.get(where, "stop")
            if wild and self.random.random() < 0.7:
                known = self.random.choice(SEGMENTS)
            elif kind in ("server", "job") and self.random.random() < 0.5:
                known = self.random.choice([self.scene.web, self.scene.stopped, self.scene.launched, self.scene.going])
            made.append(VARIABLE.sub(lambda _match, known=known: known, part))  # type: ignore[misc]  # no types for the defaults of a lambda
        return "/" + "/".join(made)

    def query(self) -> str:
        count = self.random.choice([0, 0, 1, 2, 4])
        pairs = [(self.random.choice(QUERIES), self.random.choice([*TEXTS, "1", "asc"])) for _ in range(count)]
        pairs = [(name, value[:2000]) for name, value in pairs]
        if pairs and self.random.random() < 0.2:
            pairs.append(pairs[0])
        text = urllib.parse.urlencode(pairs, errors="surrogatepass")
        return self.random.choice([text, text, text, text + "&%ff=%ff", "&&==", "a" * 9000]) if pairs else ""

    def body(self, rule: str) -> bytes:
        """A raw one, or a right one with one value or two replaced."""
        right = next((BODIES[end] for end in _ends(VARIABLE.sub("{}", rule)) if end in BODIES), None)
        if right is None or self.random.random() < 0.3:
            return self.random.choice(RAW) if self.random.random() < 0.5 else _dumped({"x": self.value()})
        body = self.filled(self.random.choice(right))
        for _ in range(self.random.choice([0, 0, 1, 1, 2])):
            body = self.spoiled(body)
        return _dumped(body)

    def filled(self, value: t.Any, name: str = "") -> t.Any:
        """A copy with the ids of objects that there are."""
        if isinstance(value, dict):
            return {key: self.filled(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [self.filled(item, name) for item in value]
        if value != SOMETHING:
            return value
        known = [self.objects.id(KINDS.get(name, "nothing"))]
        if KINDS.get(name) == "network":
            known.append(self.scene.network)
        if KINDS.get(name) == "server":
            known += [self.scene.web, self.scene.stopped]
        return self.random.choice(known)

    def value(self) -> t.Any:
        return copy.deepcopy(self.random.choice(VALUES))

    def spoiled(self, value: t.Any) -> t.Any:
        """The same with one value in it replaced, taken away, or beside a new one."""
        if isinstance(value, dict) and value and self.random.random() < 0.85:
            key = self.random.choice(list(value))
            how = self.random.random()
            if how < 0.08:
                value.pop(key)
            elif how < 0.16:
                value[self.random.choice(TEXTS)] = self.value()
            else:
                value[key] = self.spoiled(value[key])
            return value
        if isinstance(value, list) and value and self.random.random() < 0.7:
            position = self.random.randrange(len(value))
            value[position] = self.spoiled(value[position])
            return value
        return self.value()

    def headers(self) -> dict[str, str]:
        chosen = self.random.sample(HEADERS, self.random.choice([0, 0, 1, 2, 3]))
        return {name: self.random.choice(values) for name, values in chosen}

    def send(self, method: str, rule: str, user: str, wild: bool = True) -> None:
        client = self.client(user, rule)
        path, query, headers = self.path(rule, wild), "", {}
        if wild or self.random.random() < 0.3:
            query, headers = self.query(), self.headers()
        options: dict[str, t.Any] = {"method": method, "query_string": query, "headers": headers}
        if method in ("POST", "PUT", "PATCH") or self.random.random() < 0.1:
            if _is_page(rule):
                options["data"] = {**self.random.choice(FORMS), self.random.choice(["user", "csrf", "x"]): "\u202e\0"}
                if self.random.random() < 0.6:
                    texts = [*(text for text in TEXTS if text.isprintable()), "1", "10.0.0.0/24", "::/0", "tcp", "yes"]
                    fields = self.random.sample(FIELDS, self.random.choice([0, 3, len(FIELDS)]))
                    values = {name: self.random.choice(texts)[:3000] for name in fields}
                    options["data"] = {"csrf": self.csrf(user), **values}
            else:
                options["data"] = self.body(rule)
        self.log.where = "no exception was logged"
        answer = client.open(path, **options)
        status = answer.status_code
        for _ in zip(answer.response, range(3)):  # what is streamed fails only when it is read
            pass
        answer.close()
        self.statuses[status] += 1
        if status >= 500:
            body = repr(options.get("data"))[:600]
            sent = json.dumps({"path": path[:300], "query": query[:300], "headers": headers, "body": body})
            self.faults.append(Fault(f"{method} {rule} as {user}", status, self.log.where, sent))

    def client(self, user: str, rule: str) -> FlaskClient:
        client = self.api.app.test_client()
        token = self.tokens[user]
        if _is_page(rule):
            client.set_cookie(session.COOKIE, token)
        else:
            client.environ_base["HTTP_X_AUTH_TOKEN"] = token
        return client

    def csrf(self, user: str) -> str:
        client = self.client(user, "/quotas")
        match = re.search(r'name="csrf" value="([0-9a-f]+)"', client.get("/quotas").get_data(as_text=True))
        return match[1] if match else "x"

    def keep(self, path: pathlib.Path) -> None:
        """Remember the ledger as it is now."""
        self.kept = path
        with contextlib.closing(sqlite3.connect(path)) as kept:
            self._copy(kept, restore=False)

    def restore(self) -> None:
        """Bring back what was deleted, users and tokens among it."""
        with contextlib.closing(sqlite3.connect(self.kept)) as kept:
            self._copy(kept, restore=True)

    def _copy(self, kept: sqlite3.Connection, restore: bool) -> None:
        raw = self.api.engine.raw_connection()
        ledger = t.cast(sqlite3.Connection, raw.driver_connection)
        source, target = (kept, ledger) if restore else (ledger, kept)
        source.backup(target)
        raw.close()


@pytest.fixture(scope="module")
def fuzz(api: seeds.Api, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Fuzz]:
    made = Fuzz(api)
    made.keep(tmp_path_factory.mktemp("kept") / "ledger.sqlite")
    api.app.logger.addHandler(made.log)
    yield made
    api.app.logger.removeHandler(made.log)


@pytest.mark.parametrize("service", SERVICES)
def test_whatever_is_sent_to_any_route_is_not_our_fault(
    fuzz: Fuzz, service: str, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    examples = int(EXAMPLES or (2 if pytestconfig.getoption("--thorough") else 1))
    monkeypatch.setattr(streams, "LONGEST", 0.0)
    fuzz.begin(service)
    for rule in sorted(fuzz.api.app.url_map.iter_rules(), key=lambda rule: rule.rule):
        if _service(rule.rule) != service or rule.rule in NOT_READY:
            continue
        fuzz.restore()
        allowed = rule.methods or set()
        fuzz.send(fuzz.random.choice([method for method in METHODS if method not in allowed]), rule.rule, "demo")
        for method in sorted(allowed - set(DERIVED)):
            for user in USERS:
                fuzz.send(method, rule.rule, user, wild=False)
                for _ in range(examples):
                    fuzz.send(method, rule.rule, user, wild=fuzz.random.random() < 0.5)
        for method in sorted(allowed & set(DERIVED)):
            fuzz.send(method, rule.rule, fuzz.random.choice(USERS), wild=fuzz.random.random() < 0.5)
    sent = sum(fuzz.statuses.values())
    print(f"{service}: {sent} requests: {dict(sorted(fuzz.statuses.items()))}")
    assert fuzz.statuses[400] and fuzz.statuses[404]
    assert any(200 <= status < 300 for status in fuzz.statuses)  # it got somewhere
    assert fuzz.statuses[401] < sent / 4
    by_cause: dict[str, list[Fault]] = {}
    for fault in fuzz.faults:
        by_cause.setdefault(f"{fault.status} {fault.where}", []).append(fault)
    fault_texts = [
        f"{len(faults)} x {cause}\n    {faults[0].route} {faults[0].sent}" for cause, faults in by_cause.items()
    ]
    assert not fault_texts, f"with NOVALITE_FUZZ_SEED={SEED} NOVALITE_FUZZ_EXAMPLES={examples}:\n" + "\n".join(
        fault_texts
    )


def _dumped(value: t.Any) -> bytes:
    return json.dumps(value).encode()


def _ends(rule: str) -> t.Iterator[str]:
    """The ends of a path that begin with a slash, longest first."""
    parts = rule.split("/")
    for position in range(1, len(parts)):
        yield "/" + "/".join(parts[position:])


def _is_page(rule: str) -> bool:
    return _service(rule) == "pages"


def _service(rule: str) -> str:
    first = rule.split("/")[1]
    return first if first in SERVICES else "pages"
