# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tags of everything that can have some."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection

from ...web.context import Caller
from .. import filters, resources
from ..blueprint import reads, writes
from ..common import Asked, Body, Tags, tags_in
from ..parameters import FILTERS, PAGING, TAGS, TEXTS

TAG_FILTERS = filters.like("key value resource-id resource-type")


@reads("DescribeTags", "compute:server-metadata:read", {"Filter": FILTERS, **PAGING})
def describe_tags(connection: Connection, caller: Caller, asked: Asked) -> Body:
    tags_of_all = resources.tags_of_all(connection, caller.project)
    bodies: list[Body] = [
        {
            "resourceId": number,
            "resourceType": kind,
            "key": key,
            "value": value,
            "tagSet": [{"key": key, "value": value}],  # where the filter tag:<key> looks
        }
        for number, kind, tags in tags_of_all
        for key, value in tags.items()
    ]
    bodies.sort(key=_key)
    shown, token = filters.page(filters.filtered(bodies, asked, TAG_FILTERS), asked, _key)
    return {"tagSet": [{**body, "tagSet": None} for body in shown], "nextToken": token}


def _key(body: Body) -> str:
    return f"{body['resourceId']} {body['key']}"


@writes("CreateTags", "compute:server-metadata:write", {"ResourceId": TEXTS, "Tag": TAGS}, ["ResourceId", "Tag"])
def create_tags(connection: Connection, caller: Caller, asked: Asked) -> None:
    tags = tags_in(asked["Tag"])
    for resource_id in dict.fromkeys(asked["ResourceId"]):
        resources.change(connection, caller, resource_id, lambda before: {**before, **tags})


@writes(
    "DeleteTags",
    "compute:server-metadata:write",
    # a tag whose value is said is deleted only if it has that value
    {"ResourceId": TEXTS, "Tag": TAGS},
    ["ResourceId"],
)
def delete_tags(connection: Connection, caller: Caller, asked: Asked) -> None:
    wanted = asked.get("Tag", [])

    def without(before: Tags) -> Tags:
        if not wanted:
            return {}
        to_delete = {tag["Key"] for tag in wanted if "Value" not in tag or before.get(tag["Key"]) == tag["Value"]}
        return {key: value for key, value in before.items() if key not in to_delete}

    for resource_id in dict.fromkeys(asked["ResourceId"]):
        resources.change(connection, caller, resource_id, without)
