# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `orphans`: what of novalite's is on a host although no instance that is placed there owns it.

It arises when a host breaks in the middle of a build and cannot undo it, and the instance goes elsewhere. Only what
the ledger knows is taken for such: guests of another ledger are none of this one's business. And the ledger's word is
not enough (_drift/proofs.py): a guest or disk that stays keeps all that it stands on.
"""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._drift import proofs
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Network
from ..._model.look import Look
from ..._network.namespaces import namespace_of
from ..._network.ownership import Mark, Owner
from ..._plan.networks import bridge, routed, router
from ..._rules.records import with_diff
from ..compute import migrations
from ..db.ledger_identity import ledger_id
from ..db.tables import allocation, compute_host, fixed_ip, instance, network, vif
from ..db.tables_addresses import host_owner
from ..db.tables_migrations import migration
from ..db.tables_networking import MOST_RANGES
from ..drift.words import Elsewhere, words
from ..network.addresses import release_host_address
from ..volumes import replicas

Held = t.TypeVar("Held")


def orphans(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Compare `params["found"]` (see host_scan.scan) on `params["host"]` with the ledger, read after it was found.

    `params["elsewhere"]` is what this run saw on other hosts (drift/words.py).

    Returns `plan`, as the role `reclaim` takes it, `left` (whether there is anything in it), `proofs` (by UUID, the
    proof and the reason by which something is in the plan), `contested`, what stays though the ledger does not have it
    here, `unknown`, the domains that carry novalite's mark but that this ledger never heard of, and
    `unrecorded_copies`, the servers (UUIDs) whose disks were copied here, which this ledger does not know. The host's
    own addresses in networks that it serves no more are released. Of an instance whose move waits to be confirmed, its
    source keeps the disks.
    """
    look: Look = params["found"]
    host = params["host"]
    held = _placed(connection, host)
    moved = _moved_away(connection, host)
    here = {uuid: number for uuid, number in held.items() if uuid not in moved}
    sights = proofs.sights_of(look)
    known = words(connection, sights)
    # one that was adopted on another host was brought here by whoever it belongs to
    adopted: set[str] = _all(connection, instance.c.uuid, instance.c.adopted.is_not(None))
    elsewhere = Elsewhere(connection, host, params)
    verdicts: dict[str, proofs.Verdict] = {}
    for uuid, sight in sights.items():
        if uuid in known and uuid not in here and uuid not in adopted:
            is_kept = uuid in held  # the disk, for a revert: no matter what is there
            seen = dataclasses.replace(sight, disk=False) if is_kept else sight
            if seen.defined or not is_kept:
                verdicts[uuid] = proofs.of_leftover(known[uuid], host, seen, elsewhere.of(uuid))
    going = {uuid for uuid, verdict in verdicts.items() if verdict.proof is not None}
    crashed = {domain["uuid"] for domain in look["domains"] if domain.get("state") == "crashed"}
    unknown = [domain for domain in look["domains"] if domain["uuid"] not in known]
    staying = [domain for domain in look["domains"] if domain["uuid"] not in going]
    # what a guest that stays stands on, whoever made that guest
    names = {server["name"] for server in staying} | {f"instance-{number:08x}" for number in here.values()}
    macs = {mac for server in staying for mac in server["macs"]}
    macs |= _all(connection, vif.c.mac, vif.c.instance_uuid.in_(sorted(here)))
    ids = {chain["id"] for chain in look["chains"]} | {int(name[-8:], 16) for name in look["filters"]}
    numbered = sa.select(instance.c.id, instance.c.uuid).where(instance.c.id.in_(sorted(ids)))
    numbers = {row.id: row.uuid for row in connection.execute(numbered)}
    serving = {*here, *(server["uuid"] for server in staying if server["uuid"] in known)}
    served: set[int] = _all(connection, vif.c.network_id, vif.c.instance_uuid.in_(sorted(serving)))
    mark = Mark(ledger_id(connection))
    bridges = _unused_bridges(connection, look, served, mark, bool(unknown))
    dhcp_owners = look.get("dhcp_owners", {})
    copies = _unrecorded_copies(connection, host, set(look.get("copies", ())))
    plan = {
        "ledger": mark.ledger,
        "uuids": sorted(uuid for uuid in going if sights[uuid].defined),
        "domains": [
            {"uuid": domain["uuid"], "name": domain["name"]} for domain in look["domains"] if domain["uuid"] in going
        ],
        # a guest may come back to where its leftovers are, after this look; of a crashed one QEMU may be there still
        "only_off": sorted(uuid for uuid in going - crashed if not sights[uuid].runs),
        "firewall_instances": [
            chain
            for chain in look["chains"]
            if chain["id"] in numbers
            and chain.get("uuid") in (None, numbers[chain["id"]])
            and f"instance-{chain['id']:08x}" not in names
        ],
        "security_groups": [],
        "filters": [
            {"name": name, "uuid": numbers[int(name[-8:], 16)]}
            for name in look["filters"]
            if int(name[-8:], 16) in numbers
            and name.partition("nova-instance-")[2] not in names
            and not (  # a host says so since this was written down
                (made := look.get("filter_uuids", {}).get(name))
                and mark.is_others(made, name, numbers[int(name[-8:], 16)])
            )
        ],
        "dhcp_networks": [
            {**record, "hosts": gone}
            for record in look["dhcp_networks"]
            if mark.owner(dhcp_owners.get(record["bridge"])) is not Owner.OTHER_LEDGER
            and (gone := [entry for entry in record["hosts"] if entry["mac"] not in macs])
        ],
        "last_bridges": [bridge(row, host, None, {}) for row in bridges],
        "last_routers": [router(row, None, []) for row in bridges if routed(row, ())],
        "staying_routers": [],
        "last_metadata_networks": [
            {"bridge": row["bridge"], "namespace": namespace_of(row), "network": row["uuid"]} for row in bridges
        ],
        "disks": [
            {"uuid": disk, "to_bin": verdicts[disk].proof is not proofs.Proof.DELETED}
            for disk in look["disks"]
            if disk in going and disk not in held
        ],
        "copies": [{"uuid": uuid} for uuid, is_deleted in copies.items() if is_deleted],
        "volumes_gone": [],  # a volume is nobody's rest: it outlives its servers
    }
    released = [] if unknown else _release(connection, host, served)
    result: JsonObject = {
        "changed": bool(released),
        "unrecorded_copies": [uuid for uuid, is_deleted in copies.items() if not is_deleted],
        "plan": plan,
        "left": any(value for key, value in plan.items() if key != "ledger"),
        "proofs": {
            uuid: {"proof": verdict.proof.value, "why": verdict.why}
            for uuid, verdict in verdicts.items()
            if verdict.proof is not None
        },
        "contested": [
            {"uuid": uuid, "name": known[uuid].name, "why": verdict.why, "ask": verdict.ask}
            for uuid, verdict in verdicts.items()
            if verdict.proof is None
        ],
        "unknown": [{"uuid": domain["uuid"], "name": domain["name"]} for domain in unknown],
    }
    return with_diff(result, {"host_addresses": released}, {"host_addresses": []})


