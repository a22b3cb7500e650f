# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Neutron's attributes of a security group's rule as the ledger takes them, and what Neutron refuses in its words.

Source: neutron/extensions/securitygroup.py and neutron/db/securitygroups_db.py. Other than Neutron since Train, a range
of ports 1 to 65535 stays what it is: clients that compare what they asked for with what is there see no change.
"""

from __future__ import annotations

import netaddr

from ansible_collections.novalite.cloud.plugins.module_utils._addressing.texts import parse_network
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network.security_groups import (
    RuleRequest,
)
from ansible_collections.novalite.cloud.plugins.module_utils._rules.rules import PROTOCOLS

from ...web.bodies import Record
from .blueprint import NeutronError, word

ICMP = ("icmp", "icmpv6")
WITH_PORTS = ("tcp", "udp", "sctp")
# neutron_lib.constants.IP_PROTOCOL_MAP: names of protocol 0, which no firewall tells from any
ANY = ("any", "0", "ip", "hopopt")
ONLY_IPV6 = ("icmpv6", *(PROTOCOLS[f"ipv6-{name}"] for name in ("encap", "frag", "nonxt", "opts", "route")))
FIELDS = {"port_range_min": "type", "port_range_max": "code"}

_invalid_icmp = word(400, "SecurityGroupInvalidIcmpValue")
_invalid_port = word(400, "SecurityGroupInvalidPortValue")


def as_rule(body: Record) -> RuleRequest:
    """Return the rule that is asked for. Raises NeutronError."""
    version = int((body.get("ethertype") or "IPv4")[-1])
    protocol, protocol_text = _protocol(body.get("protocol"), version)
    if body.get("remote_ip_prefix") and body.get("remote_group_id"):
        raise NeutronError(
            400,
            "SecurityGroupMultipleRemoteEntites",
            "Only one of remote_ip_prefix or remote_group_id or remote_address_group_id may be provided.",
        )
    prefix = _prefix(body.get("remote_ip_prefix") or None, version)
    low, high = (None if body.get(key) is None else int(body[key]) for key in FIELDS)
    return RuleRequest(
        direction=body["direction"],
        ethertype=f"IPv{version}",
        protocol=protocol,
        protocol_said=protocol_text,
        description=body.get("description") or "",
        cidr=None if prefix is None else str(prefix.cidr),
        cidr_said=None if prefix is None or prefix.ip == prefix.network else str(prefix),
        remote_group_uuid=body["remote_group_id"].lower() if body.get("remote_group_id") else None,
        **(_icmp if protocol in ICMP else _ports)(low, high, protocol),
    )


def _protocol(value: int | str | None, version: int) -> tuple[str, str | None]:
    """Return the protocol as it is stored, and as it is shown where that is not how it is shown anyway."""
    text = "" if value is None else str(value).lower()
    if text in ("", "any"):
        return "any", None
    if version == 6 and text in ("icmp", "icmpv6", "1"):  # the spellings of old, which Neutron converts
        text = "58" if text == "1" else "ipv6-icmp"
    number = str(int(text)) if text.isascii() and text.isdecimal() else text
    if number in ANY:
        return "any", text
    stored = PROTOCOLS.get(number) or (number if number.isdecimal() and int(number) < 256 else None)
    if stored is None or number == "-1":
        names = ", ".join(sorted(name for name in PROTOCOLS if not name[-1].isdecimal()))
        raise NeutronError(
            400,
            "SecurityGroupRuleInvalidProtocol",
            f"Security group rule protocol {text[:40]} not supported. Only protocol values {names} and integer "
            "representations [0 to 255] are supported.",
        )
    if version == 4 and stored in ONLY_IPV6:
        raise NeutronError(
            400, "SecurityGroupEthertypeConflictWithProtocol", f"Invalid ethertype IPv4 for protocol {text}."
        )
    return stored, text


def _prefix(text: str | None, version: int) -> netaddr.IPNetwork | None:
    if text is None:
        return None
    try:
        prefix = parse_network(text, strict=False)
    except ValueError:
        raise NeutronError(400, "InvalidCIDR", f"Invalid CIDR {text} given as IP prefix.") from None
    if prefix.version != version:
        raise NeutronError(
            400, "SecurityGroupRuleParameterConflict", f"Conflicting value ethertype IPv{version} for CIDR {text}"
        )
    return prefix


def _icmp(low: int | None, high: int | None, _protocol: str) -> Record:
    for value, (key, what) in zip((low, high), FIELDS.items()):
        if value is not None and not -1 <= value <= 255:
            raise _invalid_icmp(f"Invalid value for ICMP {what} ({key}) {value}. It must be 0 to 255.")
    if low == -1 and high not in (None, -1):
        raise _invalid_icmp(f"Invalid value for ICMP type {low} with code {high}")
    if low is None and high is not None:
        raise NeutronError(
            400,
            "SecurityGroupMissingIcmpType",
            f"ICMP code (port-range-max) {high} is provided but ICMP type (port-range-min) is missing.",
        )
    return {"icmp_type": low, "icmp_code": high}


def _ports(low: int | None, high: int | None, protocol: str) -> Record:
    for value in (low, high):
        if value is not None and not -1 <= value <= 65535:
            raise _invalid_port(f"Invalid value for port {value}")
    if (low, high) in ((None, None), (-1, -1), (0, 0)):
        return {"port_min": None, "port_max": None}
    if protocol == "any":
        raise NeutronError(
            400, "SecurityGroupProtocolRequiredWithPorts", "Must also specify protocol if port range is given."
        )
    if protocol not in WITH_PORTS:
        raise NeutronError(
            400,
            "SecurityGroupInvalidProtocolForPort",
            f"Ports cannot be specified for protocol {protocol}. Ports are only supported for "
            f"{', '.join(WITH_PORTS).upper()}.",
        )
    for value in (low, high):
        if value is not None and value < 1:
            raise _invalid_port(f"Invalid value for port {value}")
    if low is None or high is None or low > high:
        raise NeutronError(
            400, "SecurityGroupInvalidPortRange", "For TCP/UDP protocols, port_range_min must be <= port_range_max"
        )
    return {"port_min": low, "port_max": high}
