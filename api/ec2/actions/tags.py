# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tags: of what can have some, and where each kind keeps them.

An instance's, a volume's and a snapshot's are its metadata, which the other dialects and the guest see, too. What has
none of its own has them in a table.
"""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import volumes as volume_operations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import tags as tag_operations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import images_seen
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.keypair_records import keypairs_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import server_listing
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.ec2 import ec2_attributes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.lookups import take_turns_at
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.group_records import groups_of

from ...web.context import Caller, current
from ...work.calls import calling
from .. import filters, ids, images, snapshots, volumes
from ..blueprint import reads, writes
from ..common import TAG_LIMIT, Body, Parameters, Tags, subnets, tags_in, vpc_id
from ..faults import Ec2Error, as_codes
from ..parameters import LISTING, TAGS, TEXTS
from .instances import find as find_instances

TAG_FILTERS = filters.like("key value resource-id resource-type")
TYPES = {kind: name for kind, (_code, _what, name) in ids.KINDS.items() if name}
NAME = "Name"  # the tag that is a name


def _tags_of_all(connection: Connection, project: str) -> dict[str, Tags]:
    """Return the tags of all that the project can tag, by its id."""
    return {
        **{ids.of("i", record["uuid"]): record["metadata"] for record in find_instances(connection, project, None)},
        **{number: row.metadata for number, row in volumes.of_project(connection, project).items()},
        **{number: row.metadata for number, row in volumes.snapshots_of_project(connection, project).items()},
        **ec2_attributes.tags_of(connection, project),
    }


def change(connection: Connection, caller: Caller, number: str, update: t.Callable[[Tags], Tags]) -> None:
    """Make of a resource's tags what `update` makes of them. Raises Ec2Error for what is not there."""
    kind = number.rpartition("-")[0]
    if kind not in TYPES:
        raise Ec2Error("InvalidID", f"The ID '{number[:100]}' is not valid")
    call = calling(connection)
    with as_codes(TAG_LIMIT):
        if kind == "i":
            _change_instance(connection, caller, number, update)
        elif kind == "vol":
            take_turns_at(connection, ids.find("vol", number, volumes.of_project(connection, caller.project)).id)
            row = ids.find("vol", number, volumes.of_project(connection, caller.project))
            volume_operations.update(call, row.id, _named(row.metadata, update), project_id=caller.project)
        elif kind == "snap" and (snapshot := volumes.snapshots_of_project(connection, caller.project).get(number)):
            take_turns_at(connection, snapshot.id)
            snapshot = ids.find("snap", number, volumes.snapshots_of_project(connection, caller.project))
            changes = _named(snapshot.metadata, update)
            volume_operations.update_snapshot(call, snapshot.id, changes, project_id=caller.project)
        else:
            ids.find(kind, number, dict.fromkeys(_known(connection, caller.project, kind)))
            take_turns_at(connection, f"{caller.project} {number}")
            before = ec2_attributes.tags_of(connection, caller.project).get(number, {})
            tag_operations.replace(call, number, update(dict(before)))


def _named(before: Tags, update: t.Callable[[Tags], Tags]) -> volume_operations.Changes:
    """The changes: a new tag "Name" is also the name that other doors show."""
    after = update(dict(before))
    changes: volume_operations.Changes = {"metadata": after}
    return {**changes, "name": after[NAME]} if after.get(NAME) and after[NAME] != before.get(NAME) else changes


def _change_instance(connection: Connection, caller: Caller, number: str, update: t.Callable[[Tags], Tags]) -> None:
    (record,) = find_instances(connection, caller.project, [number])
    if record["deleted"]:
        raise ids.not_found("i", number)
    take_turns_at(connection, record["uuid"])
    row = server_listing.instance_row(connection, record["uuid"], caller.project)
    before = dict(row.metadata)
    after = update(dict(before))
    servers.change_metadata(calling(connection), row, after, replace=True)
    if after.get(NAME, "").strip() and after[NAME] != before.get(NAME):
        servers.update(calling(connection), row, {"display_name": after[NAME].strip()})


def _known(connection: Connection, project: str, kind: str) -> t.Iterable[str]:
    """EC2's ids of the project's objects of this kind."""
    if kind == "ami":
        return [images.image_id(row) for row in images_seen(connection, project)]
    if kind == "snap":  # of images: a volume's has metadata
        return list(snapshots.of_images(connection, project))
    if kind == "sg":
        return [ids.of("sg", row["uuid"]) for row in groups_of(connection, project)]
    if kind == "key":
        return [ids.of_key(row) for row in keypairs_of(connection, project, current().user_id)]
    if kind == "eipalloc":
        return [ids.of("eipalloc", row.id) for row in network_records.floating_ips_of(connection, project)]
    if kind == "subnet":
        return list(subnets(connection, project))
    if kind == "eni":
        return [ids.of("eni", row.id) for row in network_records.interfaces_of(connection, project)]
    return [vpc_id(project)] if kind == "vpc" else [ids.of(kind, project)]


# --- actions --------------------------------------------------------------------------------------------------------


@reads("DescribeTags", "compute:server-metadata:read", {**LISTING})
def describe_tags(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    bodies: list[Body] = [
        {
            "resourceId": number,
            "resourceType": TYPES.get(number.rpartition("-")[0], ""),
            "key": key,
            "value": value,
            "tagSet": [{"key": key, "value": value}],  # where the filter tag:<key> looks
        }
        for number, tags in _tags_of_all(connection, caller.project).items()
        for key, value in tags.items()
    ]
    bodies.sort(key=_key)
    shown, token = filters.page(filters.filtered(bodies, parameters, TAG_FILTERS), parameters, _key)
    return {"tagSet": [{**body, "tagSet": None} for body in shown], "nextToken": token}


def _key(body: Body) -> str:
    return f"{body['resourceId']} {body['key']}"


@writes("CreateTags", "compute:server-metadata:write", {"ResourceId": TEXTS, "Tag": TAGS}, ["ResourceId", "Tag"])
def create_tags(connection: Connection, caller: Caller, parameters: Parameters) -> None:
    tags = tags_in(parameters["Tag"])
    for resource_id in sorted(set(parameters["ResourceId"])):  # in one order for all: they take turns
        change(connection, caller, resource_id, lambda before: {**before, **tags})


@writes(
    "DeleteTags",
    "compute:server-metadata:write",
    # a tag whose value is said is deleted only if it has that value
    {"ResourceId": TEXTS, "Tag": TAGS},
    ["ResourceId"],
)
def delete_tags(connection: Connection, caller: Caller, parameters: Parameters) -> None:
    requested_tags = parameters.get("Tag", [])

    def without(before: Tags) -> Tags:
        if not requested_tags:
            return {}
        to_delete = {
            tag["Key"] for tag in requested_tags if "Value" not in tag or before.get(tag["Key"]) == tag["Value"]
        }
        return {key: value for key, value in before.items() if key not in to_delete}

    for resource_id in sorted(set(parameters["ResourceId"])):  # in one order for all: they take turns
        change(connection, caller, resource_id, without)
