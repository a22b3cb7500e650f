# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What belongs to a server, as the Compute API shows it."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network_records import subnet_id
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow

from ....web.bodies import Body, Record, same
from ....web.host_names import host_id
from ....web.times import precise
from ..microversions import from_version, microversion


def security_group(group: Record) -> Body:
    return {
        "id": group["uuid"],
        **same(group, "name", "description"),
        "tenant_id": group["project_id"],
        "rules": [_rule(rule, group) for rule in group["rules"] if rule["direction"] == "ingress"],
    }


def _rule(rule: Record, group: Record) -> Body:
    """A rule as nova-network had it: TCP, UDP or ICMP, from a range or a group."""
    anything = rule["protocol"] == "any"
    ranged = rule["cidr"] or ("::/0" if rule["ethertype"] == "IPv6" else "0.0.0.0/0")
    remote = rule["remote_group"]
    return {
        "id": rule["id"],
        "parent_group_id": group["uuid"],
        "ip_protocol": None if anything else rule["protocol"],
        "from_port": rule["port_min"],
        "to_port": rule["port_max"],
        "group": {} if remote is None else {"name": remote, "tenant_id": group["project_id"]},
        "ip_range": {"cidr": ranged} if remote is None else {},
    }


def interface(nic: Record, vm_state: str) -> Body:
    fixed = [
        {"subnet_id": subnet_id(nic["network_uuid"], number), "ip_address": address}
        for number, address in ((4, nic["ip"]), (6, nic["ipv6"]))
        if address is not None
    ]
    return {
        "port_state": "ACTIVE" if vm_state == "active" and nic["status"] != "attaching" else "DOWN",
        "fixed_ips": fixed,
        "port_id": nic["id"],
        "net_id": nic["network_uuid"],
        "mac_addr": nic["mac"],
        **from_version((2, 70), {"tag": None}),
    }


def action(record: Record, row: InstanceRow) -> Body:
    return {
        "action": record["action"],
        "instance_uuid": row.uuid,
        **same(record, "request_id", "user_id"),
        "project_id": record["project_id"] or row.project_id,
        "start_time": precise(record["started_at"]),
        "message": "Error" if record["message"] else None,
        **from_version((2, 58), {"updated_at": precise(record["finished_at"] or record["started_at"])}),
    }


def event(record: Record, row: InstanceRow, is_admin: bool) -> Body:
    host = {"host": record["host"]} if is_admin else {}
    return {
        **same(record, "event", "result"),
        "start_time": precise(record["started_at"]),
        "finish_time": precise(record["finished_at"]),
        **({"traceback": None} if is_admin else {}),  # there is none: what went wrong is one line
        **from_version((2, 62), {"hostId": host_id(row.project_id, record["host"]), **host}),
        **from_version((2, 84), {"details": record["message"] if record["result"] == "Error" else None}),
    }


COUNTERS = [f"{way}_{what}" for way in ("rx", "tx") for what in ("octets", "errors", "drop", "packets", "rate")]


def diagnostics(record: Record, now: int) -> Body:
    """As little as is known here without asking the host."""
    uptime = max(0, now - (record["launched_at"] or now))
    if microversion() < (2, 48):
        return {"memory": record["flavor"]["memory_mb"] * 1024, "uptime": uptime}
    return {
        "state": "running",
        "driver": "libvirt",
        "hypervisor": "qemu",
        "hypervisor_os": "linux",
        "uptime": uptime,
        "config_drive": record["config_drive"],
        "num_cpus": record["flavor"]["vcpus"],
        "num_nics": len(record["nics"]),
        "num_disks": 1,
        "memory_details": {"maximum": record["flavor"]["memory_mb"], "used": None},
        "cpu_details": [],
        "nic_details": [{"mac_address": nic["mac"], **dict.fromkeys(COUNTERS)} for nic in record["nics"]],
        "disk_details": [],
    }
