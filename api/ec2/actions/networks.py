# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The networks that a project sees, as the parts of a default VPC that today's tools look for. To look at only.

Hypervisors route: a subnet reaches the others and the world through them, so that there is one route table, one
internet gateway and one network ACL, which let everything pass. Security groups are what filters.
"""

from __future__ import annotations

import typing as t

import netaddr

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.ec2 import ec2_tags
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network_records import Network

from ...web.context import current
from ...web.ledger import reading_ledger
from .. import filters, ids
from ..blueprint import action
from ..common import Asked, Body, subnets, tag_set, vpc_id, zones
from ..faults import invalid
from ..parameters import FILTERS, PAGING, TEXTS, Text
from ..views_instances import instance
from .instances import find as find_instances

VPC_FILTERS = {
    **filters.like("vpc-id cidr-block cidrBlock dhcp-options-id is-default isDefault owner-id state"),
    "cidr": "cidrBlock",
    "cidr-block-association.cidr-block": "cidrBlockAssociationSet.cidrBlock",
}
SUBNET_FILTERS = {
    **filters.like(
        "subnet-id vpc-id state availability-zone availabilityZone availability-zone-id cidr-block cidrBlock "
        "default-for-az defaultForAz map-public-ip-on-launch owner-id available-ip-address-count"
    ),
    "cidr": "cidrBlock",
    "ipv6-cidr-block-association.ipv6-cidr-block": "ipv6CidrBlockAssociationSet.ipv6CidrBlock",
}
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
DHCP_FILTERS = {**filters.like("dhcp-options-id owner-id"), "key": "dhcpConfigurationSet.key"}
INTERFACE_FILTERS = {
    **filters.like(
        "network-interface-id subnet-id vpc-id availability-zone mac-address private-ip-address owner-id "
        "status description interface-type"
    ),
    **filters.like("group-id group-name", element="groupSet"),
    **filters.like("instance-id attachment-id status device-index", at="attachment", element="attachment"),
    "addresses.private-ip-address": "privateIpAddressesSet.privateIpAddress",
    "association.public-ip": "association.publicIp",
}
_KEPT_BY_DHCP = 1  # address of each network that is the hosts'


class Place(t.NamedTuple):
    """What is there for the project that asks."""

    project: str
    vpc: str
    subnets: dict[str, Network]
    tags: dict[str, dict[str, str]]
    zone: str

    def tag_set(self, number: str) -> list[Body] | None:
        return tag_set(self.tags.get(number, {}))

    def only(self, asked: Asked, kind: str, element: str, name: str, paths: filters.Paths, rest: Body) -> Body:
        """The answer about what a project has one of: `kind` (ids.KINDS), its id as `name`, and `rest` about it."""
        number = ids.of(kind, self.project)
        body = {name: number, "ownerId": self.project, **rest, "tagSet": self.tag_set(number)}
        return filters.listed(asked, element, name, [body], paths, kind)


def _place() -> Place:
    project = current().project
    with reading_ledger() as connection:
        return Place(
            project,
            vpc_id(project),
            subnets(connection, project),
            ec2_tags.tags_of(connection, project),
            zones(connection)[0],
        )


@action("DescribeVpcs", "network:read", {"VpcId": TEXTS, "Filter": FILTERS, **PAGING})
def describe_vpcs(asked: Asked) -> Body:
    place = _place()
    blocks = [row.cidr for row in place.subnets.values() if row.cidr] or ["0.0.0.0/32"]
    v6 = [row.cidr_v6 for row in place.subnets.values()]
    body: Body = {
        "state": "available",
        "cidrBlock": blocks[0],
        "dhcpOptionsId": ids.of("dopt", place.project),
        "instanceTenancy": "default",
        "isDefault": True,
        "cidrBlockAssociationSet": _associations("vpc", place.project, "cidrBlock", blocks),
        "ipv6CidrBlockAssociationSet": _associations("vpc", place.project, "ipv6CidrBlock", v6),
    }
    return place.only(asked, "vpc", "vpcSet", "vpcId", VPC_FILTERS, body)


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


@action(
    "DescribeVpcAttribute",
    "network:read",
    {
        "VpcId": Text(),
        "Attribute": Text(choices=("enableDnsSupport", "enableDnsHostnames", "enableNetworkAddressUsageMetrics")),
    },
    ["VpcId", "Attribute"],
)
def describe_vpc_attribute(asked: Asked) -> Body:
    number = vpc_id(current().project)
    ids.find("vpc", asked["VpcId"], {number: number})
    on = {"enableDnsSupport": True, "enableDnsHostnames": True}.get(asked["Attribute"], False)
    return {"vpcId": number, asked["Attribute"]: {"value": on}}


@action("DescribeSubnets", "network:read", {"SubnetId": TEXTS, "Filter": FILTERS, **PAGING})
def describe_subnets(asked: Asked) -> Body:
    place = _place()
    bodies = [_subnet(place, number, row, not at) for at, (number, row) in enumerate(place.subnets.items())]
    return filters.listed(asked, "subnetSet", "subnetId", bodies, SUBNET_FILTERS, "subnet")


def _subnet(place: Place, number: str, row: Network, is_default: bool) -> Body:
    size = sum(netaddr.IPRange(first, last).size for first, last in row.ranges)
    return {
        "subnetId": number,
        "vpcId": place.vpc,
        "ownerId": place.project,
        "state": "available",
        "cidrBlock": row.cidr,
        "availableIpAddressCount": max(size - _KEPT_BY_DHCP, 0),
        "availabilityZone": place.zone,
        "availabilityZoneId": place.zone,
        "defaultForAz": is_default,
        "mapPublicIpOnLaunch": False,
        "assignIpv6AddressOnCreation": row.cidr_v6 is not None,
        "mapCustomerOwnedIpOnLaunch": False,
        "ipv6CidrBlockAssociationSet": _associations("subnet", row.uuid, "ipv6CidrBlock", [row.cidr_v6]),
        "enableDns64": False,
        "ipv6Native": False,
        "tagSet": tag_set({"Name": row.name, **place.tags.get(number, {})}),
    }


@action("DescribeRouteTables", "network:routers:read", {"RouteTableId": TEXTS, "Filter": FILTERS, **PAGING})
def describe_route_tables(asked: Asked) -> Body:
    place = _place()
    number = ids.of("rtb", place.project)
    own = {"destinationCidrBlock": None, "gatewayId": "local", "state": "active", "origin": "CreateRouteTable"}
    body: Body = {
        "vpcId": place.vpc,
        "propagatingVgwSet": [],
        "routeSet": [
            *({**own, "destinationCidrBlock": row.cidr} for row in place.subnets.values()),
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
    return place.only(asked, "rtb", "routeTableSet", "routeTableId", TABLE_FILTERS, body)


@action("DescribeInternetGateways", "network:routers:read", {"InternetGatewayId": TEXTS, "Filter": FILTERS, **PAGING})
def describe_internet_gateways(asked: Asked) -> Body:
    place = _place()
    body: Body = {"attachmentSet": [{"vpcId": place.vpc, "state": "available"}]}
    return place.only(asked, "igw", "internetGatewaySet", "internetGatewayId", GATEWAY_FILTERS, body)


@action("DescribeNetworkAcls", "network:read", {"NetworkAclId": TEXTS, "Filter": FILTERS, **PAGING})
def describe_network_acls(asked: Asked) -> Body:
    place = _place()
    number = ids.of("acl", place.project)
    body: Body = {
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
    return place.only(asked, "acl", "networkAclSet", "networkAclId", ACL_FILTERS, body)


@action("DescribeDhcpOptions", "network:read", {"DhcpOptionsId": TEXTS, "Filter": FILTERS, **PAGING})
def describe_dhcp_options(asked: Asked) -> Body:
    place = _place()
    first = next(iter(place.subnets.values()), None)
    configured = {
        "domain-name": [first.domain if first else "novalocal"],
        "domain-name-servers": (first.dns if first else []) or ["AmazonProvidedDNS"],
        "ntp-servers": first.ntp if first else [],
    }
    body: Body = {
        "dhcpConfigurationSet": [
            {"key": key, "valueSet": [{"value": value} for value in values]}
            for key, values in configured.items()
            if values
        ]
    }
    return place.only(asked, "dopt", "dhcpOptionsSet", "dhcpOptionsId", DHCP_FILTERS, body)


@action("DescribeNetworkInterfaces", "network:ports:read", {"NetworkInterfaceId": TEXTS, "Filter": FILTERS, **PAGING})
def describe_network_interfaces(asked: Asked) -> Body:
    place = _place()
    with reading_ledger() as connection:
        records = find_instances(connection, place.project, None)
    bodies = []
    for record in records:
        shown = instance(record)
        for interface in shown["networkInterfaceSet"]:
            attachment = {
                **interface["attachment"],
                "instanceId": shown["instanceId"],
                "instanceOwnerId": place.project,
            }
            bodies.append(
                {
                    **interface,
                    "availabilityZone": shown["placement"]["availabilityZone"],
                    "attachment": attachment,
                    "requesterManaged": False,
                    "tagSet": place.tag_set(interface["networkInterfaceId"]) or [],
                }
            )
    return filters.listed(asked, "networkInterfaceSet", "networkInterfaceId", bodies, INTERFACE_FILTERS, "eni")


@action(
    "DescribeNetworkInterfaceAttribute",
    "network:ports:read",
    {"NetworkInterfaceId": Text(), "Attribute": Text()},
    ["NetworkInterfaceId"],
)
def describe_network_interface_attribute(asked: Asked) -> Body:
    shown = describe_network_interfaces({"NetworkInterfaceId": [asked["NetworkInterfaceId"]]})
    (interface,) = shown["networkInterfaceSet"]
    attributes = {
        "description": {"description": {"value": interface["description"]}},
        "groupSet": {"groupSet": interface["groupSet"]},
        "sourceDestCheck": {"sourceDestCheck": {"value": True}},
        "attachment": {"attachment": interface["attachment"]},
    }
    name = asked.get("Attribute", "description")
    if name not in attributes:
        raise invalid("attribute", name)
    return {"networkInterfaceId": interface["networkInterfaceId"], **attributes[name]}
