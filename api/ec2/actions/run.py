# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""RunInstances: what is asked for in EC2's words, recorded and handed on as every other launch is."""

from __future__ import annotations

import base64
import secrets
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._addressing.texts import parse_address
from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    AddressInUseError,
    PoolExhaustedError,
    QuotaError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import volumes as volume_operations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import ec2_requests
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.flavor_records import (
    SeenFlavor,
    flavors_seen,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.ec2 import ec2_attributes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.group_records import groups_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import volumes_by
from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import is_plain
from ansible_collections.novalite.cloud.plugins.module_utils._rules import guest_requests
from ansible_collections.novalite.cloud.plugins.module_utils._rules.server_requests import CreateRequest, NetworkRequest

from ...web import policy
from ...web.bodies import the_one
from ...web.context import Caller
from ...work.calls import calling
from .. import block_devices, ids, images, views_instances, volumes
from ..blueprint import once, writes
from ..common import Body, Parameters, Tags, VpcSubnet, first_subnet, subnets, tags_for
from ..faults import Ec2Error, as_codes, invalid, unsupported
from ..parameters import (
    METADATA_OPTIONS,
    TAG_SPECIFICATIONS,
    TEXTS,
    TOKEN,
    Base64,
    Boolean,
    Group,
    Ignored,
    ListOf,
    Number,
    Text,
    each,
)
from .groups import find_group

DEFAULT_TYPE = "m1.small"  # Amazon's, when no type is named
MAX_USER_DATA = guest_requests.MAX_USER_DATA * 3 // 4 - 3  # bytes before they are encoded
SHUTDOWN_BEHAVIORS = ("stop", "terminate")  # what becomes of an instance that its guest shuts down
REFUSED: t.Mapping[type[Exception], str] = {
    **volumes.LIMITS,
    QuotaError: "InstanceLimitExceeded",
    AddressInUseError: "InvalidIPAddress.InUse",
    PoolExhaustedError: "InsufficientFreeAddressesInSubnet",
}
_INTERFACE = Group(
    {
        "DeviceIndex": Number(0, 31),
        **each(Text(), "NetworkInterfaceId SubnetId Description InterfaceType"),
        "PrivateIpAddress": Text(64),
        "PrivateIpAddresses": ListOf(Group({"PrivateIpAddress": Text(64), "Primary": Boolean()}), 10),
        "SecurityGroupId": TEXTS,
        "AssociatePublicIpAddress": Boolean(),
        "DeleteOnTermination": Boolean(),
        "Ipv6AddressCount": Number(),
        "NetworkCardIndex": Number(),
    }
)
# What has one value here, or none: taken, and nothing comes of it
_TAKEN = each(
    Ignored(),
    "Monitoring EbsOptimized CreditSpecification CpuOptions MaintenanceOptions PrivateDnsNameOptions "
    "CapacityReservationSpecification HibernationOptions EnclaveOptions NetworkPerformanceOptions Ipv6AddressCount "
    "AdditionalInfo KernelId RamdiskId EnablePrimaryIpv6 AddressingType",
)
# What changes what a client gets so much that it is told when there is no such thing
_REFUSED = ("LaunchTemplate", "IamInstanceProfile", "InstanceMarketOptions", "LicenseSpecification")


@writes(
    "RunInstances",
    "compute:servers:create",
    {
        **each(Text(), "ImageId InstanceType KeyName SubnetId"),
        "MinCount": Number(1, 1000),
        "MaxCount": Number(1, 1000),
        "SecurityGroup": TEXTS,
        "SecurityGroupId": TEXTS,
        "UserData": Base64(MAX_USER_DATA),
        "Placement": Group(
            {
                **each(Text(), "AvailabilityZone GroupName AvailabilityZoneId"),
                "Tenancy": Text(choices=("default",)),
                "Affinity": Ignored(),
            }
        ),
        "PrivateIpAddress": Text(64),
        "NetworkInterface": ListOf(_INTERFACE, 10),
        "MetadataOptions": Group(METADATA_OPTIONS),
        "BlockDeviceMapping": block_devices.PARAMETER,
        "TagSpecification": TAG_SPECIFICATIONS,
        "ClientToken": TOKEN,
        "DisableApiTermination": Boolean(),
        "DisableApiStop": Boolean(),
        "InstanceInitiatedShutdownBehavior": Text(choices=SHUTDOWN_BEHAVIORS),
        **_TAKEN,
        **dict.fromkeys(_REFUSED, Ignored()),
    },
    ["ImageId", "MinCount", "MaxCount"],
)
def run_instances(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    for name in _REFUSED:
        if name in parameters:
            raise unsupported(name)
    if parameters["MinCount"] > parameters["MaxCount"]:
        raise Ec2Error("InvalidParameterCombination", "The minimum count may not be larger than the maximum count")
    made = once(connection, parameters, lambda: _run(connection, caller, parameters))
    numbers = {uuid: number for number, uuid in ec2_attributes.instance_ids(connection, caller.project).items()}
    records = ec2_attributes.load(connection, [numbers[uuid] for uuid in made if uuid in numbers])
    if not records:
        raise Ec2Error("IncorrectState", "The instances that this client token stands for are gone.")
    return views_instances.grouped(map(views_instances.reservation, records))[0]


def _run(connection: Connection, caller: Caller, parameters: Parameters) -> list[str]:
    """Record what is asked for, and its job. Returns the UUIDs."""
    tags = tags_for(parameters, "instance", "volume", "network-interface")
    create_request = _create_request(connection, caller, parameters, tags["instance"])
    with as_codes(REFUSED):
        made = servers.create(calling(connection), create_request)
    for index, uuid in enumerate(made.uuids):
        ec2_requests.write_attributes(
            calling(connection),
            uuid,
            {
                "launch_index": index,
                "client_token": parameters.get("ClientToken", ""),
                "disable_api_termination": parameters.get("DisableApiTermination", False),
                "disable_api_stop": parameters.get("DisableApiStop", False),
                "shutdown_behavior": parameters.get("InstanceInitiatedShutdownBehavior", "stop"),
                "http_tokens": parameters.get("MetadataOptions", {}).get("HttpTokens", "optional"),
            },
        )
    _tag_volumes(connection, made.uuids, tags["volume"])
    return made.uuids


def _create_request(connection: Connection, caller: Caller, parameters: Parameters, tags: Tags) -> CreateRequest:
    project = caller.project
    placement = parameters.get("Placement", {})
    zone, _colon, host = placement.get("AvailabilityZone", placement.get("AvailabilityZoneId", "")).partition(":")
    hints: dict[str, str] = {}
    if host:
        hints["host"] = host
    if placement.get("GroupName"):
        hints["group"] = placement["GroupName"]
    networks, own_groups = _interfaces(connection, project, parameters)
    key = parameters.get("KeyName")
    if key and not ec2_attributes.has_keypair(connection, project, caller.user_id, key):
        raise Ec2Error("InvalidKeyPair.NotFound", f"The key pair '{key}' does not exist")
    image = images.find(connection, project, parameters["ImageId"])
    flavor = flavor_of(connection, caller, parameters.get("InstanceType", DEFAULT_TYPE))
    name = tags.get("Name", "").strip()
    user_data = parameters.get("UserData")
    with as_codes({}):
        packed = base64.b64encode(user_data).decode() if user_data else None
        guest = guest_requests.checked("instance", {"user_data": packed, "user_data_encoding": guest_requests.BASE64})
    return CreateRequest(
        name=name if name and is_plain(name) else f"ec2-{secrets.token_hex(4)}",
        min_count=parameters["MinCount"],
        max_count=parameters["MaxCount"],
        flavor=flavor["flavorid"],
        image=image["id"],
        key=parameters.get("KeyName") or None,
        networks=networks,
        security_groups=_groups(connection, project, parameters, own_groups),
        availability_zone=zone or None,
        metadata=tags,
        hints=hints,
        guest=guest,
        volumes=block_devices.requested(connection, caller, parameters, flavor, image),
    )


def flavor_of(connection: Connection, caller: Caller, name: str) -> SeenFlavor:
    """The flavor that an instance type is. Raises Ec2Error."""
    rows = flavors_seen(connection, policy.allowed("compute:flavors:private"), caller.project)
    return the_one(rows, "name", name, invalid("InstanceType", name))


def _groups(connection: Connection, project: str, parameters: Parameters, of_interface: list[str]) -> tuple[str, ...]:
    names = [name for name in parameters.get("SecurityGroup", []) if name != "default"]
    numbers = [*parameters.get("SecurityGroupId", []), *of_interface]
    if not names and not numbers:
        return ()
    rows = groups_of(connection, project)
    uuids = [find_group(rows, None, name)["uuid"] for name in names]
    uuids += [find_group(rows, number, None)["uuid"] for number in numbers]
    if "default" in parameters.get("SecurityGroup", []):
        uuids.append("default")
    return tuple(dict.fromkeys(uuids))


def _interfaces(
    connection: Connection, project: str, parameters: Parameters
) -> tuple[tuple[NetworkRequest, ...], list[str]]:
    """The networks, with addresses, and the groups that are named with the first of them."""
    interfaces = parameters.get("NetworkInterface", [])
    if interfaces and any(
        name in parameters for name in ("SubnetId", "PrivateIpAddress", "SecurityGroup", "SecurityGroupId")
    ):
        raise Ec2Error(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level subnet ID, address or security groups may not be specified on "
            "the same request",
        )
    interfaces = interfaces or [
        {name: parameters[name] for name in ("SubnetId", "PrivateIpAddress") if name in parameters}
    ]
    known = subnets(connection, project)
    requests: list[NetworkRequest] = []
    for interface in sorted(interfaces, key=lambda interface: interface.get("DeviceIndex", 0)):
        if interface.get("NetworkInterfaceId"):
            raise unsupported("An interface that is there already")
        if interface.get("AssociatePublicIpAddress"):
            raise unsupported("A public address at launch (AllocateAddress and AssociateAddress give one)")
        listed = [other.get("PrivateIpAddress") for other in interface.get("PrivateIpAddresses", [])]
        if len(listed) > 1:
            raise unsupported("More than one address of an interface")
        address = interface.get("PrivateIpAddress") or next(iter(listed), None)
        row = (
            ids.find("subnet", interface["SubnetId"], known)
            if interface.get("SubnetId")
            else first_subnet(connection, project)
        )
        requests.append(_request(row, address))
    if len({(request.name, request.subnet) for request in requests}) != len(requests):
        raise Ec2Error("InvalidParameterCombination", "An instance has one interface in a subnet")
    return tuple(requests), [number for interface in interfaces for number in interface.get("SecurityGroupId", [])]


def _request(place: VpcSubnet, text: str | None) -> NetworkRequest:
    if text is None:
        return NetworkRequest(place.network.uuid, subnet=place.subnet.id)
    address = _address(text)
    if address not in place.subnet:
        raise invalid("PrivateIpAddress", text, f"it is not an address of the subnet's range {place.subnet.cidr}")
    return NetworkRequest(place.network.uuid, address, subnet=place.subnet.id)


def _address(text: str) -> str:
    try:
        return str(parse_address(text, 4))
    except ValueError:
        raise invalid("PrivateIpAddress", text, "it is not an IPv4 address") from None


def _tag_volumes(connection: Connection, instances: t.Sequence[str], tags: Tags) -> None:
    """Give the volumes of these new instances their tags."""
    if not tags:
        return
    for row in volumes_by(connection, instances=instances):
        changes: volume_operations.Changes = {"name": tags.get("Name"), "metadata": tags}
        volume_operations.update(calling(connection), row.id, changes, project_id=row.project_id)
