# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes, images, security groups, key pairs, flavors and projects as the command `novalite` lists them, put together
from rows of the ledger, whoever reads those: SQLAlchemy, or the driver alone for a look that is to be quick.

Each function takes what runs a statement by its name, and the id of a project, None for all. A record's `project` is
the id of the project that has it, None for nobody in particular.
"""

from __future__ import annotations

import collections
import typing as t
import uuid

from .._guest.image_properties import public_properties, shown_name
from .._json import Json, JsonMapping, JsonObject
from .._model import listed_networks
from .rules import EVERYONE, range_of

Read = t.Callable[[str, JsonMapping], t.Iterable[JsonMapping]]
Records = list[JsonObject]

RESERVED = "reserved"  # the status of a volume for an instance that gets it when it is unshelved, or for a client
NOBODY = "0.0.0.0/32"  # no packet is addressed to it
FAMILIES = ("IPv4", "IPv6")
WRITTEN_COLUMNS = ("protocol_said", "cidr_said")  # as the maker wrote them; null: as they are stored


def networks(read: Read, project_id: str | None) -> Records:
    """The networks that the project may use, by id."""

    def read_seen(name: str, values: JsonMapping) -> t.Iterable[JsonMapping]:
        seen = "networks_of_all" if project_id is None else "networks_of_project"
        return read(seen if name == "networks" else name, {"project_id": project_id, **values})

    return [{**network, "project": network["owner"] or None} for network in listed_networks.records(read_seen)]


def volumes(read: Read, project_id: str | None) -> Records:
    """The volumes, the oldest first, with their `attachments` and `reservation`."""
    rows = list(read("listed_volumes", {"project_id": project_id}))
    attached = _by("volume_id", read("volume_attachments", {"project_id": project_id}))
    reserved = {row["volume_id"]: row for row in read("volume_reservations", {"project_id": project_id})}
    return [
        {
            **row,
            "project": row["project_id"],
            "status": shown_status(row["status"], bool(attached[row["id"]])),
            "attachments": attached[row["id"]],
            "reservation": reserved.get(row["id"]),
        }
        for row in rows
    ]


def shown_status(status: str, attached: bool) -> str:
    """Return the status of a volume that users see: Nova completes the attachment to a shelved instance
    (attachment_complete in API._attach_volume_shelved_offloaded), so that the volume is in use."""
    return "in-use" if status == RESERVED and attached else status


def images(read: Read, project_id: str | None) -> Records:
    """The images that the project may use, the newest first."""
    rows = read("images_of_all" if project_id is None else "images_of_project", {"project_id": project_id})
    return [{**shown_image(row), "project": row["owner"] or None} for row in rows]


def shown_image(row: JsonMapping) -> JsonObject:
    """Return an image as it is shown: `name` as it is shown (None: it has none), `handle`, the playbooks' name for it,
    and no private properties."""
    return {
        **row,
        "handle": row["name"],
        "name": shown_name(row) or None,
        "visibility": row["visibility"] if row["owner"] else "public",
        "properties": public_properties(row["properties"]),
        "updated_at": max(row["updated_at"], row["created_at"]),
    }


def groups(read: Read, project_id: str | None) -> Records:
    """The security groups, each with its `rules` as they are shown."""
    rows = read("security_groups", {"project_id": project_id})
    shown = shown_groups(rows, read("security_group_rules", {"project_id": project_id}))
    return [{**group, "project": group["project_id"]} for group in shown]


def shown_groups(rows: t.Iterable[JsonMapping], rules: t.Iterable[JsonMapping]) -> Records:
    """Put the `rules` into their groups: `said_cidr` of a rule is the address range that it was made with, null where
    none was given, `cidr` what it means."""
    shown: dict[int, JsonObject] = {row["id"]: {**row, "rules": []} for row in rows}
    for row in rules:
        means = row["cidr"] if row["remote_group_id"] is not None else range_of({**row})
        shown[row["group_id"]]["rules"].append({**row, "said_cidr": row["cidr"], "cidr": means})
    for group in shown.values():
        if not any(rule["direction"] == "egress" for rule in group["rules"]):
            group["rules"][:0] = open_egress(group)
        group["rules"] = [{**rule, "group_uuid": group["uuid"]} for rule in group["rules"] if rule["cidr"] != NOBODY]
    return list(shown.values())


def open_egress(group: JsonMapping) -> Records:
    """The two rules that a group without egress rules amounts to."""
    return [
        {
            "id": str(uuid.uuid5(uuid.UUID(group["uuid"]), f"egress {family}")),
            "group_id": group["id"],
            "direction": "egress",
            "ethertype": family,
            "protocol": "any",
            "cidr": EVERYONE[family],
            "description": "",
            **dict.fromkeys(("port_min", "port_max", "said_cidr", "remote_group_id", "remote_group_uuid")),
            **dict.fromkeys(WRITTEN_COLUMNS),
        }
        for family in FAMILIES
    ]


def keys(read: Read, project_id: str | None) -> Records:
    """The key pairs that playbooks find: those that all of a project share."""
    return [{**row, "project": row["project_id"]} for row in read("shared_keypairs", {"project_id": project_id})]


def snapshots(read: Read, project_id: str | None) -> Records:
    """The snapshots of servers, by their servers, each with the name of its `server`, the oldest first."""
    return [dict(row) for row in read("server_snapshots", {"project_id": project_id})]


def backups(read: Read, project_id: str | None) -> Records:
    """The backups of servers, by their servers, those that are gone, too, the oldest first."""
    return [{**row, "project": row["project_id"]} for row in read("server_backups", {"project_id": project_id})]


def flavors(read: Read, _project_id: str | None) -> Records:
    """List all flavors, by number."""
    return [shown_flavor(row) for row in read("all_flavors", {})]


def shown_flavor(row: JsonMapping, granted: bool = False) -> JsonObject:
    """Return a flavor with the id that it is known by as `flavorid`; `granted`: a private one that may be used."""
    return {**row, "flavorid": row["flavorid"] or str(row["id"]), "granted": granted}


def projects(read: Read, _project_id: str | None) -> Records:
    """List all projects, by name, with their `tags` and the `instances`, `cores` and `ram` in use."""
    tags = _by("project_id", read("project_tags", {}))
    used = {row["project_id"]: row for row in read("usage_of_projects", {})}
    nothing: JsonMapping = {}
    return [
        {
            **row,
            "tags": [tag["tag"] for tag in tags[row["id"]]],
            **{name: int(used.get(row["id"], nothing).get(name, 0)) for name in ("instances", "cores", "ram")},
        }
        for row in read("all_projects", {})
    ]


def _by(field: str, rows: t.Iterable[JsonMapping]) -> collections.defaultdict[Json, Records]:
    """The rows by what they have as `field`."""
    by: collections.defaultdict[Json, Records] = collections.defaultdict(list)
    for row in rows:
        by[row[field]].append({**row})
    return by


LISTS: t.Mapping[str, t.Callable[[Read, str | None], Records]] = {
    "networks": networks,
    "volumes": volumes,
    "snapshots": snapshots,
    "backups": backups,
    "images": images,
    "groups": groups,
    "keys": keys,
    "flavors": flavors,
    "projects": projects,
}
