# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger as an inventory reads it: its instances, and the names that are no instance's. Reads only."""

from __future__ import annotations

import os
import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._json import JsonObject
from ..._ssh.inventory import Guest, guest
from ..db import clock
from ..db.engine import DEFAULT_HOME, FILE_NAME, open_ledger, reading
from ..queries import lookups
from ..queries.compute.views import instances_by
from ..queries.placement.host_states import host_states


def read_guests(
    home: str | None, url: str | None, projects: t.Sequence[str] | None, states: t.Collection[str]
) -> JsonObject:
    """`guests` of these projects (None: all) that are in these `vm_state`s, oldest first; `shared`, the fixed IPs
    that several have in the whole cloud; `hosts`, the names of the compute hosts.

    Writes nothing, a ledger that is not there least of all. Raises NovaliteError: no ledger, an unknown project.
    """
    if url is None and (home is not None or not os.environ.get("NOVALITE_LEDGER_URL")):
        where = home or os.environ.get("NOVALITE_HOME") or DEFAULT_HOME
        if not os.path.exists(os.path.join(where, FILE_NAME)):
            raise NovaliteError(f"there is no ledger in {where}: launch something first, or set `home`")
    engine = open_ledger(home, url, check_mode=True)
    try:
        with reading(engine) as connection:
            return _read(connection, projects, states)
    finally:
        engine.dispose()


def _read(connection: sa.Connection, projects: t.Sequence[str] | None, states: t.Collection[str]) -> JsonObject:
    ids = None if projects is None else {lookups.project_by_name(connection, name)["id"] for name in projects}
    zones = {state.name: state.zone for state in host_states(connection, clock.seconds(connection))[0]}
    everyone = instances_by(connection)
    counts: dict[str, int] = {}
    for instance in everyone:
        if instance["host"] and instance["nics"] and instance["nics"][0]["ip"]:
            counts[instance["nics"][0]["ip"]] = counts.get(instance["nics"][0]["ip"], 0) + 1
    guests: list[Guest] = [
        guest(instance, zones.get(instance["host"] or ""))
        for instance in everyone
        if instance["vm_state"] in states and (ids is None or instance["project"]["id"] in ids)
    ]
    return {
        "guests": guests,
        "shared": sorted(address for address, count in counts.items() if count > 1),
        "hosts": sorted(zones),
    }
