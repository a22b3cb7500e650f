# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A quick look at all of one server, for what looks.py reads. Lists do without these imports."""

from __future__ import annotations

import typing as t

from ..._errors import NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._model import whole_servers
from ..._model.instance import Network
from .looks import Read


def server(read: Read, uuid: str, history: bool) -> JsonObject | None:
    """Return the server of this UUID as the module server_info does, with `history` its action log as `actions`. None
    for one of which the ledger's own queries must say more."""

    def read_one(statement: str, values: JsonMapping) -> list[JsonObject]:
        return read(statement, {"uuid": uuid, "uuids": [uuid], **values})

    try:
        (record,) = whole_servers.records(read_one, _AsRecorded(read))
    except _UnusualError:
        return None
    actions = {"actions": whole_servers.history(read_one).get(uuid, [])} if history else {}
    return {**record, "silent_for": None, **actions}


class _UnusualError(NovaliteError):
    """A server of which the ledger's own queries must say more."""


class _AsRecorded:
    """The rules of whole_servers.Beyond for a server that is as its own rows say. Raises _UnusualError for another."""

    def __init__(self, read: Read) -> None:
        self.read = read

    def networks(self, rows: t.Sequence[JsonMapping]) -> list[tuple[Network, str | None]]:
        """Do what whole_servers.Beyond says."""
        if self.read("further_ranges", {"networks": [row["id"] for row in rows]}):
            raise _UnusualError("a network has further ranges")
        return [(whole_servers.network_of(row), whole_servers.ipv4(row["dhcp_ip"])) for row in rows]

    def pairs(self, row: JsonMapping) -> t.NoReturn:
        """Do what whole_servers.Beyond says."""
        raise _UnusualError(f"interface {row['vif_id']} has address pairs")

    def properties(self, properties: JsonObject) -> t.NoReturn:
        """Do what whole_servers.Beyond says."""
        raise _UnusualError(f"the disk has been replaced, and {properties} are of the one before")
