# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Regions, zones, instance types and account attributes: places and sizes of instances."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.flavor_records import (
    SeenFlavor,
    flavors_seen,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import quota_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import hypervisor_records

from ...web import policy
from ...web.addresses import base_url
from ...web.context import Caller
from .. import filters
from ..blueprint import reads
from ..common import REGION, Body, Parameters, vpc_id, zones
from ..faults import Ec2Error, invalid
from ..parameters import FILTERS, LISTING, TEXTS, Boolean, Text
from ..views_instances import ROOT_DEVICE_TYPE

ZONE_FILTERS = filters.like("zone-name zone-id region-name group-name opt-in-status zone-type state=zoneState")
REGION_FILTERS = filters.like("region-name opt-in-status endpoint=regionEndpoint")
TYPE_FILTERS = filters.like(
    "instance-type current-generation bare-metal free-tier-eligible hypervisor instance-storage-supported "
    "hibernation-supported burstable-performance-supported memory-info.size-in-mib=memoryInfo.sizeInMiB "
    "vcpu-info.default-vcpus=vCpuInfo.defaultVCpus vcpu-info.default-cores=vCpuInfo.defaultCores "
    "processor-info.supported-architecture=processorInfo.supportedArchitectures "
    "supported-root-device-type=supportedRootDeviceTypes supported-usage-class=supportedUsageClasses "
    "supported-virtualization-type=supportedVirtualizationTypes supported-boot-mode=supportedBootModes"
)
OFFERING_FILTERS = filters.like("instance-type location")
ARCHITECTURE = "x86_64"
GIB = 1024  # MiB


