# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The networks that a project sees, as the parts of a default VPC that today's tools look for. To look at only.

Hypervisors route: a subnet reaches the others and the world through them, so that there is one route table, one
internet gateway and one network ACL, which let everything pass. Security groups are what filters.
"""

from __future__ import annotations

import typing as t

import netaddr

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.ec2 import ec2_attributes

from ...web.context import Caller
from .. import filters, ids
from ..blueprint import reads
from ..common import Body, Parameters, VpcSubnet, subnets, tag_set, vpc_id, zones
from ..faults import invalid
from ..parameters import Text, an_attribute
from ..views_instances import instance
from .instances import find as find_instances

VPC_FILTERS = filters.like(
    "vpc-id cidr-block cidrBlock cidr=cidrBlock dhcp-options-id is-default isDefault owner-id state "
    "cidr-block-association.cidr-block=cidrBlockAssociationSet.cidrBlock"
)
SUBNET_FILTERS = filters.like(
    "subnet-id vpc-id state availability-zone availabilityZone availability-zone-id cidr-block cidrBlock "
    "cidr=cidrBlock default-for-az defaultForAz map-public-ip-on-launch owner-id available-ip-address-count "
    "ipv6-cidr-block-association.ipv6-cidr-block=ipv6CidrBlockAssociationSet.ipv6CidrBlock"
)
TABLE_FILTERS = {
    **filters.like("route-table-id vpc-id owner-id"),
    **filters.like(
        "main subnet-id route-table-id route-table-association-id gateway-id",
        at="association",
        element="associationSet",
    ),
    **filters.like("destination-cidr-block gateway-id state", at="route", element="routeSet"),
}
GATEWAY_FILTERS = {
    **filters.like("internet-gateway-id owner-id"),
    **filters.like("vpc-id state", at="attachment", element="attachmentSet"),
}
ACL_FILTERS = {
    **filters.like("network-acl-id vpc-id default owner-id"),
    **filters.like("subnet-id network-acl-id", at="association", element="associationSet"),
}
DHCP_FILTERS = filters.like("dhcp-options-id owner-id key=dhcpConfigurationSet.key")
INTERFACE_FILTERS = {
    **filters.like(
        "network-interface-id subnet-id vpc-id availability-zone mac-address private-ip-address owner-id status "
        "description interface-type addresses.private-ip-address=privateIpAddressesSet.privateIpAddress "
        "association.public-ip=association.publicIp "
        "addresses.association.public-ip=privateIpAddressesSet.association.publicIp"
    ),
    **filters.like("group-id group-name", element="groupSet"),
    **filters.like("instance-id attachment-id status device-index", at="attachment", element="attachment"),
}
_KEPT_BY_DHCP = 1  # address of each network that is the hosts'


class Place(t.NamedTuple):
    """The VPC, subnets and tags of the project that asks."""

    project: str
    vpc: str
    subnets: dict[str, VpcSubnet]
    tags: dict[str, dict[str, str]]


def _place(connection: Connection, project: str) -> Place:
    return Place(project, vpc_id(project), subnets(connection, project), ec2_attributes.tags_of(connection, project))


def _describes_one(
    name: str, operation: str, what: str, paths: filters.Paths, kind: str
) -> t.Callable[[t.Callable[[Place], Body]], None]:
    """Build a decorator like filters.describes(), for what a project has once: the function returns its fields."""

    def decorate(view: t.Callable[[Place], Body]) -> None:
        @filters.describes(name, operation, what, paths, kind)
        def describe(connection: Connection, caller: Caller, parameters: Parameters) -> list[Body]:
            place = _place(connection, caller.project)
            own = ids.of(kind, place.project)
            return [
                {f"{what}Id": own, "ownerId": place.project, **view(place), "tagSet": tag_set(place.tags.get(own, {}))}
            ]

    return decorate


@_describes_one("DescribeVpcs", "network:read", "vpc", VPC_FILTERS, "vpc")
def _vpc(place: Place) -> Body:
    blocks = [row.subnet.cidr for row in place.subnets.values()] or ["0.0.0.0/32"]
    v6 = dict.fromkeys(row.network.cidr_v6 for row in place.subnets.values())
    return {
        "state": "available",
        "cidrBlock": blocks[0],
        "dhcpOptionsId": ids.of("dopt", place.project),
        "instanceTenancy": "default",
        "isDefault": True,
        "cidrBlockAssociationSet": _associations("vpc", place.project, "cidrBlock", blocks),
        "ipv6CidrBlockAssociationSet": _associations("vpc", place.project, "ipv6CidrBlock", v6),
    }


def _associations(kind: str, owner: str, element: str, blocks: t.Iterable[str | None]) -> list[Body]:
    """The `element` that each of these blocks of addresses is of its owner, a VPC or subnet; None is no block."""
    return [
        {
            "associationId": ids.named(f"{kind}-cidr-assoc", owner, block),
            element: block,
            f"{element}State": {"state": "associated"},
        }
        for block in blocks
        if block
    ]


VPC_ATTRIBUTES = ("enableDnsSupport", "enableDnsHostnames", "enableNetworkAddressUsageMetrics")


@reads("DescribeVpcAttribute", "network:read", *an_attribute("VpcId", VPC_ATTRIBUTES))
def describe_vpc_attribute(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    number = vpc_id(caller.project)
    ids.find("vpc", parameters["VpcId"], {number: number})
    return {"vpcId": number, parameters["Attribute"]: {"value": parameters["Attribute"].startswith("enableDns")}}


@filters.describes("DescribeSubnets", "network:read", "subnet", SUBNET_FILTERS, "subnet")
def describe_subnets(connection: Connection, caller: Caller, parameters: Parameters) -> t.Iterable[Body]:
    place, zone = _place(connection, caller.project), zones(connection)[0]
    return [_subnet(place, zone, number, row, not at) for at, (number, row) in enumerate(place.subnets.items())]


def _subnet(place: Place, zone: str, number: str, vpc_subnet: VpcSubnet, is_default: bool) -> Body:
    row, subnet = vpc_subnet
    size = sum(netaddr.IPRange(first, last).size for first, last in (subnet.pools if subnet.position else row.ranges))
    # guests of further ones have an address of the network's IPv6, too: it is shown with the first
    v6 = None if subnet.position else row.cidr_v6
    return {
        "subnetId": number,
        "vpcId": place.vpc,
        "ownerId": place.project,
        "state": "available",
        "cidrBlock": subnet.cidr,
        "availableIpAddressCount": max(size - _KEPT_BY_DHCP, 0),
        **dict.fromkeys(("availabilityZone", "availabilityZoneId"), zone),
        "defaultForAz": is_default,
        "mapPublicIpOnLaunch": False,
        "assignIpv6AddressOnCreation": v6 is not None,
        "mapCustomerOwnedIpOnLaunch": False,
        "ipv6CidrBlockAssociationSet": _associations("subnet", row.uuid, "ipv6CidrBlock", [v6]),
        "enableDns64": False,
        "ipv6Native": False,
        "tagSet": tag_set({"Name": (subnet.name if subnet.position else "") or row.name, **place.tags.get(number, {})}),
    }


@_describes_one("DescribeRouteTables", "network:routers:read", "routeTable", TABLE_FILTERS, "rtb")
def _route_table(place: Place) -> Body:
    number = ids.of("rtb", place.project)
    own = {"destinationCidrBlock": None, "gatewayId": "local", "state": "active", "origin": "CreateRouteTable"}
    return {
        "vpcId": place.vpc,
        "propagatingVgwSet": [],
        "routeSet": [
            *({**own, "destinationCidrBlock": row.subnet.cidr} for row in place.subnets.values()),
            {
                "destinationCidrBlock": "0.0.0.0/0",
                "gatewayId": ids.of("igw", place.project),
                "state": "active",
                "origin": "CreateRoute",
            },
        ],
        "associationSet": [
            {
                "routeTableAssociationId": ids.of("rtbassoc", place.project),
                "routeTableId": number,
                "main": True,
                "associationState": {"state": "associated"},
            }
        ],
    }


@_describes_one("DescribeInternetGateways", "network:routers:read", "internetGateway", GATEWAY_FILTERS, "igw")
def _internet_gateway(place: Place) -> Body:
    return {"attachmentSet": [{"vpcId": place.vpc, "state": "available"}]}


@_describes_one("DescribeNetworkAcls", "network:read", "networkAcl", ACL_FILTERS, "acl")
def _network_acl(place: Place) -> Body:
    number = ids.of("acl", place.project)
    return {
        "vpcId": place.vpc,
        "default": True,
        "entrySet": [
            {"ruleNumber": 100, "protocol": "-1", "ruleAction": "allow", "egress": egress, "cidrBlock": "0.0.0.0/0"}
            for egress in (True, False)
        ],
        "associationSet": [
            {
                "networkAclAssociationId": ids.named("aclassoc", number, subnet),
                "networkAclId": number,
                "subnetId": subnet,
            }
            for subnet in place.subnets
        ],
    }


@_describes_one("DescribeDhcpOptions", "network:read", "dhcpOptions", DHCP_FILTERS, "dopt")
def _dhcp_options(place: Place) -> Body:
    first = next((row.network for row in place.subnets.values()), None)
    configured = {
        "domain-name": [first.domain if first else "novalocal"],
        "domain-name-servers": (first.dns if first else []) or ["AmazonProvidedDNS"],
        "ntp-servers": first.ntp if first else [],
    }
    return {
        "dhcpConfigurationSet": [
            {"key": key, "valueSet": [{"value": value} for value in values]}
            for key, values in configured.items()
            if values
        ]
    }


@filters.describes("DescribeNetworkInterfaces", "network:ports:read", "networkInterface", INTERFACE_FILTERS, "eni")
def describe_network_interfaces(connection: Connection, caller: Caller, parameters: Parameters) -> list[Body]:
    tags = ec2_attributes.tags_of(connection, caller.project)
    return [
        {
            **interface,
            "availabilityZone": shown["placement"]["availabilityZone"],
            "attachment": {
                **interface["attachment"],
                "instanceId": shown["instanceId"],
                "instanceOwnerId": caller.project,
            },
            "requesterManaged": False,
            "tagSet": tag_set(tags.get(interface["networkInterfaceId"], {})) or [],
        }
        for shown in map(instance, find_instances(connection, caller.project, None))
        for interface in shown["networkInterfaceSet"]
    ]


@reads(
    "DescribeNetworkInterfaceAttribute",
    "network:ports:read",
    {"NetworkInterfaceId": Text(), "Attribute": Text()},
    ["NetworkInterfaceId"],
)
def describe_network_interface_attribute(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    bodies = describe_network_interfaces(connection, caller, parameters)
    number = parameters["NetworkInterfaceId"]
    interface = ids.find("eni", number, {body["networkInterfaceId"]: body for body in bodies})
    attributes = {
        "description": {"value": interface["description"]},
        "groupSet": interface["groupSet"],
        "sourceDestCheck": {"value": True},
        "attachment": interface["attachment"],
    }
    name = parameters.get("Attribute", "description")
    if name not in attributes:
        raise invalid("attribute", name)
    return {"networkInterfaceId": number, name: attributes[name]}
