# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Forms of networks, security groups with their rules, and floating IPs."""

from __future__ import annotations

import typing as t

from flask import current_app

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import (
    floating_ips,
    networks,
    security_groups,
    subnets,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network.networks import NetworkValues
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network.security_groups import (
    RuleRequest,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.carriers import (
    ATTRIBUTES as PROVIDER,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.group_records import (
    DEFAULT_GROUP,
    groups_of,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.pool_records import pools_seen

from ..web import policy
from ..web.bodies import the_one
from ..work.networks import floating_ip, network_row
from .forms import DESCRIPTION, NAME, Choice, Field, Form, Thing, Values, forms_of
from .rendering import rule_text

WRITE, FOR_ALL, OPERATE = "network:write", "network:create:shared", "network:operate"


def _texts(*texts: str) -> t.Callable[[Call, Thing], list[Choice]]:
    """Return options that are always the same: each a text, or "value shown otherwise"."""
    pairs = [text.partition(" ") for text in texts]
    return lambda _call, _thing: [(value, shown or value) for value, _space, shown in pairs]


# --- Networks -------------------------------------------------------------------------------------------------------


def _network(call: Call, number: str) -> Thing:
    row = network_row(call.connection, number)
    return Thing(row.display_name or row.name, row)


def _interfaces(_call: Call, _thing: Thing) -> list[Choice]:
    return [(name, name) for name in sorted(current_app.extensions["settings"].interfaces)]


def _create_network(call: Call, _thing: Thing, values: Values) -> None:
    asked: NetworkValues = {
        "name": values["name"],
        "description": values["description"],
        "is_default": bool(values.get("is_default")),
        "shared": bool(values.get("shared")),
    }
    if values.get("vlan") is not None:
        segment = ("vlan", values["interface"] or None, values["vlan"])
        asked["provider"] = dict(zip(PROVIDER, segment))
    number = networks.create(call, {}, asked, current_app.extensions["settings"])
    row = network_row(call.connection, number)
    subnets.create(call, row, {}, {"version": 6 if ":" in values["cidr"] else 4, "cidr": values["cidr"]})


def _change_default(is_default: bool) -> t.Callable[[Call, Thing, Values], None]:
    def do(call: Call, thing: Thing, _values: Values) -> None:
        row = network_row(call.connection, thing.record.uuid)
        networks.update(call, row, {"is_default": is_default}, current_app.extensions["settings"])

    return do


def _delete_network(call: Call, thing: Thing, _values: Values) -> None:
    networks.delete(call, network_row(call.connection, thing.record.uuid))


def _goes_with_network(_call: Call, thing: Thing) -> list[str]:
    row = thing.record
    ranges = ", ".join(filter(None, (row.cidr, row.cidr_v6))) or "no range"
    return [f"The network with its addresses: {ranges}.", "It is refused while an instance or a router is on it."]


NETWORK_FORMS = forms_of(
    WRITE,
    Form(
        "/networks/new",
        "Create a network…",
        "Create a network",
        _create_network,
        (
            NAME,
            Field("cidr", "Range of addresses", note="(10.1.0.0/24, or one of IPv6)", required=True, most=64),
            DESCRIPTION,
            Field("vlan", "VLAN", "number", "(none: as the cloud carries networks)", entry=FOR_ALL, least=1),
            Field("interface", "Its interface of the hosts", "choice", options=_interfaces, none="Any", entry=FOR_ALL),
            Field("shared", "For every project", "check", entry=FOR_ALL),
            Field("is_default", "The default, for instances that name no network", "check", entry=FOR_ALL),
        ),
    ),
    Form(
        "/networks/<number>/make-default",
        "Make it the default…",
        "Make it the default",
        _change_default(True),
        find=_network,
        fits=lambda row: not row["is_default"],
        entry=FOR_ALL,
    ),
    Form(
        "/networks/<number>/end-default",
        "No longer the default…",
        "No longer the default",
        _change_default(False),
        find=_network,
        fits=lambda row: row["is_default"],
        entry=FOR_ALL,
    ),
    Form(
        "/networks/<number>/delete",
        "Delete…",
        "Delete the network",
        _delete_network,
        find=_network,
        goes=_goes_with_network,
        fits=lambda row: row["tenant"] and (row["owner"] != "" or policy.allowed(OPERATE)),
    ),
)


# --- Security groups ------------------------------------------------------------------------------------------------


def _group(call: Call, number: str) -> Thing:
    missing = NotFoundError(f"Security group {number[:64]} could not be found.")
    row = the_one(groups_of(call.connection, call.project, number), "uuid", number, missing)
    return Thing(row["name"], row)


def _create_group(call: Call, _thing: Thing, values: Values) -> None:
    security_groups.create(call, {}, values["name"], values["description"])


def _delete_group(call: Call, thing: Thing, _values: Values) -> None:
    security_groups.delete(call, thing.record["uuid"])


def _goes_with_group(_call: Call, thing: Thing) -> list[str]:
    count = len(thing.record["rules"])
    return [
        f"Its {count} rule{'' if count == 1 else 's'}, and the rules of other groups that name it.",
        "It is refused while an instance is in it.",
    ]


def _add_rule(call: Call, thing: Thing, values: Values) -> None:
    icmp = values["protocol"].startswith("icmp")
    names = ("icmp_type", "icmp_code") if icmp else ("port_min", "port_max")
    low = values["port_min"]
    high = values["port_max"] if values["port_max"] is not None or icmp else low
    rule = RuleRequest(
        direction=values["direction"],
        ethertype=values["ethertype"],
        protocol=values["protocol"],
        cidr=values["cidr"] or None,
        remote_group_uuid=values["remote_group"] or None,
        **dict(zip(names, (low, high))),
    )
    security_groups.add_rules(call, thing.record["uuid"], [rule])


def _groups(call: Call, _thing: Thing) -> list[Choice]:
    groups = groups_of(call.connection, call.project)
    return sorted(((group["uuid"], group["name"]) for group in groups), key=lambda pair: pair[1])


def _rules(call: Call, thing: Thing) -> list[Choice]:
    names = dict(_groups(call, thing))
    return [(rule["id"], rule_text(rule, names)) for rule in thing.record["rules"]]


def _remove_rule(call: Call, _thing: Thing, values: Values) -> None:
    security_groups.delete_rules(call, [values["rule"]])


GROUP_FORMS = forms_of(
    "network:security_groups:write",
    Form("/security-groups/new", "Create a group…", "Create a security group", _create_group, (NAME, DESCRIPTION)),
    Form(
        "/security-groups/<number>/add-rule",
        "Add a rule…",
        "Add a rule",
        _add_rule,
        (
            Field("direction", "Direction", "choice", options=_texts("ingress in", "egress out"), required=True),
            Field("ethertype", "IP version", "choice", options=_texts("IPv4", "IPv6"), required=True),
            Field(
                "protocol",
                "Protocol",
                "choice",
                options=_texts("tcp", "udp", "icmp", "icmpv6", "any everything"),
                required=True,
            ),
            Field("port_min", "First port", "number", "(of ICMP: the type; none: all)"),
            Field("port_max", "Last port", "number", "(of ICMP: the code; none: the first alone)"),
            Field("cidr", "The other side's addresses", note="(10.0.0.0/8; none: everybody)", most=64),
            Field("remote_group", "Or the members of a group", "choice", options=_groups, none="None"),
        ),
        find=_group,
    ),
    Form(
        "/security-groups/<number>/remove-rule",
        "Remove a rule…",
        "Remove a rule",
        _remove_rule,
        (Field("rule", "Rule", "choice", options=_rules, required=True),),
        find=_group,
        fits=lambda group: bool(group["rules"]),
    ),
    Form(
        "/security-groups/<number>/delete",
        "Delete…",
        "Delete the security group",
        _delete_group,
        find=_group,
        goes=_goes_with_group,
        fits=lambda group: group["name"] != DEFAULT_GROUP,
    ),
)


# --- Floating IPs ---------------------------------------------------------------------------------------------------


def _floating_ip(call: Call, number: str) -> Thing:
    row = floating_ip(call.connection, number)
    return Thing(row.address, row)


def _pools(call: Call, _thing: Thing) -> list[Choice]:
    return [(pool.name, pool.shown_name) for pool in pools_seen(call.connection)]


def _ports(call: Call, _thing: Thing) -> list[Choice]:
    """Offer the addresses of the project's servers."""
    ports = network_records.interfaces_of(call.connection, call.project)
    seen = [port for port in ports if port.ip is not None and port.instance_name]
    return [(port.id, f"{port.instance_name} {port.ip}") for port in seen]


def _associate(call: Call, thing: Thing, values: Values) -> None:
    ports = network_records.interfaces_of(call.connection, call.project)
    port = next((port for port in ports if port.id == values["port"]), None)
    if port is None:
        raise NotFoundError(f"Port {values['port']} could not be found.")
    floating_ips.associate(call, floating_ip(call.connection, thing.record.id), port)


def _dissociate(call: Call, thing: Thing, _values: Values) -> None:
    floating_ips.associate(call, floating_ip(call.connection, thing.record.id), None)


def _release(call: Call, thing: Thing, _values: Values) -> None:
    floating_ips.release(call, floating_ip(call.connection, thing.record.id))


def _allocate(call: Call, _thing: Thing, values: Values) -> None:
    floating_ips.create(call, {}, {"pool": values["pool"]})


FLOATING_FORMS = forms_of(
    "network:floating_ips:write",
    Form(
        "/floating-ips/new",
        "Allocate an address…",
        "Allocate a floating IP",
        _allocate,
        (Field("pool", "Pool", "choice", options=_pools, required=True),),
    ),
    Form(
        "/floating-ips/<number>/associate",
        "Associate…",
        "Associate the address",
        _associate,
        (Field("port", "Leads to", "choice", options=_ports, required=True),),
        find=_floating_ip,
        fits=lambda row: row.vif_id is None,
    ),
    Form(
        "/floating-ips/<number>/dissociate",
        "Dissociate…",
        "Dissociate the address",
        _dissociate,
        find=_floating_ip,
        fits=lambda row: row.vif_id is not None,
    ),
    Form(
        "/floating-ips/<number>/release",
        "Release…",
        "Release the address",
        _release,
        find=_floating_ip,
        goes=lambda _call, thing: [f"The address {thing.name}: another project may get it."],
    ),
)
