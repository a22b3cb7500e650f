# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `server_adopt`: a guest that somebody else made becomes an instance of the ledger, or stops being one.

The guest is what counts: the record says what it is, and nothing is asked of it. Its claim is what it has already, so
no host is too full for it. What novalite cannot do with disks, definitions and devices that it has not made is refused
(adopted.py), a deletion as well: whoever wants the guest gone releases it first.
"""

from __future__ import annotations

import dataclasses
import typing as t
from xml.etree import ElementTree

import sqlalchemy as sa

from ..._errors import ConflictError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Adopted, AdoptedDisk, Flavor, Instance
from ..._model.rows import InstanceRow
from ..._rules import server_requests
from ..._rules.volume_mappings import NO_IMAGE
from ..adoption.adopted_nics import FoundNic, OwnNic, chosen_nics, give_back, take
from ..compute.power_states import GUEST_STATES
from ..db import clock
from ..db.ledger_identity import ledger_id
from ..db.tables import flavor, instance
from ..instances import actions
from ..network import dns_names
from ..placement.claims import claim_what_it_has, release_claims
from ..queries import lookups
from ..queries.compute.instance_rows import instance_rows
from ..queries.compute.usage import usage
from ..queries.compute.views import flavor_of, instances_by
from ..queries.identity import quota_records

FRAGMENTS = ("ledger.project",)
ARGUMENT_SPEC = {
    # `adopted` records it, under the domain's name unless `name` is another. `released` forgets it and gives back its
    # claim, addresses and interfaces.
    "state": {"type": "str", "choices": ["adopted", "released"], "default": "adopted"},
    "name": {"type": "str"},
    # Name of the compute host that the domain is on.
    "host": {"type": "str"},
    # What `domain` of the step `domain_adopt` is.
    "domain": {"type": "dict"},
    # Name of a flavor with the domain's vCPUs and memory. Left out, a public flavor that fits exactly, else one of the
    # server's own, such as `adopted.2c4096m20g`, which is in no catalogue.
    "flavor": {"type": "str"},
    # Name of the network that its interface is on. Left out, the networks of this project whose bridges its interfaces
    # are on. `none` leaves all of them out.
    "network": {"type": "str"},
    # The IPv4 address of its only interface on a network, free, or reserved by the network's operator. Left out, the
    # one that its guest's agent, libvirt's leases or the host's ARP table know, if that is one.
    "address": {"type": "str"},
}
SPEC_RULES = {"required_if": [("state", "adopted", ["host", "domain"]), ("state", "released", ["name"])]}

GIB = 1 << 30


@dataclasses.dataclass(frozen=True)
class Guest:
    """A domain as its host described it (domain_adopt's `domain`). Memory in MiB, disk in GiB."""

    uuid: str
    name: str
    state: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    disks: list[AdoptedDisk]
    nics: list[FoundNic]
    marked: bool
    adopted_by: str | None


def server_adopt(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and
    * `server`: as `server_info` has it
    * `host`, `domain`: where it is, and the UUID of its domain
    * `mark`: the mark for its domain, as XML
    * `left_out`: its interfaces that are on no network of this ledger
    * `request_id`: identifies what was recorded about this request (when something changed)

    Raises NovaliteError; nothing was written then."""
    return _release(connection, params) if params["state"] == "released" else _adopt(connection, params)


def _adopt(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    guest, host = Guest(**params["domain"]), params["host"]
    owner = lookups.project_by_name(connection, params["project"], lock=True)
    lookups.check_compute_hosts(connection, [host])
    name = server_requests.check_label(params["name"] or guest.name, "server name")
    if known := instance_rows(connection, instance.c.uuid == guest.uuid):
        return _again(connection, known[0], host, guest)
    # a mark of this ledger's own without a record: of one that was moved by hand, or that a lost ledger forgot
    if guest.marked and guest.adopted_by != ledger_id(connection):
        raise ConflictError(f"domain '{guest.name}' carries the mark of another ledger: let that one release it first")
    if guest.state not in GUEST_STATES:
        raise ConflictError(f"domain '{guest.name}' is {guest.state}: wait until it is running or off")
    chosen = chosen_nics(connection, owner, guest.name, guest.nics, params["network"], params["address"])
    size = _flavor(connection, guest, params["flavor"])
    now = clock.seconds(connection)
    vm_state, power_state = GUEST_STATES[guest.state]
    adopted: Adopted = {"domain": guest.name, "at": now, "disks": guest.disks, "reserved": []}
    row = {
        "uuid": guest.uuid,
        "project_id": owner["id"],
        "name": name,
        "hostname": name.lower(),
        "flavor": size,
        "image": dict(NO_IMAGE),
        "metadata": {},
        "host": host,
        "vm_state": vm_state,
        "power_state": power_state,
        "attempts": [],
        "created_at": now,
        "updated_at": now,
        "launched_at": now,
        "adopted": adopted,
    }
    requested_amounts = {"instances": 1, "cores": guest.vcpus, "ram": guest.memory_mb, "fixed_ips": len(chosen)}
    limits = quota_records.quota_limits(connection, owner["id"])
    before = usage(connection, owner["id"], server_requests.limited(requested_amounts, limits))
    try:
        connection.execute(sa.insert(instance).values(**row))
    except sa.exc.IntegrityError as error:
        raise ConflictError(f"project '{owner['name']}' has a server '{name}' already: give another name") from error
    reserved = take(connection, guest.uuid, chosen)
    dns_names.claim(connection, [guest.uuid])
    if reserved:
        changed = {**adopted, "reserved": reserved}
        connection.execute(sa.update(instance).where(instance.c.uuid == guest.uuid).values(adopted=changed))
    server_requests.check_quota(requested_amounts, before, limits)
    amounts = {"vcpus": guest.vcpus, "memory_mb": guest.memory_mb, "disk_gb": guest.disk_gb}
    claim_what_it_has(connection, guest.uuid, host, amounts, now)
    request_id = actions.new_request_id()
    actions.start(connection, "adopt", {guest.uuid: {}}, request_id, now, project_id=owner["id"])
    actions.finish(connection, "adopt", [(guest.uuid, host, None)], now=now)
    (made,) = instances_by(connection, uuids=[guest.uuid])
    return {
        **_result(connection, made, changed=True),
        "left_out": _left_out(guest, chosen),
        "request_id": request_id,
        "diff": {"before": {}, "after": {name: _summary(made)}},
    }


def _again(connection: sa.Connection, row: InstanceRow, host: str, guest: Guest) -> JsonObject:
    if row.deleted:
        raise ConflictError(f"domain '{guest.name}' was server '{row.name}' and is to be gone: run reconcile.yml")
    if row.adopted is None:
        raise ConflictError(f"domain '{guest.name}' is server '{row.name}' of this ledger already")
    if row.host != host:
        raise ConflictError(f"domain '{guest.name}' was adopted on {row.host}: release it there first")
    (made,) = instances_by(connection, uuids=[row.uuid])
    return {**_result(connection, made, changed=False), "left_out": []}


def _flavor(connection: sa.Connection, guest: Guest, named: str | None) -> Flavor:
    """The named flavor, one that fits exactly, or one of the guest's own that is in no catalogue."""
    root_gb = -(-int(guest.disks[0]["size"]) // GIB) if guest.disks else 0
    if named is not None:
        record = lookups.flavor_by_name(connection, named)
        if (record["vcpus"], record["memory_mb"]) != (guest.vcpus, guest.memory_mb):
            raise NovaliteError(
                f"domain '{guest.name}' has {guest.vcpus} vCPUs and {guest.memory_mb} MiB, flavor '{named}' "
                f"{record['vcpus']} and {record['memory_mb']}: name one that fits, or none"
            )
        return flavor_of(record)
    c = flavor.c
    same = sa.and_(c.vcpus == guest.vcpus, c.memory_mb == guest.memory_mb, c.root_gb == root_gb, c.is_public)
    plain = sa.and_(c.ephemeral_gb == 0, c.swap_mb == 0)
    fits = connection.execute(sa.select(flavor).where(same, plain).order_by(c.name)).mappings()
    exact = next((dict(record) for record in fits if not record["extra_specs"]), None)
    if exact is not None:
        return flavor_of(exact)
    own = f"adopted.{guest.vcpus}c{guest.memory_mb}m{root_gb}g"
    return {
        "name": own,
        "vcpus": guest.vcpus,
        "memory_mb": guest.memory_mb,
        "root_gb": root_gb,
        "ephemeral_gb": 0,
        "swap_mb": 0,
        "extra_specs": {},
        "flavorid": own,
    }


def _left_out(guest: Guest, chosen: t.Sequence[OwnNic]) -> list[str]:
    taken = {own.mac for own in chosen}
    return [
        f"{nic['mac']} on {nic['bridge'] or nic['network'] or 'no bridge'}"
        for nic in guest.nics
        if nic["mac"] not in taken
    ]


def _release(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    owner = lookups.project_by_name(connection, params["project"])
    servers = instances_by(connection, names=[params["name"]], project_id=owner["id"])
    if not servers:
        mine = sa.select(instance.c.name).where(
            instance.c.project_id == owner["id"], instance.c.deleted == 0, instance.c.adopted.is_not(None)
        )
        raise lookups.unknown("adopted server", params["name"], connection.execute(mine).scalars())
    (server,) = servers
    if server["adopted"] is None:
        raise ConflictError(
            f"'{server['name']}' was made by novalite: only what was adopted is released; terminate.yml deletes it"
        )
    if server["task_state"] is not None:
        raise ConflictError(f"'{server['name']}' is in task_state {server['task_state']}: wait for that to end")
    floating = [address["address"] for nic in server["nics"] for address in nic["floating_ips"]]
    if floating:
        raise ConflictError(f"'{server['name']}' has the floating IP {floating[0]}: take it away first")
    now, request_id = clock.seconds(connection), actions.new_request_id()
    held = connection.execute(
        sa.select(instance.c.id)
        .where(instance.c.id == server["id"], instance.c.task_state.is_(None), instance.c.deleted == 0)
        .with_for_update()
    ).first()
    if held is None:
        raise ConflictError(f"'{server['name']}' was changed just now: run again")
    actions.start(connection, "release", {server["uuid"]: {}}, request_id, now, project_id=owner["id"])
    actions.finish(connection, "release", [(server["uuid"], server["host"], None)], now=now)
    give_back(connection, server["uuid"], server["adopted"]["reserved"], now)
    release_claims(connection, [server["uuid"]])
    # its interfaces go with it; no row stays by which the domain could be taken for a leftover of ours (orphans.py)
    connection.execute(sa.delete(instance).where(instance.c.id == server["id"]))
    return {
        **_result(connection, server, changed=True),
        "left_out": [],
        "request_id": request_id,
        "diff": {"before": {server["name"]: _summary(server)}, "after": {}},
    }


def _result(connection: sa.Connection, server: Instance, changed: bool) -> JsonObject:
    mark = _mark(server, ledger_id(connection))
    return {"changed": changed, "server": server, "host": server["host"], "domain": server["uuid"], "mark": mark}


def _mark(server: Instance, ledger: str) -> str:
    """Return the domain's metadata (XML) as other instances have them (domain.xml.j2), marked as adopted."""
    root = ElementTree.Element("instance")
    texts: tuple[tuple[str, str, dict[str, str]], ...] = (
        ("ledger", ledger, {}),
        ("uuid", server["uuid"], {}),
        ("name", server["name"], {}),
        ("project", server["project"]["name"], {"id": server["project"]["id"]}),
        ("flavor", server["flavor"]["name"], {}),
        ("adopted", "true", {}),
    )
    for tag, text, attributes in texts:
        ElementTree.SubElement(root, tag, attributes).text = text
    return ElementTree.tostring(root, encoding="unicode")


def _summary(server: Instance) -> JsonObject:
    disks = server["adopted"]["disks"] if server["adopted"] else []
    return {
        "uuid": server["uuid"],
        "project": server["project"]["name"],
        "domain": server["domain_name"],
        "host": server["host"],
        "flavor": server["flavor"]["name"],
        "vm_state": server["vm_state"],
        "disks": [f"{disk['dev']}: {disk['source']} ({disk['format']})" for disk in disks],
        "networks": {nic["network"]["name"]: nic["ip"] for nic in server["nics"]},
    }
