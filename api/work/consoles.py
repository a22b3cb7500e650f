# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Consoles in a browser: their addresses, and the way from a token to a process on the server's host."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import threading
import typing as t

from flask import Flask, current_app

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection, place_of, reading
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import consoles
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.server_listing import instance_row
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.token_holders import Way
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow
from ansible_collections.novalite.cloud.plugins.module_utils._ssh import config as ssh

from ..settings import Settings
from ..web import policy
from ..web.addresses import base_url
from ..web.context import Caller, caller_of, current
from ..web.errors import ForbiddenError, TooManyRequestsError
from ..web.ledger import Ledger
from .calls import calling, proving
from .websocket import Upgrade, Upgraded

EXTENSION = "consoles"
RELAY = ssh.relay_command


class Places:
    """Consoles at once in this process: so many in all, and half of them for one user."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._taken: collections.Counter[str] = collections.Counter()

    def take(self, user_id: str) -> None:
        """Raises TooManyRequestsError when there is none left for this user."""
        with self._lock:
            if self._taken.total() >= self._most or self._taken[user_id] >= max(1, self._most // 2):
                raise TooManyRequestsError("too many consoles are open: close another one", 5)
            self._taken[user_id] += 1

    def give_back(self, user_id: str) -> None:
        with self._lock:
            self._taken[user_id] -= 1


def register(app: Flask, settings: Settings) -> None:
    app.extensions[EXTENSION] = Places(settings.api_consoles)


def url_of(connection: Connection, row: InstanceRow, console_type: str) -> str:
    """Return the address of a page that opens the console of a server once. The token stands where no browser sends it
    to a server and no server logs it. Raises ConflictError and NovaliteError, as consoles.open_console()."""
    token = consoles.open_console(calling(connection), row, console_type, current().token_hash)
    return f"{base_url()}/console/{console_type}#{token}"


def opened(connection: Connection, upgrade: Upgrade, visitor: Caller | None) -> Upgraded:
    """Use up the token that a WebSocket names, and return what carries on with its console. `visitor` is whose session
    the browser has. Raises ForbiddenError for a token that is void, TooManyRequestsError, and then it can be used yet.
    """
    way = consoles.redeem(proving(connection), upgrade.words[0]) if len(upgrade.words) == 1 else None
    target = None if way is None else _found(connection, way)
    if way is None or target is None or (visitor is not None and visitor.user_id != target.caller.user_id):
        raise ForbiddenError("This console was opened already, or is not yours: ask for a new one.")
    settings: Settings = current_app.extensions["settings"]
    command = _command(settings, target.row, way.type)
    places: Places = current_app.extensions[EXTENSION]
    ledger: Ledger = current_app.extensions["ledger"]
    user_id, host = target.caller.user_id, target.row.host

    def may_go_on() -> bool:
        with contextlib.suppress(NovaliteError), reading(ledger.engine) as looking:
            now = _found(looking, way)
            return now is not None and now.row.host == host
        return False

    places.take(user_id)
    return Upgraded(upgrade, command, may_go_on, settings.console_idle_seconds, lambda: places.give_back(user_id))


@dataclasses.dataclass(frozen=True)
class Target:
    """Whom a way is for, and the server that it leads to."""

    caller: Caller
    row: InstanceRow


def _found(connection: Connection, way: Way) -> Target | None:
    """Return what a way leads to; None where its caller may not have it any more, or the server has gone."""
    caller = caller_of(connection, way.holder)
    if caller is None or not policy.may(caller, consoles.POLICY):
        return None
    try:
        return Target(caller, instance_row(connection, way.instance_uuid, caller.reach))
    except NovaliteError:
        return None


def _command(settings: Settings, row: InstanceRow, console_type: str) -> t.Sequence[str]:
    path = os.path.join(place_of(settings.home, settings.ledger_url).home, "ssh_config")
    try:
        with open(path, encoding="utf-8") as handle:
            local = ssh.local_line(str(row.host)) in handle.read().splitlines()
    except OSError:
        raise NovaliteError(f"there is no {path}, by which hosts are reached: a launch writes it") from None
    return RELAY(str(row.host), console_type, row.uuid, path, local)
