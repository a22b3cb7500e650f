# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on the copies of servers' disks on second hosts, for every door."""

from __future__ import annotations

import typing as t

from ..._errors import NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance
from ..._rules.backup_policies import seconds_of
from ..._rules.replicas import LEAST
from ..healing import watch_rows
from ..queries import lookups
from ..queries.volumes import replica_records
from ..queries.volumes.replica_records import Replica
from ..volumes import ha_disks, replicas
from ..volumes.replicas import REPLICATE
from . import servers
from .call import Call

READ, WRITE = "compute:server-replicas:read", "compute:server-replicas:write"


def listed(call: Call) -> list[Replica]:
    """List the copies of the servers of the caller's project, or of all."""
    call.check(READ)
    return replica_records.replicas_by(call.connection, project_id=call.project_id)


def of_server(call: Call, uuid: str) -> Replica | None:
    """Return the copy of this server's disks; None where none was asked for."""
    call.check(READ)
    return replicas.replica_of(call.connection, uuid)


def ensure(call: Call, server: Instance, every: str, host: str | None = None) -> bool:
    """Have a server's disks copied to a second host `every` so often, such as `5m` or `hourly`; returns whether that
    changes anything. Raises as replicas.ensure(), and NotFoundError for a host that is unknown."""
    call.check(WRITE)
    if host is not None:
        lookups.check_compute_hosts(call.connection, [host])
    return replicas.ensure(call.connection, server, seconds_of("every", every, LEAST), host)


def remove(call: Call, server: Instance) -> bool:
    """Have a server's disks copied no more; returns whether they were. Raises NovaliteError for one that was promised
    to run again when its host dies, which it could not without."""
    call.check(WRITE)
    changed = bool(replicas.remove(call.connection, [server["uuid"]]))
    ha_disks.check(call.connection, [server["uuid"]])
    return changed


def begin(call: Call, uuids: t.Sequence[str]) -> servers.Begun:
    """Begin to take copies of servers' disks. Raises as servers.begin(), and ConflictError for one without a second
    host."""
    return servers.begin(call, REPLICATE, uuids)


def note_replaced(call: Call, moves: t.Iterable[JsonMapping], details: t.Mapping[str, JsonMapping]) -> None:
    """Write into the journal of hosts why copies go to another host than the ones before, where the `details` of their
    actions say so."""
    for move in moves:
        if why := details[move["uuid"]].get("why"):
            row = watch_rows.HostRow(move["to_host"])
            watch_rows.note(call.connection, row, "gets copies", call.user_id or "replicate.yml", why)


def begin_due(call: Call) -> JsonObject:
    """Begin the copies that are due. Returns the servers (UUIDs) that are `begun`, and those that are `left`, each with
    the reason; they are due the next time again."""
    call.check(WRITE)
    taken: list[str] = []
    left: list[JsonObject] = []
    for uuid in replicas.due(call.connection):
        try:
            with call.connection.begin_nested():
                begin(call, [uuid])
            taken.append(uuid)
        except NovaliteError as error:
            replicas.failed(call.connection, uuid, str(error))
            left.append({"uuid": uuid, "reason": str(error)})
    return {"begun": taken, "left": left}
