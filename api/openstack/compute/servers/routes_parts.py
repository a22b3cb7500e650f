# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parts of a server: addresses, groups, interfaces, the log of its actions, metadata and tags."""

from __future__ import annotations

import time

from flask import Response, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import (
    server_history,
    server_listing,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.subnet_records import SubnetIds
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow

from ....web import policy
from ....web.bodies import Answer, Body, Record, same
from ....web.context import current
from ....web.errors import BadRequestError, in_words
from ....web.host_names import host_id, host_name_mask
from ....web.listing import href
from ....web.maps import Change, Map, Tags, Texts, Update
from ....web.services import reads
from ....web.times import precise
from ....work.calls import calling
from ..blueprint import NOVA, compute, from_version, known, microversion, since
from . import queries as query_servers
from . import views as views_servers
from .schemas import MAX_TAGS, METADATA, TAG


def _security_group(group: Record) -> Body:
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


def interface(nic: Record, vm_state: str, subnets: SubnetIds) -> Body:
    fixed = [
        {"subnet_id": subnets.of(nic["network_uuid"], address), "ip_address": address}
        for address in (*nic["ips"], nic["ipv6"])
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


def _action(record: Record, row: InstanceRow) -> Body:
    return {
        "action": record["action"],
        "instance_uuid": row.uuid,
        **same(record, "request_id", "user_id"),
        "project_id": record["project_id"] or row.project_id,
        "start_time": precise(record["started_at"]),
        "message": "Error" if record["message"] else None,
        **from_version((2, 58), {"updated_at": precise(record["finished_at"] or record["started_at"])}),
    }


def _event(record: Record, row: InstanceRow, extended: bool) -> Body:
    host = {"host": record["host"]} if extended else {}
    return {
        **same(record, "event", "result"),
        "start_time": precise(record["started_at"]),
        "finish_time": precise(record["finished_at"]),
        **({"traceback": None} if extended else {}),  # there is none: what went wrong is one line
        **from_version((2, 62), {"hostId": host_id(row.project_id, record["host"]), **host}),
        **from_version((2, 84), {"details": record["message"] if record["result"] == "Error" else None}),
    }


COUNTERS = [f"{way}_{what}" for way in ("rx", "tx") for what in ("octets", "errors", "drop", "packets", "rate")]


def _diagnostics(record: Record, now: int) -> Body:
    """Return the few diagnostics that are known here without asking the host."""
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


ACTIVE = "active"


def _record(connection: Connection, server_id: str) -> Record:
    row = server_listing.instance_row(connection, server_id, current().reach)
    return server_listing.load(connection, [row.id])[0]


@compute.get("/servers/<server_id>/ips", "compute:server-parts:read", reads)
def list_ips(connection: Connection, server_id: str) -> Answer:
    return {"addresses": views_servers.addresses(_record(connection, server_id)["nics"], extended=False)}, 200


@compute.get("/servers/<server_id>/ips/<network>", "compute:server-parts:read", reads)
def show_ips(connection: Connection, server_id: str, network: str) -> Answer:
    addresses = views_servers.addresses(_record(connection, server_id)["nics"], extended=False)
    if network not in addresses:
        raise NotFoundError("Instance is not a member of specified network")
    return {network: addresses[network]}, 200


@compute.get("/servers/<server_id>/os-security-groups", "compute:server-parts:read", reads)
def list_groups_of_server(connection: Connection, server_id: str) -> Answer:
    row = server_listing.instance_row(connection, server_id, current().reach)
    groups = server_history.groups_with_rules(connection, row.id)
    return {"security_groups": [_security_group(group) for group in groups]}, 200


# --- what was done


ACTIONS_QUERY = known((2, 58), "limit marker changes-since", ((2, 66), "changes-before"))


@compute.get("/servers/<server_id>/os-instance-actions", "compute:server-parts:read", ACTIONS_QUERY, reads)
def list_actions(connection: Connection, server_id: str) -> Answer:
    version = microversion()
    paged = version >= (2, 58)
    limit = NOVA.limit() if paged else None
    since_, before = query_servers.moment("changes-since"), query_servers.moment("changes-before")
    # the record of a server stays when it goes
    row = server_listing.instance_row(connection, server_id, current().reach, deleted=version >= (2, 21))
    with in_words({NotFoundError: BadRequestError}):  # the marker
        actions = server_history.actions_of(
            connection,
            row.uuid,
            limit=limit,
            marker=request.args.get("marker") if paged else None,
            since=since_ if paged else None,
            before=before if version >= (2, 66) else None,
        )
    body: Body = {"instanceActions": [_action(action, row) for action in actions]}
    if limit and len(actions) == limit:
        body["links"] = [{"rel": "next", "href": href(actions[-1]["request_id"])}]
    return body, 200


@compute.get("/servers/<server_id>/os-instance-actions/<request_id>", "compute:server-parts:read", reads)
def show_action(connection: Connection, server_id: str, request_id: str) -> Answer:
    version, caller = microversion(), current()
    row = server_listing.instance_row(connection, server_id, caller.reach, deleted=version >= (2, 21))
    action = server_history.action_of(connection, row.uuid, request_id)
    hidden = host_name_mask(connection, caller.reach)
    body = _action(action, row)
    extended = policy.allowed("compute:servers:extended")
    if extended or version >= (2, 51):
        events = [{**event, "message": hidden.over(event["message"])} for event in action["events"]]
        body["events"] = [_event(event, row, extended) for event in events]
    return {"instanceAction": body}, 200


# --- the rest


@compute.get("/servers/<server_id>/diagnostics", "compute:server-diagnostics", reads)
def show_diagnostics(connection: Connection, server_id: str) -> Answer:
    record = _record(connection, server_id)
    if record["vm_state"] != ACTIVE:
        raise ConflictError(
            f"Cannot 'get_diagnostics' instance {server_id} while it is in vm_state {record['vm_state']}"
        )
    return _diagnostics(record, int(time.time())), 200


@compute.get("/servers/<server_id>/os-server-password", "compute:server-parts:read", reads)
def show_password(connection: Connection, server_id: str) -> Answer:
    """Show an empty password: no guest encrypts one and leaves it here."""
    _record(connection, server_id)
    return {"password": ""}, 200


@compute.delete("/servers/<server_id>/os-server-password", "compute:server-parts:write", reads)
def clear_password(connection: Connection, server_id: str) -> Response:
    _record(connection, server_id)
    return Response(status=204)


# --- metadata and tags ----------------------------------------------------------------------------------------------


def _row(connection: Connection, server_id: str) -> InstanceRow:
    row: InstanceRow = server_listing.instance_row(connection, server_id, current().reach)
    return row


def _change_metadata(connection: Connection, change: Change, before: Texts, server_id: str) -> Texts:
    row = _row(connection, server_id)
    change.of(before)  # is there what is to be removed?
    gone = () if change.removed is None else (change.removed,)
    return servers.change_metadata(calling(connection), row, change.items, replace=change.replace, remove=gone)


def _change_tags(connection: Connection, update: Update, server_id: str) -> list[str]:
    row = _row(connection, server_id)
    return servers.change_tags(calling(connection), row, lambda before: set(update(before)))


Map(
    name="server_metadata",
    path="/servers/<server_id>/metadata",
    reads="compute:server-metadata:read",
    writes="compute:server-metadata:write",
    word="metadata",
    schema=METADATA,
    find=lambda connection, server_id: _row(connection, server_id).metadata,
    write=_change_metadata,
).put_into(compute)
Tags(
    name="server_tags",
    path="/servers/<server_id>/tags",
    reads="compute:server-tags:read",
    writes="compute:server-tags:write",
    schema=TAG,
    most=MAX_TAGS,
    find=lambda connection, server_id: _row(connection, server_id).tags,
    write=_change_tags,
    missing=lambda tag, server_id: NotFoundError(f"Server {server_id} has no tag '{tag}'"),
    full=f"The number of tags exceeded the per-server limit {MAX_TAGS}",
    again=204,
    below=(since("2.26"),),
).put_into(compute)
