# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of a report about what a host has of instances that are not there: what goes, by which proof, and what stays."""

from __future__ import annotations

import re

import sqlalchemy as sa

from ..._drift import proofs
from ..._drift.report import Row, removal, row
from ..._json import JsonMapping
from ..._model.look import Look, RemovedDay
from ..db.tables import instance, vif
from ..queries.compute.instance_rows import whereabouts

GIB = 1 << 30
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Owners:
    """Owners of things on hosts: UUIDs, numbers and MACs -> a word about whose they are."""

    def __init__(self, connection: sa.Connection, look: Look) -> None:
        c = instance.c
        numbers = {chain["id"] for chain in look["chains"]} | {int(name[-8:], 16) for name in look["filters"]}
        macs = {entry["mac"] for network in look["dhcp_networks"] for entry in network["hosts"]}
        uuids = (
            {domain["uuid"] for domain in look["domains"]}
            | {*look["disks"], *look.get("copies", ())}
            | {word for device in look["stale_devices"] for word in _UUID.findall(device["disk"])}
        )
        rows = connection.execute(
            sa.select(c.id, c.uuid, c.name, c.host, c.deleted, c.vm_state).where(
                sa.or_(c.uuid.in_(sorted(uuids)), c.id.in_(sorted(numbers)))
            )
        ).all()
        self.by_uuid = {record.uuid: whereabouts(record, record.name) for record in rows}
        self.by_number = {record.id: whereabouts(record, record.name) for record in rows}
        owners = connection.execute(
            sa.select(vif.c.mac, c.name, c.host, c.deleted, c.vm_state)
            .join(instance, c.uuid == vif.c.instance_uuid)
            .where(vif.c.mac.in_(sorted(macs)))
        )
        self.by_mac = {owner.mac: whereabouts(owner, owner.name) for owner in owners}

    def is_ours(self, path: str) -> bool:
        return any(word in self.by_uuid for word in _UUID.findall(path))


def left(host: str, result: JsonMapping, owners: Owners) -> list[Row]:
    """List what the role `reclaim` is to take away."""
    plan, nobody = result["plan"], "nobody's"
    rows = [
        removal(host, what, owners.by_uuid[uuid], how, **result["proofs"][uuid])
        for what, uuid, how in (
            *((f"domain {domain['name']}", domain["uuid"], "removed") for domain in plan["domains"]),
            *(
                (f"disks {disk['uuid']}", disk["uuid"], "moved to removed/" if disk["to_bin"] else "removed")
                for disk in plan["disks"]
            ),
        )
    ]
    leftovers = [
        *(
            (f"chains nova-inst-{server['id']}", owners.by_number[server["id"]])
            for server in plan["firewall_instances"]
        ),
        *(
            (f"filter {nwfilter['name']}", owners.by_number[int(nwfilter["name"][-8:], 16)])
            for nwfilter in plan["filters"]
        ),
        *(
            (f"DHCP entry {entry['mac']} on {network['bridge']}", owners.by_mac.get(entry["mac"], nobody))
            for network in plan["dhcp_networks"]
            for entry in network["hosts"]
        ),
        *((f"bridge {bridge['name']}", "no instance here is on it") for bridge in plan["last_bridges"]),
    ]
    deleted = {"proof": proofs.Proof.DELETED.value, "why": "a server that is deleted needs no copy of its disks"}
    rows += [
        removal(host, f"copy of disks {copy['uuid']}", owners.by_uuid[copy["uuid"]], "removed", **deleted)
        for copy in plan["copies"]
    ]
    unused = proofs.Proof.UNUSED.value
    why = "no guest that is here, or belongs here, uses it"
    return rows + [removal(host, what, ledger, "removed", proof=unused, why=why) for what, ledger in leftovers]


def contested(host: str, result: JsonMapping, look: Look, owners: Owners) -> list[Row]:
    """List what stays although the ledger does not have it here."""
    domains = {domain["uuid"]: domain for domain in look["domains"]}
    remedy = f"none: novalite replica set SERVER --host {host} goes on with it"
    copies = [
        row(host, f"copy of disks {uuid}", owners.by_uuid[uuid], "there, and not recorded", remedy)
        for uuid in result["unrecorded_copies"]
    ]
    return copies + [
        row(
            host,
            f"domain {domains[uuid]['name']}" if uuid in domains else f"disks {uuid}",
            owners.by_uuid[uuid],
            domains[uuid]["state"] if uuid in domains else "there",
            f"none: {left['name']} {left['why']}",
        )
        for left in result["contested"]
        for uuid in (left["uuid"],)
    ]


def emptied(host: str, day: RemovedDay, keep_days: int) -> Row:
    what, how = f"removed/{day['day']}", f"{day['disks']} disks, {-(-day['bytes'] // GIB)} GiB"
    proof = proofs.Proof.KEPT.value
    kept = removal(host, what, f"kept for {keep_days} days", "emptied", proof=proof, why="kept for its days")
    return {**kept, "there": how}


def released(host: str, result: JsonMapping) -> list[Row]:
    networks = result.get("diff", {}).get("before", {}).get("host_addresses", ())
    why = "no instance needs it"
    return [row(host, f"address of {host} in {name}", "taken", why, "given back") for name in networks]
