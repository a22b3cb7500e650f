# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on floating IPs. The host that had one stops, and the host of its server translates; both learn from a job
what the ledger says."""

from __future__ import annotations

import typing as t

from ...._errors import ConflictError, NovaliteError
from ...network import floating_ips
from ...queries.identity import projects
from ...queries.network.network_records import FloatingIp, Port, floating_ips_of
from ..call import Call
from ..hosts import update_hosts
from .owners import Named, owner_of


class AddressHeldError(ConflictError):
    """The project has the floating IP already that it asks for."""


class LeadsError(ConflictError):
    """A floating IP leads to a port, and is to lead nowhere first."""


class FloatingIpRequest(t.TypedDict, total=False):
    """A floating IP as it shall be: of the pool of this name (None: the only one), this address (None: any). It leads
    to `port` at that one's address `ip`; None: nowhere."""

    pool: str | None
    address: str | None
    port: Port | None
    description: str | None


def check_choices(call: Call, project_id: str, addresses: t.Iterable[str]) -> None:
    """Raise ForbiddenError for floating IPs that the project may not choose. Texts that are not addresses are
    refused where they are asked for."""
    for address in addresses:
        try:
            chosen = floating_ips.is_chosen(call.connection, project_id, address)
        except NovaliteError:
            continue
        if chosen:
            call.check("network:floating_ips:choose")


def create(call: Call, named: Named, request: FloatingIpRequest) -> FloatingIp:
    """Give the project that is `named` a floating IP. Raises ForbiddenError, AddressHeldError, and as
    owners.owner_of(), floating_ips.write_floating_ips() and associate()."""
    project_id, address, port = owner_of(call, named), request.get("address"), request.get("port")
    if address is not None:
        check_choices(call, project_id, [address])
    item = {**_NOWHERE, "address": address, "pool": request.get("pool"), "server": None, "new": address is None}
    done = floating_ips.write_floating_ips(call.connection, _name_of(call, project_id), [item])
    if not done["changed"]:
        raise AddressHeldError(f"the project has the floating IP {address} already")
    made = _now(call, project_id, str(done["floating_ips"][0]["id"]))
    if port is not None:
        associate(call, made, port)
    return _described(call, made, request)


def update(call: Call, seen: FloatingIp, request: FloatingIpRequest) -> FloatingIp:
    """Change where the floating IP leads to, or its description. Raises as associate()."""
    if "port" in request:
        associate(call, seen, request["port"])
    return _described(call, seen, request)


def _described(call: Call, seen: FloatingIp, request: FloatingIpRequest) -> FloatingIp:
    description = request.get("description")
    if description is not None:
        floating_ips.describe(call.connection, seen.project_id, seen.id, description)
    return _now(call, seen.project_id, seen.id)


def associate(call: Call, seen: FloatingIp, port: Port | None, *, moves: bool = True) -> None:
    """Let the floating IP lead to `port` at its address `ip`, or nowhere. Raises LeadsError for one that leads to
    another port, unless it `moves`, and as floating_ips.write_floating_ips() and lead_to_port()."""
    if port is not None and (seen.vif_id, seen.fixed_ip) == (port.id, port.ip):
        return
    if port is not None and not moves and seen.vif_id not in (None, port.id):
        raise LeadsError(f"floating IP {seen.address} leads to the port {seen.vif_id}")
    item = {**_NOWHERE, "address": seen.address}
    attached = port is not None and port.instance_name is not None
    if port is not None and attached:
        item.update(server=port.instance_name, fixed_ip=port.ip)
    floating_ips.write_floating_ips(call.connection, _name_of(call, seen.project_id), [item])
    if port is not None and not attached:
        floating_ips.lead_to_port(call.connection, seen.project_id, seen.id, port.id, port.ip)
    after = _now(call, seen.project_id, seen.id)
    if port is not None and after.vif_id != port.id:
        raise ConflictError(f"the server has {port.ip} on several interfaces: no floating IP can tell them apart")
    _update_hosts(call, seen, after)


def release(call: Call, seen: FloatingIp, *, leading: bool = True) -> None:
    """Take the floating IP from its project. Raises LeadsError for one that leads to a port, unless `leading`, and as
    floating_ips.release_floating_ips()."""
    if seen.vif_id is not None and not leading:
        raise LeadsError(f"Address {seen.address} is in use: disassociate it first.")
    item = {**_NOWHERE, "address": seen.address, "server": None}
    floating_ips.release_floating_ips(call.connection, _name_of(call, seen.project_id), [item])
    _update_hosts(call, seen, None)


_NOWHERE: t.Final[t.Mapping[str, str | None]] = {"address": None, "pool": None, "server": "", "fixed_ip": None}


def _name_of(call: Call, project_id: str) -> str:
    return str(projects.project_name(call.connection, project_id))


def _now(call: Call, project_id: str, number: str) -> FloatingIp:
    (row,) = floating_ips_of(call.connection, project_id, number)
    return row


def _update_hosts(call: Call, before: FloatingIp, after: FloatingIp | None) -> None:
    """Have the hosts learn of a change. The address is not named: when the job runs, it may be another project's."""
    holders = [after.host] if after is not None and after.host else []
    hosts = sorted({*holders, *([before.host] if before.host else [])})
    if hosts:
        update_hosts(call, "floating_ips", {"network_hosts": hosts, "holders": holders}, before.project_id)
