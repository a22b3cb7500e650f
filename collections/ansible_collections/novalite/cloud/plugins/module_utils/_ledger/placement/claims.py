# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Claims: what an instance takes from its compute host, decided by a guarded write, never by a read before.

The rule is Placement's (nova/placement `resource_provider.py`): `used + amount <= (total - reserved) * ratio`, checked
inside the UPDATE that adds the amount, together with the generation that the decision was made on. What guests take
that are not in the ledger (`foreign.py`) is used, too.
"""

from __future__ import annotations

import collections
import operator
import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError
from ..._model.numa import Claim, recorded_numa_of
from ..._model.pci import recorded_asked_of
from ..._scheduling.explain import Decision
from ..._scheduling.options import Options
from ..._scheduling.rows import AMOUNTS
from ..db.tables import allocation, compute_host
from .placements import Instance, StaleChoiceError

DEFAULT_CHOICE = "filter_scheduler"
CLAIM_ATTEMPTS = 10  # as Placement: how often a choice is made again when a host changed meanwhile
_Chosen = t.TypeVar("_Chosen")


def choose_and_claim(connection: sa.Connection, choose: t.Callable[[bool], _Chosen]) -> _Chosen:
    """Return what `choose` does: it is undone and repeated while it raises StaleChoiceError, and told whether it is
    repeated, so that it locks what it looks at. Raises ConflictError when other runs changed the hosts under ten
    choices in a row."""
    for attempt in range(CLAIM_ATTEMPTS):
        try:
            with connection.begin_nested():
                return choose(attempt > 0)
        except StaleChoiceError:
            continue
    raise ConflictError(f"compute hosts were changed by other runs during {CLAIM_ATTEMPTS} choices in a row: run again")


def asks_for_instances(instances: t.Iterable[Instance], options: Options) -> bool:
    """Tell whether a filter or weigher will look at the instances on each host, one by one."""
    if options.plugin_paths:
        return True
    return any((instance.get("request") or {}).keys() & {"same_host", "different_host"} for instance in instances)


def asks_for_own(instances: t.Iterable[Instance]) -> bool:
    """Tell whether one of them asks for NUMA nodes, CPUs, pages or devices of its own."""
    return any(
        of(instance["flavor"], instance["image"]) is not None
        for instance in instances
        for of in (recorded_numa_of, recorded_asked_of)
    )


def own_claims(
    connection: sa.Connection, uuids: t.Collection[str], hosts: t.Collection[str]
) -> dict[tuple[str, str], Claim]:
    """The NUMA nodes, CPUs, pages and devices that these instances hold on these hosts, by UUID and host."""
    held = (
        sa.select(allocation.c.instance_uuid, compute_host.c.name, allocation.c.numa)
        .join(compute_host, compute_host.c.id == allocation.c.compute_host_id)
        .where(allocation.c.instance_uuid.in_(uuids), compute_host.c.name.in_(hosts), allocation.c.numa.is_not(None))
    )
    return {(uuid, host): Claim.of(row) for uuid, host, row in connection.execute(held)}


def take_room(
    connection: sa.Connection, placed: t.Sequence[Decision], versions: dict[str, tuple[int, int]], grows: bool = False
) -> None:
    """Add what `placed` ask for to what their hosts have given away; `grows`: to a claim that is there. Raises
    StaleChoiceError when one is refused."""
    sums: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for decision in placed:
        amounts = {name: getattr(decision.request, name) for name in AMOUNTS}
        sums[decision.host or ""].update(amounts, claims=0 if grows else 1)
    c = compute_host.c
    more: dict[str, sa.BindParameter[int]] = {name: sa.bindparam(f"add_{name}") for name in AMOUNTS}

    def fits(name: str, ratio: str) -> sa.ColumnElement[bool]:
        used = c[f"{name}_used"] + c[f"{name}_others"] + more[name]
        return used <= (c[name] - c[f"reserved_{name}"]) * c[ratio]

    claimed = connection.execute(
        sa.update(compute_host)
        .where(
            c.id == sa.bindparam("host_id"),
            c.generation == sa.bindparam("seen_generation"),
            fits("vcpus", "cpu_ratio"),
            fits("memory_mb", "ram_ratio"),
            # as in Placement, what is not asked for is not checked: the host may have promised too much of it before
            sa.or_(more["disk_gb"] == 0, fits("disk_gb", "disk_ratio")),
        )
        .values(
            {f"{name}_used": c[f"{name}_used"] + more[name] for name in AMOUNTS}
            | {"num_instances": c.num_instances + sa.bindparam("add_claims"), "generation": c.generation + 1}
        ),
        # in the order of the ids, as every writer of these rows: two of them cannot lock each other out
        [
            {
                **{"host_id": host_id, "seen_generation": generation, "add_claims": sums[host]["claims"]},
                **{f"add_{name}": sums[host][name] for name in AMOUNTS},
            }
            for (host_id, generation), host in sorted((versions[host], host) for host in sums)
        ],
    )
    if claimed.rowcount != len(sums):
        raise StaleChoiceError


def claim_what_it_has(
    connection: sa.Connection, uuid: str, host: str, amounts: t.Mapping[str, int], now: int, numa: Claim | None = None
) -> None:
    """Write down what a guest that is on the host takes there. Without a guard: it has it."""
    c = compute_host.c
    sums = {f"{name}_used": c[f"{name}_used"] + amount for name, amount in amounts.items()}
    counts = {"num_instances": c.num_instances + 1, "generation": c.generation + 1}
    claiming = sa.update(compute_host).where(c.name == host).values(**sums, **counts)
    host_id = connection.execute(claiming.returning(c.id)).scalar_one()
    held = numa and numa.row
    row = {"instance_uuid": uuid, "compute_host_id": host_id, "created_at": now, "numa": held, **amounts}
    connection.execute(sa.insert(allocation).values(**row))


def release_claims(connection: sa.Connection, uuids: t.Iterable[str], hosts: t.Collection[str] | None = None) -> int:
    """Give back what these instances claimed, on every host or on these, and return how many claims there were.

    The sums are taken from the rows that this DELETE returned: of two callers only one gets a row, so nothing is
    given back twice. Instances without a claim are no error.
    """
    distinct_uuids = sorted(set(uuids))
    if not distinct_uuids:
        return 0
    of_these: sa.ColumnElement[bool] = allocation.c.instance_uuid.in_(distinct_uuids)
    if hosts is not None:
        ids = sa.select(compute_host.c.id).where(compute_host.c.name.in_(sorted(hosts)))
        of_these = sa.and_(of_these, allocation.c.compute_host_id.in_(ids))
    columns = (allocation.c.compute_host_id, *(allocation.c[name] for name in AMOUNTS))
    freed = connection.execute(sa.delete(allocation).where(of_these).returning(*columns)).all()
    sums: dict[int, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for host_id, *amounts in freed:
        sums[host_id].update(dict(zip(AMOUNTS, amounts)), claims=1)
    if sums:
        c = compute_host.c
        less = {f"{name}_used": c[f"{name}_used"] - sa.bindparam(f"{name}_freed") for name in AMOUNTS}
        connection.execute(
            sa.update(compute_host)
            .where(c.id == sa.bindparam("host_id"))
            .values(
                {
                    **less,
                    "num_instances": c.num_instances - sa.bindparam("claims_freed"),
                    "generation": c.generation + 1,
                }
            ),
            # in the order of the ids, as every writer of these rows: two of them cannot lock each other out
            [
                {"host_id": host_id, **{f"{name}_freed": number for name, number in of_host.items()}}
                for host_id, of_host in sorted(sums.items(), key=operator.itemgetter(0))
            ],
        )
    return len(freed)
