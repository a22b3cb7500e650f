# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Choices of a project on a network: on one that is not its own, none.

Who chooses an address, a MAC or address pairs on a network that projects share can be whoever is there: its guests
answer for the gateway, and the metadata service knows guests by their addresses. As in Neutron's default policy
(create_port:fixed_ips, :mac_address, :allowed_address_pairs, :port_security_enabled), such choices are the network's
owner's, and administrators'.
"""

from __future__ import annotations

from ..._errors import ForbiddenError
from ..._json import JsonMapping, JsonObject
from ..queries.network.network_records import Network


def check(network_uuid: str, owner: str, project_id: str, choices: JsonMapping, by_admin: bool) -> None:
    """Raise ForbiddenError if the project chooses something on a network that is not its own, unless `by_admin`.

    `choices`: what Neutron calls the attribute -> the value that was asked for; None and empty ones choose nothing.
    """
    if by_admin or owner == project_id:
        return
    for attribute, value in choices.items():
        if value:
            raise ForbiddenError(
                f"rule:create_port:{attribute} is disallowed by policy: network {network_uuid} is not the project's "
                "own; leave it out, or ask an administrator"
            )


def check_port(row: Network, project_id: str, attributes: JsonMapping, by_admin: bool) -> None:
    """The same for a port's attributes (Neutron's words) on the network `row`. To name a subnet is no choice."""
    fixed = [fixed_ip["ip_address"] for fixed_ip in attributes.get("fixed_ips") or () if fixed_ip.get("ip_address")]
    pairs, mac = attributes.get("allowed_address_pairs"), attributes.get("mac_address")
    choices: JsonObject = {"allowed_address_pairs": pairs, "mac_address": mac, "fixed_ips:ip_address": fixed}
    choices["port_security_enabled"] = "port_security_enabled" in attributes
    check(row.uuid, row.owner, project_id, choices, by_admin)


def check_router(row: Network, project_id: str, by_admin: bool) -> None:
    """Raise ForbiddenError if a router of the project is to stand on the network `row` that is not the project's own.

    A subnet has one router here: whoever put one on a shared network would take the place from everybody.
    """
    if not by_admin and row.owner != project_id:
        raise ForbiddenError(
            f"rule:add_router_interface is disallowed by policy: network {row.uuid} is not the project's own; "
            "route one that is, or ask an administrator"
        )