def _unrecorded_copies(connection: sa.Connection, host: str, there: set[str]) -> dict[str, bool]:
    """UUID -> whether it is deleted, of the servers of this ledger of whose copies on the host it knows nothing: it is
    older than they are. A server that is deleted does not come back; another one may need its copy."""
    strange = sorted(there - replicas.belonging(connection, host, there))
    c = instance.c
    rows = connection.execute(sa.select(c.uuid, c.deleted).where(c.uuid.in_(strange)).order_by(c.uuid))
    return {row.uuid: row.deleted != 0 for row in rows}


def _placed(connection: sa.Connection, host: str) -> dict[str, int]:
    """UUID -> number of every instance that is on the host, or has a claim there and is on its way."""
    claimed = (
        sa.select(allocation.c.instance_uuid)
        .join(compute_host, compute_host.c.id == allocation.c.compute_host_id)
        .where(compute_host.c.name == host)
    )
    query = sa.select(instance.c.uuid, instance.c.id).where(
        instance.c.deleted == 0, sa.or_(instance.c.host == host, instance.c.uuid.in_(claimed))
    )
    return {row.uuid: row.id for row in connection.execute(query)}


def _moved_away(connection: sa.Connection, host: str) -> set[str]:
    """Return the instances that left the host by a move which awaits their owners' word: it keeps only their disks."""
    query = (
        sa.select(instance.c.uuid)
        .join(migration, migration.c.instance_uuid == instance.c.uuid)
        .where(
            migration.c.status.in_(migrations.WAITING),
            migration.c.source_host == host,
            instance.c.deleted == 0,
            instance.c.host != host,
        )
    )
    return set(connection.execute(query).scalars())


def _all(connection: sa.Connection, column: sa.Column[Held], *conditions: sa.ColumnElement[bool]) -> set[Held]:
    """The values that the column has, where all `conditions` hold."""
    return set(connection.execute(sa.select(column).where(*conditions)).scalars())


def _unused_bridges(connection: sa.Connection, look: Look, served: set[int], mark: Mark, others: bool) -> list[Network]:
    """List this ledger's networks whose bridges no instance here uses; none where guests of another ledger are.
    Somebody else's bridge that such a network uses stays, unless this ledger has added something to it."""
    if others:
        return []
    names = look["bridges"]
    rows = connection.execute(sa.select(network).where(network.c.bridge.in_(names)).order_by(network.c.bridge))
    owners = look.get("bridge_owners", {})

    def is_ours(row: sa.RowMapping) -> bool:
        marks = owners.get(row["bridge"], [])
        # made before there were marks; the module looks closer
        return mark.text in marks or (not marks and (row["vni"] is not None or bool(row["isolated"])))

    return [t.cast(Network, dict(row)) for row in rows.mappings() if row["id"] not in served and is_ours(row)]


def _release(connection: sa.Connection, host: str, served: set[int]) -> list[str]:
    """Give back the host's own addresses in networks where no instance needs them any more, nor one on its way here."""
    owners = [host_owner(host, position) for position in range(MOST_RANGES)]
    query = (
        sa.select(network.c.id, network.c.name)
        .join(fixed_ip, fixed_ip.c.network_id == network.c.id)
        .where(fixed_ip.c.owner.in_(owners), network.c.id.not_in(served))
        .distinct()
        .order_by(network.c.id)
    )
    return [row.name for row in connection.execute(query).all() if release_host_address(connection, row.id, host)]
