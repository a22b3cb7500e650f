# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""EC2's ids: a word for the kind, and the first 17 digits of the object's UUID.

So every object has one, whatever door it came in by, and each door's id leads to the other's without a table between
them. What is read is looked for among the project's own objects: an id of another's is an id of nothing.
"""

from __future__ import annotations

import hashlib
import re
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.subnet_records import derived_id

from .faults import Ec2Error

DIGITS = 17
_ID = re.compile(r"[a-z]{1,20}-[0-9a-f]{8}(?:[0-9a-f]{9})?")

Known = t.TypeVar("Known")


def of(kind: str, uuid: str) -> str:
    """`i-0bcc77d1943f1486d`, of a UUID or of 32 hex digits."""
    return f"{kind}-{uuid.replace('-', '')[:DIGITS]}"


def of_subnet(network_uuid: str, subnet_id: str) -> str:
    """A subnet's id: the first one of a network has the network's, further ones have their own."""
    return of("subnet", network_uuid if subnet_id == derived_id(network_uuid, 4) else subnet_id)


def named(kind: str, *names: str) -> str:
    """The id of what has a name and no UUID: always the same."""
    return f"{kind}-{hashlib.sha256('/'.join(names).encode()).hexdigest()[:DIGITS]}"


def of_key(row: t.Mapping[str, t.Any]) -> str:
    """The id of a key pair: of its user's, or of the project that shares it."""
    return named("key", row["user_id"] or row["project_id"], row["name"])


def is_id(kind: str, text: str) -> bool:
    return text.startswith(f"{kind}-") and _ID.fullmatch(text) is not None


# kind: (what codes of errors call it, what messages do, its name as a type of what has tags; "": it has none)
KINDS = {
    "i": ("InvalidInstanceID", "instance ID", "instance"),
    "ami": ("InvalidAMIID", "image id", "image"),
    "sg": ("InvalidGroup", "security group", "security-group"),
    "sgr": ("InvalidSecurityGroupRuleId", "security group rule ID", ""),
    "key": ("InvalidKeyPair", "key pair", "key-pair"),
    "vol": ("InvalidVolume", "volume", "volume"),
    "snap": ("InvalidSnapshot", "snapshot", "snapshot"),
    "subnet": ("InvalidSubnetID", "subnet ID", "subnet"),
    "vpc": ("InvalidVpcID", "vpc ID", "vpc"),
    "eni": ("InvalidNetworkInterfaceID", "networkInterface ID", "network-interface"),
    "eipalloc": ("InvalidAllocationID", "allocation ID", "elastic-ip"),
    "eipassoc": ("InvalidAssociationID", "association ID", ""),
    "rtb": ("InvalidRouteTableID", "routeTable ID", "route-table"),
    "igw": ("InvalidInternetGatewayID", "internetGateway ID", "internet-gateway"),
    "acl": ("InvalidNetworkAclID", "networkAcl ID", "network-acl"),
    "dopt": ("InvalidDhcpOptionsID", "dhcpOption ID", "dhcp-options"),
}
_MALFORMED = {
    "sg": "InvalidGroupId.Malformed",
    "vol": "InvalidVolumeID.Malformed",
    "snap": "InvalidSnapshotID.Malformed",
}


def not_found(kind: str, number: str) -> Ec2Error:
    code, what, _type = KINDS[kind]
    return Ec2Error(f"{code}.NotFound", f"The {what} '{number[:100]}' does not exist")


def find(kind: str, ec2_id: str, known: t.Mapping[str, Known]) -> Known:
    """Return the entry of `known`, by EC2's ids, under the id `ec2_id`. Raises Ec2Error: NotFound, or Malformed."""
    if ec2_id in known:
        return known[ec2_id]
    if not is_id(kind, ec2_id):
        code = _MALFORMED.get(kind, f"{KINDS[kind][0]}.Malformed")
        raise Ec2Error(code, f'Invalid id: "{ec2_id[:100]}" (expecting "{kind}-...")')
    raise not_found(kind, ec2_id)


def find_all(kind: str, ec2_ids: t.Sequence[str], known: t.Mapping[str, Known]) -> list[Known]:
    """Find several records as find() does, each of them once."""
    return [find(kind, number, known) for number in dict.fromkeys(ec2_ids)]