@reads(
    "DescribeAvailabilityZones",
    "compute:zones:read",
    {"ZoneName": TEXTS, "ZoneId": TEXTS, "AllAvailabilityZones": Boolean(), "Filter": FILTERS},
)
def describe_availability_zones(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    hosts_by_zone = hypervisor_records.zones(connection)
    bodies: list[Body] = [
        {
            "zoneName": name,
            "zoneState": "available" if any(host["active"] for host in hosts.values()) else "unavailable",
            "regionName": REGION,
            "zoneId": name,
            "groupName": REGION,
            "networkBorderGroup": REGION,
            "zoneType": "availability-zone",
            "optInStatus": "opt-in-not-required",
            "messageSet": [],
        }
        for name, hosts in hosts_by_zone.items()
    ]
    bodies = _named(bodies, parameters.get("ZoneName", []), "zoneName", "availability zone")
    bodies = _named(bodies, parameters.get("ZoneId", []), "zoneId", "availability zone ID")
    return {"availabilityZoneInfo": filters.filtered(bodies, parameters, ZONE_FILTERS)}


@reads("DescribeRegions", "compute:zones:read", {"RegionName": TEXTS, "AllRegions": Boolean(), "Filter": FILTERS})
def describe_regions(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    bodies: list[Body] = [
        {
            "regionName": REGION,
            "regionEndpoint": base_url().partition("://")[2] + request.path,
            "optInStatus": "opt-in-not-required",
        }
    ]
    bodies = _named(bodies, parameters.get("RegionName", []), "regionName", "region")
    return {"regionInfo": filters.filtered(bodies, parameters, REGION_FILTERS)}


def _named(bodies: list[Body], names: list[str], element: str, what: str) -> list[Body]:
    if not names:
        return bodies
    there = {body[element] for body in bodies}
    for name in names:
        if name not in there:
            raise Ec2Error("InvalidParameterValue", f"Invalid {what}: [{name[:60]}]")
    return [body for body in bodies if body[element] in names]


@reads("DescribeAccountAttributes", "compute:limits", {"AttributeName": TEXTS})
def describe_account_attributes(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    limits = quota_records.quota_limits(connection, caller.project)
    attributes = {
        "supported-platforms": "VPC",
        "default-vpc": vpc_id(caller.project),
        "max-instances": limits["instances"],
        "max-elastic-ips": limits["floating_ips"],
        "vpc-max-elastic-ips": limits["floating_ips"],
        "vpc-max-security-groups-per-interface": limits["security_groups"],
    }
    names = parameters.get("AttributeName") or list(attributes)
    for name in names:
        if name not in attributes:
            raise invalid("attributeName", name)
    return {
        "accountAttributeSet": [
            {"attributeName": name, "attributeValueSet": [{"attributeValue": attributes[name]}]} for name in names
        ]
    }


@filters.describes(
    "DescribeInstanceTypes",
    "compute:flavors:read",
    "instanceType",
    TYPE_FILTERS,
    number="instanceType",
    InstanceType=TEXTS,
)
def describe_instance_types(connection: Connection, caller: Caller, parameters: Parameters) -> t.Iterable[Body]:
    flavors = flavors_seen(connection, policy.allowed("compute:flavors:private"), caller.project)
    by_name = {flavor["name"]: flavor for flavor in flavors}
    names = parameters.get("InstanceType") or list(by_name)
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise Ec2Error(
            "InvalidInstanceType", f"The following supplied instance types do not exist: [{', '.join(unknown)[:200]}]"
        )
    return [_type(by_name[name]) for name in set(names)]


def _type(flavor: SeenFlavor) -> Body:
    storage = flavor["root_gb"] + flavor["ephemeral_gb"] + -(-flavor["swap_mb"] // GIB)
    cpus = flavor["vcpus"]
    return {
        "instanceType": flavor["name"],
        "currentGeneration": True,
        "freeTierEligible": False,
        "supportedUsageClasses": ["on-demand"],
        "supportedRootDeviceTypes": [ROOT_DEVICE_TYPE],
        "supportedVirtualizationTypes": ["hvm"],
        "bareMetal": False,
        "processorInfo": {"supportedArchitectures": [ARCHITECTURE]},
        "vCpuInfo": {"defaultVCpus": cpus, "defaultCores": cpus, "defaultThreadsPerCore": 1},
        "memoryInfo": {"sizeInMiB": flavor["memory_mb"]},
        "instanceStorageSupported": True,
        "instanceStorageInfo": {
            "totalSizeInGB": storage,
            "disks": [{"sizeInGB": flavor["root_gb"], "count": 1, "type": "hdd"}],
            "nvmeSupport": "unsupported",
        },
        "ebsInfo": {"ebsOptimizedSupport": "unsupported", "encryptionSupport": "unsupported"},
        "networkInfo": {
            "networkPerformance": "Moderate",
            "maximumNetworkInterfaces": 10,
            "ipv4AddressesPerInterface": 1,
            "ipv6AddressesPerInterface": 1,
            "ipv6Supported": True,
            "enaSupport": "unsupported",
        },
        "placementGroupInfo": {"supportedStrategies": ["cluster", "spread"]},
        "hibernationSupported": True,
        "burstablePerformanceSupported": False,
        "dedicatedHostsSupported": False,
        "autoRecoverySupported": False,
        "supportedBootModes": ["legacy-bios"],
    }


@reads(
    "DescribeInstanceTypeOfferings",
    "compute:flavors:read",
    {"LocationType": Text(choices=("region", "availability-zone", "availability-zone-id")), **LISTING},
)
def describe_instance_type_offerings(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    """List every instance type at every location: the scheduler decides which host takes it."""
    kind = parameters.get("LocationType", "region")
    flavors = flavors_seen(connection, policy.allowed("compute:flavors:private"), caller.project)
    places = [REGION] if kind == "region" else zones(connection)
    bodies: list[Body] = [
        {"instanceType": name, "locationType": kind, "location": place}
        for name in sorted(flavor["name"] for flavor in flavors)
        for place in sorted(places)
    ]
    page, token = filters.page(
        filters.filtered(bodies, parameters, OFFERING_FILTERS),
        parameters,
        lambda body: f"{body['instanceType']} {body['location']}",
    )
    return {"instanceTypeOfferingSet": page, "nextToken": token}
