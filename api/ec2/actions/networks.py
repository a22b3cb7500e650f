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
    "vpc-id": "vpcId",
    "cidr": "cidrBlock",
    "cidr-block": "cidrBlock",
    "cidrBlock": "cidrBlock",
    "cidr-block-association.cidr-block": "cidrBlockAssociationSet.cidrBlock",
    "dhcp-options-id": "dhcpOptionsId",
    "is-default": "isDefault",
    "isDefault": "isDefault",
    "owner-id": "ownerId",
    "state": "state",
}
SUBNET_FILTERS = {
    "subnet-id": "subnetId",
    "vpc-id": "vpcId",
    "state": "state",
    "availability-zone": "availabilityZone",
    "availabilityZone": "availabilityZone",
    "availability-zone-id": "availabilityZoneId",
    "cidr": "cidrBlock",
    "cidr-block": "cidrBlock",
    "cidrBlock": "cidrBlock",
    "default-for-az": "defaultForAz",
    "defaultForAz": "defaultForAz",
    "map-public-ip-on-launch": "mapPublicIpOnLaunch",
    "owner-id": "ownerId",
    "available-ip-address-count": "availableIpAddressCount",
    "ipv6-cidr-block-association.ipv6-cidr-block": "ipv6CidrBlockAssociationSet.ipv6CidrBlock",
}
TABLE_FILTERS = {
    "route-table-id": "routeTableId",
    "vpc-id": "vpcId",
    "owner-id": "ownerId",
    "association.main": "associationSet.main",
    "association.subnet-id": "associationSet.subnetId",
    "association.route-table-id": "associationSet.routeTableId",
    "association.route-table-association-id": "associationSet.routeTableAssociationId",
    "association.gateway-id": "associationSet.gatewayId",
    "route.destination-cidr-block": "routeSet.destinationCidrBlock",
    "route.gateway-id": "routeSet.gatewayId",
    "route.state": "routeSet.state",
}
GATEWAY_FILTERS = {
    "internet-gateway-id": "internetGatewayId",
    "attachment.vpc-id": "attachmentSet.vpcId",
    "attachment.state": "attachmentSet.state",
    "owner-id": "ownerId",
}
ACL_FILTERS = {
    "network-acl-id": "networkAclId",
    "vpc-id": "vpcId",
    "default": "default",
    "owner-id": "ownerId",
    "association.subnet-id": "associationSet.subnetId",
    "association.network-acl-id": "associationSet.networkAclId",
}
DHCP_FILTERS = {"dhcp-options-id": "dhcpOptionsId", "key": "dhcpConfigurationSet.key", "owner-id": "ownerId"}
INTERFACE_FILTERS = {
    "network-interface-id": "networkInterfaceId",
    "subnet-id": "subnetId",
    "vpc-id": "vpcId",
    "availability-zone": "availabilityZone",
    "mac-address": "macAddress",
    "private-ip-address": "privateIpAddress",
    "addresses.private-ip-address": "privateIpAddressesSet.privateIpAddress",
    "association.public-ip": "association.publicIp",
    "group-id": "groupSet.groupId",
    "group-name": "groupSet.groupName",
    "owner-id": "ownerId",
    "status": "status",
    "attachment.instance-id": "attachment.instanceId",
    "attachment.attachment-id": "attachment.attachmentId",
    "attachment.status": "attachment.status",
    "attachment.device-index": "attachment.deviceIndex",
    "description": "description",
    "interface-type": "interfaceType",
}
_KEPT_BY_DHCP = 1  # address of each network that is the hosts'


def _listed(
    asked: Asked, element: str, number: str, wanted: str, kind: str, bodies: list[Body], paths: filters.Paths
) -> Body:
    """The answer to a Describe...: of `bodies` those with the ids in the parameter `wanted`, filtered, by pages."""
    if wanted in asked:
        bodies = ids.find_all(kind, asked[wanted], {body[number]: body for body in bodies})
    bodies = sorted(bodies, key=lambda body: str(body[number]))
    found, token = filters.page(filters.filtered(bodies, asked, paths), asked, lambda body: str(body[number]))
    return {element: found, "nextToken": token}


