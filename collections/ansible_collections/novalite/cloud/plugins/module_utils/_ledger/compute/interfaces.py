# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Interfaces that a server gets, or loses, while it is there.

An interface is in the ledger, with its address, before the host is asked to plug it in, and until the host has pulled
it out: vif.status says which of the two is under way. The write that sets it decides who comes first; one server has
one such change at a time. Nova's instance stays as it is meanwhile: this is no task of its.
"""

from __future__ import annotations

import typing as t
import uuid as uuids

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._model.instance import Instance
from ..._model.rows import InstanceRow, NetworkRow
from ..db import clock
from ..db.tables import instance, instance_security_group, network, vif
from ..db.tables_networking import port
from ..identity import quotas
from ..instances import actions
from ..network import dns_names, ports
from ..network.addresses import give_addresses, release_host_address
from ..network.preexisting_ports import give
from ..network.vifs import insert_vifs
from ..queries.compute import state_rules
from ..queries.compute.usage import usage
from ..queries.compute.views import instances_by

ATTACHING, DETACHING = "attaching", "detaching"
ACTIONS = {ATTACHING: "attach_interface", DETACHING: "detach_interface"}
MAX_INTERFACES = 16


class InterfaceRequest(t.NamedTuple):
    """An interface to attach: a port that there is, or one in a network (by its row), at an address or at any."""

    network: NetworkRow | None = None
    port: str | None = None
    fixed_ip: str | None = None


def begin_attach(
    connection: sa.Connection,
    row: InstanceRow,
    request: InterfaceRequest,
    *,
    request_id: str,
    user_id: str | None = None,
    by_admin: bool = False,
) -> str:
    """Give the server `row` an interface that its host is to plug in; returns its id.

    Raises ConflictError for a server in a state that does not allow it, or another change under way; NotFoundError for
    a port that is not the project's; QuotaError; NovaliteError for an address that cannot be had.
    """
    check(connection, ACTIONS[ATTACHING], row, by_admin)
    mine = sa.select(sa.func.count(), sa.func.max(vif.c.position)).where(vif.c.instance_uuid == row.uuid)
    count, last = connection.execute(mine).one()
    if count >= MAX_INTERFACES:
        raise NovaliteError(f"server {row.uuid} has {count} interfaces: that is the limit")
    position = 0 if last is None else last + 1
    if request.port is not None:
        ports.attachable(connection, row.project_id, request.port)
        give(connection, request.port, row.uuid, position)
        number = request.port
        _bring_groups(connection, row, number)
    else:
        of_network = request.network
        if of_network is None or of_network.cidr is None:
            raise NovaliteError("Network requires a subnet in order to boot instances on.")
        number = str(uuids.uuid4())
        insert_vifs(
            connection, [{"id": number, "instance_uuid": row.uuid, "network_id": of_network.id, "position": position}]
        )
    dns_names.claim(connection, [row.uuid])
    connection.execute(sa.update(vif).where(vif.c.id == number).values(status=ATTACHING))
    (whole,) = instances_by(connection, uuids=[row.uuid])
    for nic in whole["nics"]:
        if nic["id"] == number:
            nic["requested_ip"] = request.fixed_ip
    give_addresses(connection, [whole])
    used = usage(connection, row.project_id, ["fixed_ips"])
    quotas.check_quota(connection, row.project_id, "fixed_ips", used["fixed_ips"])
    _record(connection, ATTACHING, row, number, request_id, user_id)
    return number


def begin_detach(
    connection: sa.Connection,
    row: InstanceRow,
    number: str,
    *,
    request_id: str,
    user_id: str | None = None,
    by_admin: bool = False,
) -> None:
    """Have the server's host pull out the interface. Raises ConflictError, and NotFoundError for one it has not."""
    check(connection, ACTIONS[DETACHING], row, by_admin)
    done = connection.execute(
        sa.update(vif)
        .where(vif.c.id == number, vif.c.instance_uuid == row.uuid, vif.c.status.is_(None))
        .values(status=DETACHING)
    )
    if done.rowcount != 1:
        raise NotFoundError(f"Instance {row.uuid} does not have a port with id {number}")
    _record(connection, DETACHING, row, number, request_id, user_id)


