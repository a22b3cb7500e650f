# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Claims: what an instance takes from its compute host, decided by a guarded write, never by a read before.

The rule is Placement's (nova/placement `resource_provider.py`): `used + amount <= (total - reserved) * ratio`, checked
inside the UPDATE that adds the amount, together with the generation that the decision was made on. What guests take
that are not in the ledger (`foreign.py`) is used, too.
"""

from __future__ import annotations

import collections
import time
import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError
from ..._scheduling.explain import Decision
from ..._scheduling.options import Options
from ..._scheduling.rows import Request, request_of
from ..._scheduling.select import EXPLAINED_HOSTS, MAX_ATTEMPTS, select
from ..db.tables import allocation, compute_host, instance
from ..queries.groups import groups_of, lock_groups, violated
from .compute_hosts import SERVICE_DOWN_TIME, host_states, record
from .placements import Instance, Outcome, StaleChoiceError, result_of, write_outcome

DEFAULT_CHOICE = "filter_scheduler"
CLAIM_ATTEMPTS = 10  # as Placement: how often a choice is made again when a host changed meanwhile


def scheduler(connection: sa.Connection, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Operation of the module `scheduler`: a host and a claim for each instance, with the reasons.

    An instance that has a claim keeps it. Returns `instances` (those with a host, in the order given), `unplaced`
    (instance and message), `explanations`, `msg`, `changed`. To find no host is a result, not an error: it has to be
    recorded. Raises ConflictError when other runs changed the hosts under ten choices in a row.
    """
    instances = params["instances"]
    now = int(time.time())
    options = Options.of(params.get("options"))
    lock_groups(connection, instances)
    if params.get("compute_hosts"):
        record(connection, params["compute_hosts"], now)
    for attempt in range(CLAIM_ATTEMPTS):
        try:
            with connection.begin_nested():
                outcome = _place(connection, instances, params, options, now, lock=attempt > 0)
            return result_of(instances, outcome)
        except StaleChoiceError:
            continue
    raise ConflictError(
        f"compute hosts were changed by other runs during {CLAIM_ATTEMPTS} choices in a row: run again"
    )


def _place(
    connection: sa.Connection,
    instances: t.Sequence[Instance],
    params: t.Mapping[str, t.Any],
    options: Options,
    now: int,
    lock: bool,
) -> Outcome:
    """Choose and claim for all. Raises StaleChoiceError when something changed meanwhile: undo and repeat."""
    max_attempts = params.get("max_attempts") or MAX_ATTEMPTS
    outcome = Outcome(hosts=_claims(connection, instances), explain_all=bool(params.get("explain_all")))
    outcome.kept = set(outcome.hosts)
    rows = _rows(connection, instances)
    ask = []
    for one in instances:
        uuid, attempts = one["uuid"], one.get("attempts") or []
        if uuid in outcome.kept:
            continue
        if (state := _not_to_be_built(rows.get(uuid))) is not None:
            outcome.unplaced[uuid] = f"'{one['name']}' is {state}: another run changed it meanwhile"
        elif len(attempts) >= max_attempts:
            tried = ", ".join(attempts)
            outcome.unplaced[uuid] = f"'{one['name']}' could not be built in {len(attempts)} attempts (on {tried})"
            outcome.recorded.add(uuid)
        else:
            ask.append(one)

    if ask:
        down_time = params.get("service_down_time")
        hosts, versions = host_states(
            connection,
            now,
            params.get("limit_to"),
            SERVICE_DOWN_TIME if down_time is None else down_time,
            lock,
            with_instances=asks_for_instances(ask, options),
            seen=params.get("seen_hosts") or (),
        )
        groups = groups_of(connection, ask)
        placed = _decide(
            outcome,
            [request_of(one, groups.get(one["uuid"])) for one in ask],
            _together(instances, params),
            lambda requests: select(
                hosts,
                requests,
                params.get("choice") or DEFAULT_CHOICE,
                max_attempts=max_attempts,
                options=options,
                explained_hosts=len(hosts) if outcome.explain_all else EXPLAINED_HOSTS,
            ),
        )
        _claim(connection, placed, versions, now)
        in_groups = {
            one.request.uuid: (one.request.group, one.host) for one in placed if one.request.group and one.host
        }
        if violated(connection, in_groups):
            raise StaleChoiceError
        outcome.hosts.update({one.request.uuid: one.host for one in placed if one.host is not None})
        outcome.recorded.update(uuid for uuid in outcome.decisions if uuid in outcome.unplaced)
    write_outcome(connection, outcome, rows, now)
    return outcome


