# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Applications over the ledgers of tests. To register a thousand routes takes longer than most tests do, so that the
application of a test that has ended is used again, with settings and a ledger of the next one's own."""

from __future__ import annotations

import contextlib
import pathlib
import typing as t

from flask import Flask

from api import create_app
from api.openstack.image import transfers
from api.settings import Settings
from api.v1 import streams
from api.web import policy
from api.web.ledger import Ledger
from api.work import consoles

QUICKER = {"api_burst": 10**6, "api_anonymous_burst": 10**6}  # tests ask quicker than callers may

_idle: list[Flask] = []


@contextlib.contextmanager
def application(home: pathlib.Path, **settings: t.Any) -> t.Iterator[Flask]:
    """The whole application over the ledger in `home`. With `settings` of its own it is a new one."""
    whole = Settings(home=str(home), **{**QUICKER, **settings})
    if settings or not _idle:
        app = create_app(whole)
    else:
        app = _idle.pop()
        app.extensions.update({"settings": whole, "ledger": Ledger(whole), transfers.EXTENSION: transfers.slots(whole)})
        streams.register(app, whole)  # the places of streams and consoles that the other test left open
        consoles.register(app, whole)
        policy.override(whole.api_policy)
    try:
        yield app
    finally:
        app.extensions["ledger"].close()
        if not settings:
            _idle.append(app)
