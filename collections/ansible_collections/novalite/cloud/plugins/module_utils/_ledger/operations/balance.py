# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Balance of the hosts, as the ledger and the samples have it: which servers could move, and what that would cost."""

from __future__ import annotations

import dataclasses
import time
import typing as t

import sqlalchemy as sa

from ..._model.instance import Instance
from ..._model.plain_text import natural
from ..._samples.rings import GUEST, HOST, Record, Samples, Window, joined
from ..._scheduling import balance
from ..._scheduling.balance_placed import Peak, Placed
from ..._scheduling.options import Options
from ..._scheduling.rows import HostState, Request, request_of, unpinned
from ..db import clock
from ..db.engine import reading
from ..db.tables import compute_host
from ..db.tables import instance as instance_table
from ..db.tables_images import server_snapshot
from ..db.tables_migrations import migration
from ..queries.compute.views import instances_by
from ..queries.placement.groups import groups_of
from ..queries.placement.host_states import EVER, host_states
from ..volumes.ha_disks import local_volumes

WINDOW = Window(3600, 60)  # of what was measured: the highest of an hour counts
PRESSURES = ("cpu_pressure", "memory_pressure", "io_pressure")
_MIB = 1024 * 1024


@dataclasses.dataclass(frozen=True)
class Plan:
    """Moves in the order in which they are to be made, with the scores before and after all of them. `resting` is how
    many servers were left where they are because they moved a short while ago."""

    moves: list[balance.Move]
    before: float
    after: float
    instances: t.Mapping[str, Instance]
    resting: int


@dataclasses.dataclass(frozen=True)
class Measured:
    """Peaks of the last hour, of hosts by their names and of guests by their UUIDs."""

    hosts: t.Mapping[str, Peak]
    guests: t.Mapping[str, Peak]


NOTHING_MEASURED = Measured({}, {})


def measured(engine: sa.Engine, samples: Samples) -> Measured:
    """Read what was measured, a file for each host and guest, while nobody waits for the ledger."""
    i = instance_table.c
    with reading(engine) as connection:
        hosts = list(connection.scalars(sa.select(compute_host.c.name)))
        guests = list(connection.scalars(sa.select(i.uuid).where(i.deleted == 0, i.host.is_not(None))))
    return Measured(_peaks(samples, HOST, hosts), _peaks(samples, GUEST, guests))


def _peaks(samples: Samples, kind: str, names: t.Iterable[str]) -> dict[str, Peak]:
    return {name: peak for name in names if (peak := _peak(samples, kind, name)) is not None}


def plan(
    connection: sa.Connection,
    measured: Measured,
    options: Options,
    rules: balance.Rules,
    cooldown: int,
    limit_to: t.Collection[str] | None = None,
) -> Plan:
    """Decide which moves would even out the hosts. A server that moved within the last `cooldown` seconds rests."""
    states, _versions = host_states(
        connection, clock.seconds(connection), limit_to, EVER, with_instances=True, with_claims=True
    )
    everybody = instances_by(connection, hosts=[state.name for state in states])
    instances = {instance["uuid"]: instance for instance in everybody if instance["adopted"] is None}
    resting = _resting(connection, cooldown)
    bound = _bound(connection)
    groups, placed = groups_of(connection, list(instances.values())), []
    for uuid, instance in instances.items():
        movable = instance["vm_state"] == "active" and instance["task_state"] is None
        # a host that was asked for at its launch holds for no move, as in Nova
        request = request_of({**unpinned(instance), "attempts": []}, groups.get(uuid))
        fixed = not movable or uuid in bound or uuid in resting
        placed.append(Placed(request, instance["host"] or "", measured.guests.get(uuid), _sent(request), fixed))
    moves = balance.moves(_natural(states), placed, options, rules, measured.hosts)
    before = balance.score(states, placed)
    after = moves[-1].after if moves else before
    return Plan(moves, before, after, instances, len(resting & instances.keys()))


def _natural(states: t.Iterable[HostState]) -> list[HostState]:
    return sorted(states, key=lambda state: natural(state.name))


def _bound(connection: sa.Connection) -> set[str]:
    """The servers that cannot move, for what their host has alone of them, or that their owner locked."""
    snapshots = sa.select(server_snapshot.c.instance_uuid)
    locks = sa.select(instance_table.c.uuid).where(instance_table.c.locked, instance_table.c.deleted == 0)
    return {*local_volumes(connection), *connection.scalars(snapshots), *connection.scalars(locks)}


def _resting(connection: sa.Connection, cooldown: int) -> set[str]:
    query = sa.select(migration.c.instance_uuid).where(migration.c.created_at > clock.before(connection, cooldown))
    return set(connection.scalars(query))


def _sent(request: Request) -> int:
    """MiB that a live migration sends at most: memory, and disks as large as they may become."""
    return request.memory_mb + request.disk_gb * 1024


def _peak(samples: Samples, kind: str, name: str) -> Peak | None:
    """Return the peak of a host or guest; None where nothing was measured."""
    if not samples.knows(kind, name):
        return None
    whole: Record = joined(samples.history(kind, name, WINDOW, time.time()), 0)
    cores, memory = whole.peak["cpu"], whole.peak["memory"]
    if cores is None or memory is None:
        return None
    return Peak(cores, memory / _MIB, max(whole.mean[pressure] or 0.0 for pressure in PRESSURES))
