# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images by EC2's ids: the one that an id means, and those that a project sees."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import (
    SeenImage,
    images_seen,
)

from . import ids
from .common import Parameters, Record
from .faults import Ec2Error

KIND = "ami"


class NearImage(SeenImage):
    """An image, and how near it is to the project that calls it by a name."""

    nearness: int | None  # None: no name means it


def image_id(record: SeenImage) -> str:
    return ids.of(KIND, record["id"])


def find(connection: Connection, project: str, id_or_name: str) -> NearImage:
    """The image `id_or_name`: EC2's id of it, the shorter one that guests are told, its name (`ami-tiny`) or its UUID.
    Raises Ec2Error for one that the project does not see."""
    rows = nearest_first(images_seen(connection, project), project)
    is_id = ids.is_id(KIND, id_or_name)
    for row in rows:
        # what reads as an id is one, whatever somebody calls an image of his
        if image_id(row).startswith(id_or_name) if is_id else id_or_name == row["id"]:
            return row
    for row in rows:
        if not is_id and id_or_name in (row["name"], row["handle"]) and row["nearness"] is not None:
            return row
    if not id_or_name.startswith("ami-"):
        raise Ec2Error("InvalidAMIID.Malformed", f'Invalid id: "{id_or_name[:100]}" (expecting "ami-...")')
    raise Ec2Error("InvalidAMIID.NotFound", f"The image id '[{id_or_name[:100]}]' does not exist")


def nearest_first(rows: t.Iterable[SeenImage], project: str) -> list[NearImage]:
    """The images in the order in which a name means them, as for playbooks (lookups.image_by_name): the project's own,
    the cloud's, public ones, those that were shared with it and that it accepted, each the oldest first. The rest,
    whose `nearness` is None, no name means: anybody may call a community image what he likes."""

    def nearness(row: SeenImage) -> int | None:
        if row["owner"] == project:
            return 0
        if row["owner"] == "":
            return 1
        if row["visibility"] == "public":
            return 2
        return 3 if row["visibility"] == "shared" and row["member_status"] == "accepted" else None

    known: list[NearImage] = [{**row, "nearness": nearness(row)} for row in rows]
    return sorted(known, key=lambda row: (row["nearness"] is None, row["nearness"] or 0, row["created_at"], row["id"]))


def named(rows: t.Iterable[SeenImage], project: str) -> t.Iterator[SeenImage]:
    """List those of the images that a name may mean, the nearest first."""
    return (row for row in nearest_first(rows, project) if row["nearness"] is not None)


def with_ids(connection: Connection, project: str, parameters: Parameters) -> Parameters:
    """The request, with the ids of images that its filter `image-id` calls by their names, as find() does: what reads
    as an id is one, whatever somebody calls an image of his."""
    conditions = parameters.get("Filter", [])
    if not any(condition["Name"] == "image-id" for condition in conditions):
        return dict(parameters)
    rows = nearest_first(images_seen(connection, project), project)
    known: dict[str, str] = {}
    for row in rows:
        names = (row["id"],) if row["nearness"] is None else (row["id"], row["name"], row["handle"])
        for name in names:
            if name and not ids.is_id(KIND, name):
                known.setdefault(name, image_id(row))

    def expanded(condition: Record) -> Record:
        if condition["Name"] != "image-id":
            return condition
        values = condition.get("Value", [])
        return {**condition, "Value": [*values, *(known[value] for value in values if value in known)]}

    return {**parameters, "Filter": [expanded(condition) for condition in conditions]}
