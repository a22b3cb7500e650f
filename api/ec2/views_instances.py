# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances as EC2 shows them: records of ec2_records in, answers out."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import Attachment
from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import NO_HOST

from . import ids
from .common import DEFAULT_ZONE, Body, Record, moment, tag_set, vpc_id
from .parameters import METADATA_HOPS

PENDING, RUNNING, SHUTTING_DOWN = (0, "pending"), (16, "running"), (32, "shutting-down")
TERMINATED, STOPPING, STOPPED = (48, "terminated"), (64, "stopping"), (80, "stopped")
State = tuple[int, str]

# While these are under way; others go on within a state
_UNDER_WAY: t.Mapping[str, State] = {
    "deleting": SHUTTING_DOWN,
    **dict.fromkeys(("powering-off", "suspending"), STOPPING),
    **dict.fromkeys(("powering-on", "resuming"), PENDING),
}
_AT_REST: t.Mapping[str, State] = {
    "building": PENDING,
    **dict.fromkeys(("active", "rescued"), RUNNING),
    **dict.fromkeys(("paused", "suspended", "stopped"), STOPPED),
    "deleted": TERMINATED,
}
_POWERED_ON = 1
ROOT_DEVICE = "/dev/vda"
ROOT_DEVICE_TYPE = "ebs"  # also a disk of the host: it stays when its guest is stopped, and images are made of it


def state(record: Record) -> State:
    """EC2's state of an instance. One that could not be built is terminated, as a client that waits for it expects."""
    if record["deleted"]:
        return TERMINATED
    under_way = _UNDER_WAY.get(record["task_state"] or "")
    if under_way is not None:
        return under_way
    if record["vm_state"] == "error" and record["launched_at"] is None:
        return TERMINATED
    if record["vm_state"] in ("error", "resized"):
        return RUNNING if record["power_state"] == _POWERED_ON else STOPPED
    return _AT_REST.get(record["vm_state"], STOPPED)


def state_body(ec2_state: State) -> Body:
    return {"code": ec2_state[0], "name": ec2_state[1]}


def instance_id(record: Record) -> str:
    return ids.of("i", record["uuid"])


def reservation(record: Record) -> Body:
    """An instance in a reservation of its own. `tagSet` and `number` are there for filters and pages, and not shown."""
    shown = instance(record)
    return {
        "reservationId": record["reservation_id"] or ids.of("r", record["uuid"]),
        "ownerId": record["project_id"],
        "groupSet": [],
        "instancesSet": [shown],
        "tagSet": shown["tagSet"],
        "number": record["id"],
    }


def grouped(reservations: t.Iterable[Body]) -> list[Body]:
    """Instances that one request asked for, together."""
    by_id: dict[str, Body] = {}
    for body in reservations:
        known = by_id.setdefault(
            body["reservationId"], {key: body[key] for key in ("reservationId", "ownerId", "groupSet")}
        )
        known["instancesSet"] = [*known.get("instancesSet", []), *body["instancesSet"]]
    return list(by_id.values())


def instance(record: Record) -> Body:
    ec2_state = state(record)
    volumes: list[Attachment] = record["volumes"] if ec2_state is not TERMINATED else []
    nics = record["nics"] if ec2_state is not TERMINATED else []
    first: Record = nics[0] if nics else {}
    floating = first.get("floating_ips") or [None]
    groups = _groups(record)
    return {
        "instanceId": instance_id(record),
        "imageId": ids.of("ami", record["image_id"]) if record["image_id"] else None,
        "instanceState": state_body(ec2_state),
        "privateDnsName": record["hostname"] if nics else "",
        "dnsName": floating[0] or "",
        "reason": (_reason(record, ec2_state) or {}).get("message", ""),
        "keyName": record["key_name"],
        "amiLaunchIndex": record["ec2"]["launch_index"],
        "productCodes": [],
        "instanceType": record["flavor"]["name"],
        "launchTime": moment(record["launched_at"] or record["created_at"]),
        "placement": {"availabilityZone": record["zone"] or DEFAULT_ZONE, "groupName": "", "tenancy": "default"},
        "monitoring": {"state": "disabled"},
        "subnetId": ids.of_subnet(first["network_uuid"], first["subnet_id"]) if nics else None,
        "vpcId": vpc_id(record["project_id"]) if nics else None,
        "privateIpAddress": first.get("ip"),
        "ipAddress": floating[0],
        "ipv6Address": first.get("ipv6"),
        "sourceDestCheck": True if nics else None,
        "groupSet": groups if ec2_state is not TERMINATED else [],
        "stateReason": _reason(record, ec2_state),
        "architecture": "x86_64",
        "rootDeviceType": ROOT_DEVICE_TYPE,
        "rootDeviceName": ROOT_DEVICE,
        "blockDeviceMapping": [_device(volume) for volume in volumes],
        "virtualizationType": "hvm",
        "clientToken": record["ec2"]["client_token"],
        "tagSet": tag_set(record["metadata"]),
        "hypervisor": "kvm",
        "networkInterfaceSet": [_interface(record, nic, position, groups) for position, nic in enumerate(nics)],
        "ebsOptimized": False,
        "enaSupport": False,
        "cpuOptions": {"coreCount": record["flavor"]["vcpus"], "threadsPerCore": 1},
        "capacityReservationSpecification": {"capacityReservationPreference": "open"},
        "hibernationOptions": {"configured": True},
        "metadataOptions": {
            "state": "applied",
            "httpTokens": record["ec2"]["http_tokens"],
            "httpPutResponseHopLimit": METADATA_HOPS,
            "httpEndpoint": "enabled",
            "httpProtocolIpv6": "disabled",
            "instanceMetadataTags": "disabled",
        },
        "enclaveOptions": {"enabled": False},
        "maintenanceOptions": {"autoRecovery": "disabled"},
        "platformDetails": "Linux/UNIX",
        "usageOperation": "RunInstances",
        "bootMode": "legacy-bios",
        "currentInstanceBootMode": "legacy-bios",
        "privateDnsNameOptions": {
            "hostnameType": "ip-name",
            "enableResourceNameDnsARecord": False,
            "enableResourceNameDnsAAAARecord": False,
        },
    }