def check(connection: sa.Connection, action: str, row: InstanceRow, by_admin: bool = False) -> None:
    """Raise ConflictError, in Nova's words, unless the server's interfaces may change now."""
    state_rules.check(connection, state_rules.RULES[action], [row], by_admin=by_admin)
    busy = sa.select(vif.c.id).where(vif.c.instance_uuid == row.uuid, vif.c.status.is_not(None))
    other = connection.execute(busy).scalar()
    if other is not None:
        raise ConflictError(f"Cannot '{action}' instance {row.uuid} while its interface {other} is changing")


def under_way(connection: sa.Connection, status: str, uuids_: t.Collection[str]) -> dict[str, str]:
    """Instance -> its interface that is `status`."""
    query = sa.select(vif.c.instance_uuid, vif.c.id).where(
        vif.c.instance_uuid.in_(sorted(set(uuids_))), vif.c.status == status
    )
    return {row.instance_uuid: row.id for row in connection.execute(query)}


def finish(
    connection: sa.Connection, status: str, results: t.Mapping[str, str | None], host: str | None = None
) -> list[str]:
    """Record how the change that is `status` ended on each instance (UUID -> error, or None), as seen by `host`;
    returns those that this changed: what was said before, or is being deleted, is left alone. What could not be plugged
    in, and what was pulled out, gives back its address; a port that was made by itself is free again."""
    vif_by_server = under_way(connection, status, results)
    rows = {server["uuid"]: server for server in instances_by(connection, uuids=vif_by_server)}
    changed, now = [], clock.seconds(connection)
    for uuid, number in vif_by_server.items():
        server = rows.get(uuid)
        if server is None or (host is not None and server["host"] != host):
            continue
        error = results[uuid]
        stays = (error is None) == (status == ATTACHING)
        mine = sa.and_(vif.c.id == number, vif.c.instance_uuid == uuid, vif.c.status == status)
        if connection.execute(sa.update(vif).where(mine).values(status=None)).rowcount != 1:
            continue
        if not stays:
            _take_away(connection, server, number, now)
        changed.append(uuid)
        message = None if error is None else actions.one_line(error) or "no reason was given"
        actions.finish(connection, ACTIONS[status], [(uuid, server["host"], message)], now=now)
    return changed


def _take_away(connection: sa.Connection, server: Instance, number: str, now: int) -> None:
    network_id = next(nic["network"]["id"] for nic in server["nics"] if nic["id"] == number)
    kept = connection.execute(sa.select(port.c.kept).where(port.c.vif_id == number)).scalar()
    if kept:
        connection.execute(sa.update(vif).where(vif.c.id == number).values(instance_uuid=None, position=None))
    else:
        ports.drop(connection, [number])
    left = sa.select(vif.c.id).join(instance, instance.c.uuid == vif.c.instance_uuid)
    here = left.where(vif.c.network_id == network_id, instance.c.host == server["host"], instance.c.deleted == 0)
    if server["host"] and connection.execute(here.limit(1)).first() is None:
        release_host_address(connection, network_id, server["host"], now)


def _bring_groups(connection: sa.Connection, row: InstanceRow, number: str) -> None:
    """A port's groups become its server's, which has one set for all of its interfaces."""
    link = instance_security_group
    mine = set(connection.execute(sa.select(link.c.group_id).where(link.c.instance_id == row.id)).scalars())
    new = [group for group in ports.group_ids_of(connection, [number]) if group not in mine]
    if new:
        connection.execute(sa.insert(link), [{"instance_id": row.id, "group_id": group} for group in new])


def _record(
    connection: sa.Connection, status: str, row: InstanceRow, number: str, request_id: str, user_id: str | None
) -> None:
    whose = row.project_id if user_id is not None else None
    details = {row.uuid: {"port": number}}
    actions.start(connection, ACTIONS[status], details, request_id, user_id=user_id, project_id=whose)


def network_named(
    connection: sa.Connection, project_id: str, *, uuid: str | None = None, name: str | None = None
) -> NetworkRow:
    """The network of this UUID or name that the project sees, its own before a public one. Raises NotFoundError."""
    query = sa.select(network).where(network.c.owner.in_(["", project_id]))
    query = query.where(network.c.uuid == uuid if uuid is not None else network.c.name == name)
    row = connection.execute(query.order_by(network.c.owner.desc())).first()
    if row is None:
        raise NotFoundError(f"Network {uuid or name} could not be found.")
    return t.cast(NetworkRow, row)
