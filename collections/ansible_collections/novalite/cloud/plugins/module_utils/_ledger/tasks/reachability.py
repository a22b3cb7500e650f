# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `reachability`: who may talk to whom, by what the ledger knows of security groups."""

from __future__ import annotations

import sqlalchemy as sa

from ..._addressing.texts import parse_address
from ..._domain.guest import tap_device
from ..._errors import NovaliteError
from ..._guest.network_data import range_of
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance, addresses_of, is_secured
from ..._plan import reach, walks
from ..db.tables import security_group
from ..queries import lookups
from ..queries.compute.views import instances_by
from ..queries.network import group_members


def reachability(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """May `source` talk to `destination` (names of instances, or addresses)? Every pair of addresses is answered; with
    `trace`, `hosts` are the packets that hosts are to walk. `walks` are what came of these. Raises NotFoundError for a
    name that is no instance's, NovaliteError where hosts contradict the ledger."""
    owner = lookups.project_by_name(connection, params["project"])["id"]
    ends = [_end(connection, owner, params[which]) for which in ("source", "destination")]
    named = {rule["remote_group_id"] for end in ends for group in end.groups or () for rule in group["rules"]} - {None}
    names = connection.execute(
        sa.select(security_group.c.id, security_group.c.name).where(security_group.c.id.in_(sorted(named)))
    )
    members = group_members.members_of(connection, named)
    remotes = {number: reach.Remote(name, members[number]) for number, name in names}
    talk = reach.Talk(params["protocol"], params["port"], params["icmp_code"])
    answers = reach.answers(ends[0], ends[1], talk, remotes)
    lines = [answer["line"] for answer in answers]
    if not answers:
        lines = [f"{ends[0].name} and {ends[1].name} have no addresses of one family"]
    hosts = walks.packets(ends[0], ends[1], answers, talk) if params["trace"] else {}
    if params["walks"]:
        lines = walks.lines(answers, params["walks"])
        if problems := walks.disagreements(answers, params["walks"], sum(map(len, hosts.values()))):
            raise NovaliteError("; ".join([*problems, *lines]))
    allowed = any(answer["allowed"] for answer in answers)
    return {"changed": False, "allowed": allowed, "answers": answers, "hosts": hosts, "msg": lines}


def _end(connection: sa.Connection, project_id: str, name: str) -> reach.End:
    """An instance by its name or one of its addresses; otherwise an address that is nobody's."""
    try:
        address = str(parse_address(name))
    except ValueError:
        instances = instances_by(connection, names=[name], project_id=project_id)
        if not instances:
            raise lookups.unknown_server(connection, project_id, name) from None
        return _instance_end(instances[0])
    for instance in instances_by(connection, project_id=project_id):
        end = _instance_end(instance, address)
        if end.addresses:
            return end
    return reach.End(address, (reach.Address(address),))


def _instance_end(instance: Instance, only: str | None = None) -> reach.End:
    addresses = tuple(
        reach.Address(
            address,
            nic["network"]["id"],
            nic["network"]["bridge"] if nic["network"]["isolated"] else "",
            nic["network"]["bridge"],
            tap_device(nic["id"]),
            nic["network"]["cidr_v6"] or "" if ":" in address else range_of(nic, address),
            is_secured(nic),
            nic["network"]["allow_project_net_traffic"],
        )
        for nic in instance["nics"]
        for address in addresses_of(nic)
        if only in (None, address)
    )
    runs = instance["vm_state"] == "active" and not instance["adopted"]
    return reach.End(instance["name"], addresses, instance["security_groups"], (instance["host"] or "") if runs else "")