def status(record: Record) -> Body:
    """An item of DescribeInstanceStatus: what hosts say, since nothing looks into guests."""
    ec2_state = state(record)
    word = "ok" if ec2_state is RUNNING else "not-applicable"
    if ec2_state is RUNNING and record["host_up"] is False:
        word = "impaired"
    details = [{"name": "reachability", "status": {"ok": "passed", "impaired": "failed"}.get(word, word)}]
    check = {"status": word, "details": details if word != "not-applicable" else []}
    return {
        "instanceId": instance_id(record),
        "availabilityZone": record["zone"] or DEFAULT_ZONE,
        "eventsSet": [],
        "instanceState": state_body(ec2_state),
        "systemStatus": check,
        "instanceStatus": check,
        "tagSet": tag_set(record["metadata"]),
    }


def change(record: Record, before: State) -> Body:
    """An item of what StartInstances, StopInstances and TerminateInstances answer."""
    return {
        "instanceId": instance_id(record),
        "currentState": state_body(state(record)),
        "previousState": state_body(before),
    }


def _groups(record: Record) -> list[Body]:
    return [{"groupId": ids.of("sg", group["uuid"]), "groupName": group["name"]} for group in record["group_records"]]


def _reason(record: Record, ec2_state: State) -> Body | None:
    if record["vm_state"] == "error" and record["fault"]:
        message = str(record["fault"].get("message", ""))
        full = record["fault"].get("reason") == NO_HOST
        code = "Server.InsufficientInstanceCapacity" if full else "Server.InternalError"
        return {"code": code, "message": f"{code}: {message}"}
    if ec2_state in (SHUTTING_DOWN, TERMINATED, STOPPING, STOPPED):
        code = "Client.UserInitiatedShutdown"
        return {"code": code, "message": f"{code}: User initiated shutdown"}
    return None


def _device(attachment: Attachment) -> Body:
    attached = attachment.attached_at
    return {
        "deviceName": attachment.device,
        "ebs": {
            "volumeId": ids.of("vol", attachment.volume_id),
            "status": "attaching" if attached is None else "attached",
            "attachTime": moment(attached or attachment.created_at),
            "deleteOnTermination": attachment.delete_on_termination,
        },
    }


def _interface(record: Record, nic: Record, position: int, groups: list[Body]) -> Body:
    association = None
    if nic["floating_ips"]:
        public = nic["floating_ips"][0]
        association = {"publicIp": public, "publicDnsName": public, "ipOwnerId": record["project_id"]}
    leads = {"association": association}
    return {
        "networkInterfaceId": ids.of("eni", nic["id"]),
        "subnetId": ids.of_subnet(nic["network_uuid"], nic["subnet_id"]),
        "vpcId": vpc_id(record["project_id"]),
        "description": "",
        "ownerId": record["project_id"],
        "status": "in-use",
        "macAddress": nic["mac"],
        "privateIpAddress": nic["ip"],
        "privateDnsName": record["hostname"],
        "sourceDestCheck": True,
        "groupSet": groups,
        "interfaceType": "interface",
        "attachment": {
            "attachmentId": ids.of("eni-attach", nic["id"]),
            "deviceIndex": position,
            "status": "attached",
            "attachTime": moment(record["created_at"]),
            "deleteOnTermination": True,
            "networkCardIndex": 0,
        },
        "association": association,
        "privateIpAddressesSet": [
            {"privateIpAddress": address, "primary": address == nic["ip"], **(leads if address == nic["ip"] else {})}
            for address in nic["ips"]
        ],
        "ipv6AddressesSet": [{"ipv6Address": nic["ipv6"]}] if nic["ipv6"] else [],
    }
