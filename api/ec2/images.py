# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which image an id means, and the images that a project sees by their ids."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger import image_records

from . import ids
from .faults import Ec2Error

Record = dict[str, t.Any]

KIND = "ami"


def image_id(record: t.Mapping[str, t.Any]) -> str:
    return ids.of(KIND, record["id"])


def find(connection: sa.Connection, project: str, wanted: str) -> Record:
    """The image `wanted`: EC2's id of it, the shorter one that guests are told, its name (`ami-tiny`) or its UUID.

    Raises Ec2Error for one that the project does not see.
    """
    rows = image_records.images_seen(connection, project)
    by_name = [row for row in rows if wanted in (row["name"], row["handle"])]
    # the project's own before a public one of the same name
    for row in sorted(by_name, key=lambda row: row["owner"] != project):
        return row
    for row in rows:
        if wanted in (image_id(row), row["id"]) or (ids.is_id(KIND, wanted) and image_id(row).startswith(wanted)):
            return row
    if not wanted.startswith("ami-"):
        raise Ec2Error("InvalidAMIID.Malformed", f"Invalid id: \"{wanted[:100]}\" (expecting \"ami-...\")")
    raise Ec2Error("InvalidAMIID.NotFound", f"The image id '[{wanted[:100]}]' does not exist")


def with_ids(connection: sa.Connection, project: str, asked: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The request, with the ids of images that its filter `image-id` calls by their names, as find() does."""
    given = asked.get("Filter", [])
    if not any(one["Name"] == "image-id" for one in given):
        return dict(asked)
    rows = image_records.images_seen(connection, project)
    known = {name: image_id(row) for row in rows for name in (row["name"], row["handle"], row["id"]) if name}

    def expanded(one: Record) -> Record:
        if one["Name"] != "image-id":
            return one
        values = one.get("Value", [])
        return {**one, "Value": [*values, *(known[value] for value in values if value in known)]}

    return {**asked, "Filter": [expanded(one) for one in given]}
