# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Elastic addresses: the project's floating IPs."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._addressing.pools import to_int
from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    NovaliteError,
    PortLedToError,
    QuotaError,
    UnreachableError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import floating_ips
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network.floating_ips import (
    FloatingIpRequest,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.ec2 import ec2_attributes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import (
    FloatingIp,
    Port,
)

from ...web.bodies import the_one
from ...web.context import Caller
from ...web.errors import in_words
from ...work.calls import calling
from .. import filters, ids
from ..blueprint import reads, writes
from ..common import REGION, Body, Parameters, Record, forget_tags, keep_tags, tag_set, tags_for
from ..faults import Ec2Error, as_codes, missing, translated
from ..parameters import FILTERS, TAG_SPECIFICATIONS, TEXTS, Boolean, Ignored, Text
from .instances import find as find_instances

KIND = "elastic-ip"
ADDRESS_FILTERS = filters.like(
    "allocation-id association-id domain instance-id network-interface-id network-interface-owner-id "
    "private-ip-address public-ip network-border-group"
)
_ONE = {"AllocationId": Text(), "PublicIp": Text(64)}
ASSOCIATE_REFUSED: t.Mapping[type[Exception], str] = {
    PortLedToError: "Resource.AlreadyAssociated",
    UnreachableError: "InvalidParameterValue",
    NovaliteError: "InvalidInstanceID",
}


def allocation_id(row: FloatingIp) -> str:
    return ids.of("eipalloc", row.id)


def _association_id(row: FloatingIp) -> str | None:
    return ids.named("eipassoc", row.id, row.vif_id) if row.vif_id else None


@reads("DescribeAddresses", "network:floating_ips:read", {"AllocationId": TEXTS, "PublicIp": TEXTS, "Filter": FILTERS})
def describe_addresses(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    rows = network_records.floating_ips_of(connection, caller.project)
    tags = ec2_attributes.tags_of(connection, caller.project)
    if "AllocationId" in parameters or "PublicIp" in parameters:
        requested_rows = ids.find_all(
            "eipalloc", parameters.get("AllocationId", []), {allocation_id(row): row for row in rows}
        )
        requested_rows += [_by_address(rows, address) for address in parameters.get("PublicIp", [])]
        rows = [row for row in rows if row in requested_rows]
    bodies = [_address(row, tags) for row in rows]
    return {"addressesSet": filters.filtered(bodies, parameters, ADDRESS_FILTERS)}


def _address(row: FloatingIp, tags: Record) -> Body:
    instance = row.instance_uuid
    return {
        "allocationId": allocation_id(row),
        "publicIp": row.address,
        "domain": "vpc",
        "publicIpv4Pool": row.pool,
        "networkBorderGroup": REGION,
        "associationId": _association_id(row),
        "instanceId": ids.of("i", instance) if instance else None,
        "networkInterfaceId": ids.of("eni", row.vif_id) if row.vif_id else None,
        "networkInterfaceOwnerId": row.project_id if row.vif_id else None,
        "privateIpAddress": row.fixed_ip,
        "tagSet": tag_set(tags.get(allocation_id(row), {})),
    }


def _by_address(rows: t.Iterable[FloatingIp], address: str) -> FloatingIp:
    return the_one(
        rows, "address", address, Ec2Error("InvalidAddress.NotFound", f"Address '{address[:60]}' not found.")
    )


def _find(connection: Connection, project: str, parameters: Parameters) -> FloatingIp:
    rows = network_records.floating_ips_of(connection, project)
    if parameters.get("AllocationId"):
        return ids.find("eipalloc", parameters["AllocationId"], {allocation_id(row): row for row in rows})
    if parameters.get("PublicIp"):
        return _by_address(rows, parameters["PublicIp"])
    raise missing("AllocationId")


@writes(
    "AllocateAddress",
    "network:floating_ips:write",
    {
        "Domain": Text(choices=("vpc", "standard")),
        "Address": Text(64),
        "PublicIpv4Pool": Text(),
        "NetworkBorderGroup": Ignored(),
        "TagSpecification": TAG_SPECIFICATIONS,
    },
)
def allocate_address(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    tags = tags_for(parameters, KIND)[KIND]
    with as_codes({NovaliteError: "InvalidAddress.Malformed"}):
        to_int(parameters.get("Address", "0.0.0.0"))
    request: FloatingIpRequest = {"address": parameters.get("Address"), "pool": parameters.get("PublicIpv4Pool")}
    refused: t.Mapping[type[Exception], str] = {
        QuotaError: "AddressLimitExceeded",
        floating_ips.AddressHeldError: "InvalidIPAddress.InUse",
        ConflictError: "InvalidAddress.NotFound",
        NotFoundError: "InvalidAddress.NotFound" if parameters.get("Address") else "InsufficientAddressCapacity",
        NovaliteError: "InsufficientAddressCapacity",
    }
    with as_codes(refused), in_words({ForbiddenError: lambda message: translated(ForbiddenError(message))}):
        row = floating_ips.create(calling(connection), {}, request)
    keep_tags(connection, allocation_id(row), tags)
    body = _address(row, {allocation_id(row): tags})
    return {name: body[name] for name in ("publicIp", "domain", "allocationId", "publicIpv4Pool", "networkBorderGroup")}


@writes("ReleaseAddress", "network:floating_ips:write", {**_ONE, "NetworkBorderGroup": Ignored()})
def release_address(connection: Connection, caller: Caller, parameters: Parameters) -> None:
    row = _find(connection, caller.project, parameters)
    with as_codes({floating_ips.LeadsError: "InvalidIPAddress.InUse", ConflictError: "InvalidAddress.NotFound"}):
        floating_ips.release(calling(connection), row, leading=False)
    forget_tags(connection, allocation_id(row))


@writes(
    "AssociateAddress",
    "network:floating_ips:write",
    {
        **_ONE,
        "InstanceId": Text(),
        "NetworkInterfaceId": Text(),
        "PrivateIpAddress": Text(64),
        "AllowReassociation": Boolean(),
    },
)
def associate_address(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    row = _find(connection, caller.project, parameters)
    port = _port(connection, caller.project, parameters)
    message = f"resource {allocation_id(row)} is already associated with associate-id {_association_id(row)}"
    elsewhere = Ec2Error("Resource.AlreadyAssociated", message)
    with as_codes(ASSOCIATE_REFUSED), in_words({floating_ips.LeadsError: lambda _message: elsewhere}):
        floating_ips.associate(calling(connection), row, port, moves=bool(parameters.get("AllowReassociation")))
    after = _find(connection, caller.project, {"AllocationId": allocation_id(row)})
    return {"return": True, "associationId": _association_id(after)}


def _port(connection: Connection, project: str, parameters: Parameters) -> Port:
    """The interface that is meant: by its own id, or the first of the instance that has an address."""
    ports = network_records.interfaces_of(connection, project)
    if parameters.get("NetworkInterfaceId"):
        matching = [ids.find("eni", parameters["NetworkInterfaceId"], {ids.of("eni", port.id): port for port in ports})]
    elif parameters.get("InstanceId"):
        (record,) = find_instances(connection, project, [parameters["InstanceId"]])
        matching = [port for port in ports if port.instance_uuid == record["uuid"]]
    else:
        raise missing("InstanceId")
    private_ip = parameters.get("PrivateIpAddress")
    for port in matching:
        if port.ip is not None and private_ip in (None, "", port.ip):
            return port
    raise Ec2Error("InvalidInstanceID", "The instance has no such private address yet to associate an address with.")


@writes("DisassociateAddress", "network:floating_ips:write", {"AssociationId": Text(), "PublicIp": Text(64)})
def disassociate_address(connection: Connection, caller: Caller, parameters: Parameters) -> None:
    if parameters.get("AssociationId"):
        rows = network_records.floating_ips_of(connection, caller.project)
        known = {number: row for row in rows if (number := _association_id(row))}
        row = ids.find("eipassoc", parameters["AssociationId"], known)
    else:
        row = _find(connection, caller.project, parameters)
    if row.vif_id is not None:
        with as_codes(ASSOCIATE_REFUSED):
            floating_ips.associate(calling(connection), row, None)
