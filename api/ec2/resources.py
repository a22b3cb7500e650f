# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can have tags, and where each kind keeps them.

An instance's, a volume's and a snapshot's are its metadata, which the other dialects and the guest see, too. What has
none of its own has them in a table.
"""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import image_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_changes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.ec2 import ec2_tags
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import network_records, server_listing
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.keypair_records import keypairs_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security import group_rules
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_snapshots
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volumes as volume_states

from ..web.context import Caller
from . import ids, images, volumes
from .actions.instances import find as find_instances
from .common import TAG_LIMIT, Tags, subnets, vpc_id
from .faults import Ec2Error, as_codes

Write = t.Callable[[Connection, Caller, str, Tags], None]

# the beginning of an id, and the kind's name
TYPES = {
    "i": "instance",
    "vol": "volume",
    "snap": "snapshot",
    "ami": "image",
    "sg": "security-group",
    "key": "key-pair",
    "eipalloc": "elastic-ip",
    "subnet": "subnet",
    "vpc": "vpc",
    "eni": "network-interface",
    "rtb": "route-table",
    "igw": "internet-gateway",
    "acl": "network-acl",
    "dopt": "dhcp-options",
}
_OF_VPC = ("rtb", "igw", "acl", "dopt")
NAME = "Name"  # the tag that is a name


def tags_of_all(connection: Connection, project: str) -> list[tuple[str, str, Tags]]:
    """(id, type, tags) of all that the project has tagged."""
    found = [
        (ids.of("i", record["uuid"]), "instance", record["metadata"])
        for record in find_instances(connection, project, None)
    ]
    found += [(volume_id, "volume", row.metadata) for volume_id, row in volumes.of_project(connection, project).items()]
    found += [
        (snapshot_id, "snapshot", row.metadata)
        for snapshot_id, row in volumes.snapshots_of_project(connection, project).items()
    ]
    for number, tags in ec2_tags.tags_of(connection, project).items():
        found.append((number, TYPES.get(number.rpartition("-")[0], ""), tags))
    return [tagged for tagged in found if tagged[2]]


def change(connection: Connection, caller: Caller, one: str, update: t.Callable[[Tags], Tags]) -> None:
    """Make of a resource's tags what `update` makes of them. Raises Ec2Error for what is not there."""
    kind = one.rpartition("-")[0]
    if kind not in TYPES:
        raise Ec2Error("InvalidID", f"The ID '{one[:100]}' is not valid")
    with as_codes(TAG_LIMIT):
        if kind == "i":
            _change_instance(connection, caller, one, update)
        elif kind == "vol":
            row = ids.find("vol", one, volumes.of_project(connection, caller.project))
            after = update(dict(row.metadata))
            volume_states.update_volume(connection, row.id, _named(row.metadata, after))
        elif kind == "snap":
            snapshot = ids.find("snap", one, volumes.snapshots_of_project(connection, caller.project))
            after = update(dict(snapshot.metadata))
            volume_snapshots.update_snapshot(connection, snapshot.id, _named(snapshot.metadata, after))
        else:
            number = ids.find(kind, one, {known: known for known in _known(connection, caller.project, kind, one)})
            before = ec2_tags.tags_of(connection, caller.project).get(number, {})
            after = update(dict(before))
            ec2_tags.remove_tags(connection, caller.project, number, before.keys() - after.keys())
            ec2_tags.write_tags(connection, caller.project, number, after)


def _named(before: Tags, after: Tags) -> dict[str, t.Any]:
    """The changes: a new tag "Name" is also the name that other doors show."""
    named = {"name": after[NAME]} if after.get(NAME) and after[NAME] != before.get(NAME) else {}
    return {"metadata": after, **named}


def _change_instance(connection: Connection, caller: Caller, one: str, update: t.Callable[[Tags], Tags]) -> None:
    (record,) = find_instances(connection, caller.project, [one])
    if record["deleted"]:
        raise ids.not_found("i", one)
    row = server_listing.one(connection, record["uuid"], caller.project)
    before = dict(row.metadata)
    after = update(dict(before))
    server_changes.change_metadata(connection, row, after, replace=True)
    if after.get(NAME, "").strip() and after[NAME] != before.get(NAME):
        server_changes.change(connection, row, {"display_name": after[NAME].strip()})


def _known(connection: Connection, project: str, kind: str, asked: str) -> t.Iterable[str]:
    """EC2's ids of the project's objects of this kind."""
    if kind == "ami":
        return [images.image_id(row) for row in image_records.images_seen(connection, project)]
    if kind == "sg":
        return [ids.of("sg", row["uuid"]) for row in group_rules.groups_of(connection, project)]
    if kind == "key":
        return [ids.named("key", project, row["name"]) for row in keypairs_of(connection, project)]
    if kind == "eipalloc":
        return [ids.of("eipalloc", row.id) for row in network_records.floating_ips_of(connection, project)]
    if kind == "subnet":
        return list(subnets(connection, project))
    if kind == "eni":
        return [ids.of("eni", row.id) for row in network_records.interfaces_of(connection, project)]
    return [vpc_id(project)] if kind == "vpc" else [ids.of(kind, project)]
