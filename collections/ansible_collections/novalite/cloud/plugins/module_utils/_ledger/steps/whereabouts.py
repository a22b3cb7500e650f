# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `whereabouts`: which hosts have guests that the ledger has elsewhere, of all that one run has looked at.

Each host is told what the others have of the guests that it has, or should have, and no more: what a comparison needs
so that nothing is taken for a leftover on the ledger's word alone.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._drift.proofs import Evidence, Sight
from ..._errors import NovaliteError
from ..._json import JsonMapping, JsonObject
from ..db import clock
from ..db.tables import compute_host, instance
from ..db.tables_volumes import volume
from ..drift import acceptance
from ..drift.words import words
from ..migration import outcomes
from .ledger_heal import ledger_heal

ARGUMENT_SPEC = {
    # The hypervisors that were looked at, each by its name, with `seen` of the step `host_drift`. Of all others that
    # the ledger knows, it counts as not known what they have.
    "seen": {"type": "dict", "required": True},
    # Hypervisors whose guests the ledger is to follow, with host, claim, volumes and power state.
    "accept": {"type": "list", "elements": "str", "default": []},
    # What earlier tasks of a run in check mode did and took back, as the step `host_drift` takes it.
    "rehearsal": {"type": "dict"},
}

_BATCH = 5000  # keys in one query; SQLite takes 32766 variables


def whereabouts(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """`params["seen"]` is what hosts that were asked have: {host: {"sights": {uuid: ...}, "volumes": [...]}}.

    With `accept` (names of hosts) the ledger follows the guests that run there, or whose only disk is there. Returns
    `hosts`, for each host what host_drift takes as `elsewhere`; `accepted`, `corrections` and `refusals`.
    """
    rehearse(connection, params.get("rehearsal"))
    seen: dict[str, JsonMapping] = params["seen"]
    accept: list[str] = params.get("accept") or []
    silent = set(connection.execute(sa.select(compute_host.c.name)).scalars()) - seen.keys()
    if strangers := sorted(set(accept) - seen.keys()):
        raise NovaliteError(f"accept={','.join(strangers)}: this run has not looked at {', '.join(strangers)}")
    sights: dict[str, dict[str, Sight]] = {}
    for host, of_host in sorted(seen.items()):
        for uuid, sight in of_host["sights"].items():
            sights.setdefault(uuid, {})[host] = Sight(**sight)
    corrections: list[JsonObject] = []
    chosen: list[JsonObject] = []
    refusals: list[str] = []
    if accept:
        evidence = {uuid: Evidence(by_host, frozenset(silent)) for uuid, by_host in sights.items()}
        known = words(connection, {uuid for host in accept for uuid in seen[host]["sights"]})
        there = {host: seen[host]["volumes"] for host in accept}
        chosen, refusals = acceptance.choose(connection, accept, known, evidence, there)
        corrections = acceptance.write(connection, chosen)
    result: dict[str, JsonObject] = {host: {"sights": {}, "volumes": {}, "silent": sorted(silent)} for host in seen}
    for uuid, place in _homes(connection, instance.c.uuid, instance.c.host, sights):
        if sights[uuid].keys() != {place}:
            for name in seen.keys() & {place, *sights[uuid]}:
                others = {host: vars(sight) for host, sight in sights[uuid].items() if host != name}
                result[name]["sights"][uuid] = others
    volumes: dict[str, list[str]] = {}
    for host, of_host in sorted(seen.items()):
        for volume_id in of_host["volumes"]:
            volumes.setdefault(volume_id, []).append(host)
    for volume_id, owner in _homes(connection, volume.c.id, volume.c.host, volumes):
        if owner in seen and owner not in volumes[volume_id]:
            result[owner]["volumes"][volume_id] = volumes[volume_id]
    return {
        "changed": bool(corrections),
        "hosts": result,
        "accepted": chosen,
        "corrections": corrections,
        "refusals": refusals,
    }


def rehearse(connection: sa.Connection, rehearsal: JsonMapping | None) -> None:
    """Do again what earlier steps of a run in check mode did, and took back with their own transactions: it says the
    same as a run that repairs."""
    if rehearsal is None:
        return
    now = clock.seconds(connection)
    ledger_heal(connection, {"build_timeout": rehearsal.get("build_timeout")})
    if rehearsal.get("outcomes"):
        outcomes.resolve_interrupted(connection, {"state": "resolve", "outcomes": rehearsal["outcomes"]})
    # in that run it was done before the hosts were looked at
    if (since := rehearsal.get("since")) is not None:
        connection.execute(sa.update(instance).where(instance.c.updated_at >= now).values(updated_at=since - 1))
    acceptance.write(connection, rehearsal.get("accepted") or [])


def _homes(
    connection: sa.Connection, key: sa.Column[str], home: sa.Column[str | None], keys: t.Iterable[str]
) -> t.Iterator[tuple[str, str | None]]:
    """(key, its host) of those that the ledger knows."""
    sorted_keys = sorted(keys)
    for begin in range(0, len(sorted_keys), _BATCH):
        of_these = key.in_(sorted_keys[begin : begin + _BATCH])
        yield from ((row[0], row[1]) for row in connection.execute(sa.select(key, home).where(of_these)))
