# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secondary private addresses of instances' network interfaces, which come and go while the instances are there."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    AddressInUseError,
    ConflictError,
    PoolExhaustedError,
    QuotaError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import ports
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import Port

from ...web.context import Caller
from ...work.calls import calling
from .. import ids
from ..blueprint import writes
from ..common import Body, Parameters
from ..faults import Ec2Error, as_codes, invalid, missing
from ..parameters import Boolean, ListOf, Number, Text

MOST = 10  # in one request
ADDRESSES = ListOf(Text(64), MOST)
CODES: dict[type[Exception], str] = {
    AddressInUseError: "InvalidParameterValue",
    PoolExhaustedError: "InsufficientFreeAddressesInSubnet",
    QuotaError: "PrivateIpAddressLimitExceeded",
    ConflictError: "IncorrectState",
}


@writes(
    "AssignPrivateIpAddresses",
    "network:ports:write",
    {
        "NetworkInterfaceId": Text(),
        "PrivateIpAddress": ADDRESSES,
        "SecondaryPrivateIpAddressCount": Number(1, MOST),
        "AllowReassignment": Boolean(),
    },
    ["NetworkInterfaceId"],
)
def assign_private_ip_addresses(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    port, named = _port(connection, caller.project, parameters), parameters.get("PrivateIpAddress") or []
    count = parameters.get("SecondaryPrivateIpAddressCount")
    if named and count:
        raise Ec2Error("InvalidParameterCombination", "Give PrivateIpAddress or SecondaryPrivateIpAddressCount.")
    if not named and not count:
        raise missing("SecondaryPrivateIpAddressCount")
    of_subnet = {"subnet_id": port.subnet_ids[port.ip]} if port.ip else {"ip_version": 4}
    after = _change(connection, port, new=[*_wishes(named), *[of_subnet] * (count or 0)])
    assigned = [address for address in after if address not in (port.ip, *port.more_ips) or address in named]
    return {
        "return": True,
        "networkInterfaceId": parameters["NetworkInterfaceId"],
        "assignedPrivateIpAddressesSet": [{"privateIpAddress": address} for address in assigned],
    }


@writes(
    "UnassignPrivateIpAddresses",
    "network:ports:write",
    {"NetworkInterfaceId": Text(), "PrivateIpAddress": ADDRESSES},
    ["NetworkInterfaceId", "PrivateIpAddress"],
)
def unassign_private_ip_addresses(connection: Connection, caller: Caller, parameters: Parameters) -> None:
    port, going = _port(connection, caller.project, parameters), parameters["PrivateIpAddress"]
    for address in going:
        if address not in port.more_ips:
            raise invalid(
                "PrivateIpAddress", address, f"it is not a secondary address of {parameters['NetworkInterfaceId']}"
            )
    _change(connection, port, going=going)


def _port(connection: Connection, project: str, parameters: Parameters) -> Port:
    interfaces = network_records.interfaces_of(connection, project)
    return ids.find("eni", parameters["NetworkInterfaceId"], {ids.of("eni", port.id): port for port in interfaces})


def _wishes(addresses: t.Iterable[str]) -> list[Body]:
    return [{"ip_address": address} for address in addresses]


def _change(connection: Connection, port: Port, new: t.Sequence[Body] = (), going: t.Sequence[str] = ()) -> list[str]:
    """Give the interface addresses, or take them; returns those of IPv4 that it has then."""
    with as_codes(CODES):
        ports.change_fixed_ips(calling(connection), port, new, going)
    (after,) = network_records.ports_of(connection, port.project_id, port.id)
    return [address for address in (after.ip, *after.more_ips) if address is not None]