class Place(t.NamedTuple):
    """What is there for the project that asks."""

    project: str
    vpc: str
    subnets: dict[str, Network]
    tags: dict[str, dict[str, str]]
    zone: str

    def tag_set(self, number: str) -> list[Body] | None:
        return tag_set(self.tags.get(number, {}))


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
    v6 = [row.cidr_v6 for row in place.subnets.values() if row.cidr_v6]
    body: Body = {
        "vpcId": place.vpc,
        "ownerId": place.project,
        "state": "available",
        "cidrBlock": blocks[0],
        "dhcpOptionsId": ids.of("dopt", place.project),
        "instanceTenancy": "default",
        "isDefault": True,
        "cidrBlockAssociationSet": [
            {
                "associationId": ids.named("vpc-cidr-assoc", place.project, block),
                "cidrBlock": block,
                "cidrBlockState": {"state": "associated"},
            }
            for block in blocks
        ],
        "ipv6CidrBlockAssociationSet": [
            {
                "associationId": ids.named("vpc-cidr-assoc", place.project, block),
                "ipv6CidrBlock": block,
                "ipv6CidrBlockState": {"state": "associated"},
            }
            for block in v6
        ],
        "tagSet": place.tag_set(place.vpc),
    }
    return _listed(asked, "vpcSet", "vpcId", "VpcId", "vpc", [body], VPC_FILTERS)


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
    return _listed(asked, "subnetSet", "subnetId", "SubnetId", "subnet", bodies, SUBNET_FILTERS)


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
        "ipv6CidrBlockAssociationSet": [
            {
                "associationId": ids.named("subnet-cidr-assoc", row.uuid, row.cidr_v6),
                "ipv6CidrBlock": row.cidr_v6,
                "ipv6CidrBlockState": {"state": "associated"},
            }
        ]
        if row.cidr_v6
        else [],
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
        "routeTableId": number,
        "vpcId": place.vpc,
        "ownerId": place.project,
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
        "tagSet": place.tag_set(number),
    }
    return _listed(asked, "routeTableSet", "routeTableId", "RouteTableId", "rtb", [body], TABLE_FILTERS)


@action("DescribeInternetGateways", "network:routers:read", {"InternetGatewayId": TEXTS, "Filter": FILTERS, **PAGING})
def describe_internet_gateways(asked: Asked) -> Body:
    place = _place()
    number = ids.of("igw", place.project)
    body: Body = {
        "internetGatewayId": number,
        "ownerId": place.project,
        "attachmentSet": [{"vpcId": place.vpc, "state": "available"}],
        "tagSet": place.tag_set(number),
    }
    return _listed(
        asked, "internetGatewaySet", "internetGatewayId", "InternetGatewayId", "igw", [body], GATEWAY_FILTERS
    )


@action("DescribeNetworkAcls", "network:read", {"NetworkAclId": TEXTS, "Filter": FILTERS, **PAGING})
def describe_network_acls(asked: Asked) -> Body:
    place = _place()
    number = ids.of("acl", place.project)
    body: Body = {
        "networkAclId": number,
        "vpcId": place.vpc,
        "ownerId": place.project,
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
        "tagSet": place.tag_set(number),
    }
    return _listed(asked, "networkAclSet", "networkAclId", "NetworkAclId", "acl", [body], ACL_FILTERS)


@action("DescribeDhcpOptions", "network:read", {"DhcpOptionsId": TEXTS, "Filter": FILTERS, **PAGING})
def describe_dhcp_options(asked: Asked) -> Body:
    place = _place()
    first = next(iter(place.subnets.values()), None)
    number = ids.of("dopt", place.project)
    configured = {
        "domain-name": [first.domain if first else "novalocal"],
        "domain-name-servers": (first.dns if first else []) or ["AmazonProvidedDNS"],
        "ntp-servers": first.ntp if first else [],
    }
    body: Body = {
        "dhcpOptionsId": number,
        "ownerId": place.project,
        "dhcpConfigurationSet": [
            {"key": key, "valueSet": [{"value": value} for value in values]}
            for key, values in configured.items()
            if values
        ],
        "tagSet": place.tag_set(number),
    }
    return _listed(asked, "dhcpOptionsSet", "dhcpOptionsId", "DhcpOptionsId", "dopt", [body], DHCP_FILTERS)


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
    return _listed(
        asked, "networkInterfaceSet", "networkInterfaceId", "NetworkInterfaceId", "eni", bodies, INTERFACE_FILTERS
    )


@action(
    "DescribeNetworkInterfaceAttribute",
    "network:ports:read",
    {"NetworkInterfaceId": Text(), "Attribute": Text()},
    ["NetworkInterfaceId"],
)
def describe_network_interface_attribute(asked: Asked) -> Body:
    shown = describe_network_interfaces({"NetworkInterfaceId": [asked["NetworkInterfaceId"]]})
    (found,) = shown["networkInterfaceSet"]
    attributes = {
        "description": {"description": {"value": found["description"]}},
        "groupSet": {"groupSet": found["groupSet"]},
        "sourceDestCheck": {"sourceDestCheck": {"value": True}},
        "attachment": {"attachment": found["attachment"]},
    }
    name = asked.get("Attribute", "description")
    if name not in attributes:
        raise invalid("attribute", name)
    return {"networkInterfaceId": found["networkInterfaceId"], **attributes[name]}