def _together(instances: t.Sequence[Instance], params: t.Mapping[str, t.Any]) -> dict[str, str]:
    """Which instances are launched together or not at all: UUID -> a name that they have in common."""
    apart = not params.get("all_or_nothing", True)
    named = params.get("reservations") or {}
    return {one["uuid"]: one["uuid"] if apart else str(named.get(one["uuid"], "")) for one in instances}


def _decide(
    outcome: Outcome,
    requests: list[Request],
    together: t.Mapping[str, str],
    choose: t.Callable[[list[Request]], list[Decision]],
) -> list[Decision]:
    """Decisions for those that are to be launched; the others are in `outcome.unplaced`.

    What is given up, because another of its request found no host, must not take the room of those that come after:
    for them it is chosen again, without it.
    """
    lost = {together[uuid] for uuid in outcome.recorded}
    while True:
        decisions = {one.request.uuid: one for one in choose(requests)}
        outcome.decisions.update(decisions)
        missing = {uuid for uuid, one in decisions.items() if one.host is None}
        without = lost | {together[uuid] for uuid in missing}
        wasted = next((together[uuid] for uuid in decisions if uuid not in missing and together[uuid] in without), None)
        if wasted is None:
            break
        for uuid, one in decisions.items():
            if together[uuid] == wasted:
                outcome.unplaced[uuid] = (
                    one.message
                    if uuid in missing
                    else f"'{one.request.name}' was not launched, for another of its request found no host: "
                    "ask for fewer, or set all_or_nothing=false"
                )
        requests = [one for one in requests if together[one.uuid] != wasted]
    outcome.unplaced.update({uuid: decisions[uuid].message for uuid in missing})
    return [one for one in decisions.values() if one.host is not None]


def asks_for_instances(instances: t.Iterable[Instance], options: Options) -> bool:
    """Whether a filter or weigher will look at what stands on each host, one by one."""
    if options.plugin_paths:
        return True
    return any((one.get("request") or {}).keys() & {"same_host", "different_host"} for one in instances)


def _claims(connection: sa.Connection, instances: t.Sequence[Instance]) -> dict[str, str]:
    """The host that each instance has a claim on. One on a host that failed to build it is given back first."""
    query = (
        sa.select(allocation.c.instance_uuid, compute_host.c.name)
        .join(compute_host, compute_host.c.id == allocation.c.compute_host_id)
        .where(allocation.c.instance_uuid.in_([one["uuid"] for one in instances]))
    )
    found = {row.instance_uuid: row.name for row in connection.execute(query)}
    stale = [one["uuid"] for one in instances if found.get(one["uuid"]) in (one.get("attempts") or [])]
    release_claims(connection, stale)
    return {uuid: name for uuid, name in found.items() if uuid not in stale}


def _rows(connection: sa.Connection, instances: t.Sequence[Instance]) -> dict[str, t.Any]:
    """The states of the instances that are in the ledger. In check mode a new one is not."""
    query = sa.select(instance.c.uuid, instance.c.vm_state, instance.c.task_state, instance.c.deleted).where(
        instance.c.uuid.in_([one["uuid"] for one in instances])
    )
    return {row.uuid: row for row in connection.execute(query)}


def _not_to_be_built(row: t.Any) -> str | None:
    if row is None:
        return None
    if row.deleted or row.task_state == "deleting":
        return "deleted" if row.deleted else "being deleted"
    return None if row.vm_state in ("building", "error") else str(row.vm_state)


def _claim(
    connection: sa.Connection, placed: t.Sequence[Decision], versions: dict[str, tuple[int, int]], now: int
) -> None:
    """Take what `placed` need: one guarded write for each host. Raises StaleChoiceError when one is refused."""
    if not placed:
        return
    take_room(connection, placed, versions)
    connection.execute(
        sa.insert(allocation),
        [
            {
                "instance_uuid": one.request.uuid,
                "compute_host_id": versions[one.host or ""][0],
                "vcpus": one.request.vcpus,
                "memory_mb": one.request.memory_mb,
                "disk_gb": one.request.disk_gb,
                "created_at": now,
            }
            for one in placed
        ],
    )


def take_room(connection: sa.Connection, placed: t.Sequence[Decision], versions: dict[str, tuple[int, int]]) -> None:
    """Add what `placed` ask for to what their hosts have given away. Raises StaleChoiceError when one is refused."""
    sums: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0])
    for one in placed:
        of_host = sums[one.host or ""]
        of_host[0] += one.request.vcpus
        of_host[1] += one.request.memory_mb
        of_host[2] += one.request.disk_gb
    c = compute_host.c
    vcpus: sa.BindParameter[int] = sa.bindparam("add_vcpus")
    memory_mb: sa.BindParameter[int] = sa.bindparam("add_memory_mb")
    disk_gb: sa.BindParameter[int] = sa.bindparam("add_disk_gb")
    claimed = connection.execute(
        sa.update(compute_host)
        .where(
            c.id == sa.bindparam("host_id"),
            c.generation == sa.bindparam("seen_generation"),
            c.vcpus_used + c.vcpus_others + vcpus <= (c.vcpus - c.reserved_vcpus) * c.cpu_ratio,
            c.memory_mb_used + c.memory_mb_others + memory_mb <= (c.memory_mb - c.reserved_memory_mb) * c.ram_ratio,
            # as in Placement, what is not asked for is not checked: the host may have promised too much of it before
            sa.or_(
                disk_gb == 0,
                c.disk_gb_used + c.disk_gb_others + disk_gb <= (c.disk_gb - c.reserved_disk_gb) * c.disk_ratio,
            ),
        )
        .values(
            vcpus_used=c.vcpus_used + vcpus,
            memory_mb_used=c.memory_mb_used + memory_mb,
            disk_gb_used=c.disk_gb_used + disk_gb,
            generation=c.generation + 1,
        ),
        # in the order of the ids, as every writer of these rows: two of them cannot lock each other out
        sorted(
            (
                {
                    "host_id": versions[host][0],
                    "seen_generation": versions[host][1],
                    "add_vcpus": of_host[0],
                    "add_memory_mb": of_host[1],
                    "add_disk_gb": of_host[2],
                }
                for host, of_host in sums.items()
            ),
            key=lambda row: row["host_id"],
        ),
    )
    if claimed.rowcount != len(sums):
        raise StaleChoiceError


def release_claims(connection: sa.Connection, uuids: t.Iterable[str], hosts: t.Collection[str] | None = None) -> int:
    """Give back what these instances claimed, on every host or on these, and return how many claims there were.

    The sums are taken from the rows that this DELETE returned: of two callers only one gets a row, so nothing is
    given back twice. Instances without a claim are no error.
    """
    wanted = sorted(set(uuids))
    if not wanted:
        return 0
    columns = (allocation.c.compute_host_id, allocation.c.vcpus, allocation.c.memory_mb, allocation.c.disk_gb)
    of_these: sa.ColumnElement[bool] = allocation.c.instance_uuid.in_(wanted)
    if hosts is not None:
        ids = sa.select(compute_host.c.id).where(compute_host.c.name.in_(sorted(hosts)))
        of_these = sa.and_(of_these, allocation.c.compute_host_id.in_(ids))
    freed = connection.execute(sa.delete(allocation).where(of_these).returning(*columns)).all()
    sums: dict[int, list[int]] = collections.defaultdict(lambda: [0, 0, 0])
    for host_id, vcpus, memory_mb, disk_gb in freed:
        of_host = sums[host_id]
        of_host[0] += vcpus
        of_host[1] += memory_mb
        of_host[2] += disk_gb
    if sums:
        connection.execute(
            sa.update(compute_host)
            .where(compute_host.c.id == sa.bindparam("host_id"))
            .values(
                vcpus_used=compute_host.c.vcpus_used - sa.bindparam("vcpus_freed"),
                memory_mb_used=compute_host.c.memory_mb_used - sa.bindparam("memory_mb_freed"),
                disk_gb_used=compute_host.c.disk_gb_used - sa.bindparam("disk_gb_freed"),
                generation=compute_host.c.generation + 1,
            ),
            # in the order of the ids, as every writer of these rows: two of them cannot lock each other out
            [
                {"host_id": host_id, "vcpus_freed": vcpus, "memory_mb_freed": memory_mb, "disk_gb_freed": disk_gb}
                for host_id, (vcpus, memory_mb, disk_gb) in sorted(sums.items())
            ],
        )
    return len(freed)
