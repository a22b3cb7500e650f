# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists of what servers are made of and reached by, and of who may do what: images, volumes, security groups, floating
IPs, key pairs, users. Each is a table of texts."""

from __future__ import annotations

import dataclasses
import typing as t

from flask import render_template

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog.image_records import images_seen
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import assignments, users
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import network_records, volume_views
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.keypair_records import keypairs_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security import group_rules

from ..web.context import current
from ..web.services import reads
from ..work.images import offered
from . import rendering
from .session import pages

MIB = 1 << 20

Row = t.Sequence[str]


@dataclasses.dataclass(frozen=True)
class Listed:
    """A list: what it is called, its columns, its rows, and what is said where there is none."""

    title: str
    columns: t.Sequence[str]
    rows: t.Sequence[Row]


def show(listed: Listed) -> str:
    return render_template("pages/list.html", listed=listed)


@pages.get("/images", "image:read", reads)
def list_images(connection: Connection) -> str:
    seen = offered(images_seen(connection, current().project), current().project)
    rows = [
        (
            image["name"] or image["id"],
            image["status"],
            image["disk_format"] or "",
            rendering.size(-(-image["size"] // MIB)) if image["size"] else "",
            image["visibility"],
            image["id"],
        )
        for image in seen
    ]
    return show(Listed("Images", ("Name", "State", "Format", "Size", "Visibility", "Id"), sorted(rows)))


@pages.get("/volumes", "volume:read", reads)
def list_volumes(connection: Connection) -> str:
    rows = [
        (
            volume.display_name or volume.name,
            volume.shown_status,
            f"{volume.size_gb} GiB",
            volume.type,
            ", ".join(f"{each.instance_uuid}" for each in volume.attachments),
            volume.id,
        )
        for volume in volume_views.volumes_by(connection, project_id=current().project)
    ]
    return show(Listed("Volumes", ("Name", "State", "Size", "Type", "Attached to", "Id"), rows))


@pages.get("/security-groups", "network:security_groups:read", reads)
def list_groups(connection: Connection) -> str:
    groups = group_rules.groups_of(connection, current().project)
    names = {group["uuid"]: group["name"] for group in groups}
    rows = [
        (group["name"], group["description"], "; ".join(rule_text(rule, names) for rule in group["rules"]))
        for group in groups
    ]
    return show(Listed("Security groups", ("Name", "Description", "Rules"), sorted(rows)))


def rule_text(rule: t.Mapping[str, t.Any], names: t.Mapping[str, str]) -> str:
    """Render a rule in words: in tcp 22 from 0.0.0.0/0."""
    inwards = rule["direction"] == "ingress"
    low, high = rule["port_min"], rule["port_max"]
    ports = "" if low is None else f" {low}" if low == high else f" {low}-{high}"
    group = rule.get("remote_group_uuid")
    other = names.get(group, group) if group else rule["said_cidr"] or "anywhere"
    protocol = rule["protocol"] or "everything"
    return f"{'in' if inwards else 'out'} {rule['ethertype']} {protocol}{ports} {'from' if inwards else 'to'} {other}"


@pages.get("/floating-ips", "network:floating_ips:read", reads)
def list_floating_ips(connection: Connection) -> str:
    seen = network_records.floating_ips_of(connection, current().project)
    rows = [(each.address, each.pool_name, each.fixed_ip or "", each.instance_name or "") for each in seen]
    return show(Listed("Floating IPs", ("Address", "Pool", "Leads to", "Instance"), rows))


@pages.get("/keys", "compute:keypairs:read", reads)
def list_keys(connection: Connection) -> str:
    seen = keypairs_of(connection, current().project, current().user_id)
    rows = [(key["name"], key["fingerprint"], "your own" if key["user_id"] else "the project's") for key in seen]
    return show(Listed("Key pairs", ("Name", "Fingerprint", "Whose"), rows))


@pages.get("/users", "identity:users:list", reads)
def list_users(connection: Connection) -> str:
    """Show the users, and the roles that they have, with those of their groups."""
    roles: dict[str, list[str]] = {}
    for held in assignments.list_assignments(connection, effective=True):
        where = held.get("project_name") or held.get("domain_name") or "everywhere"
        roles.setdefault(held["user_id"], []).append(f"{held['role_name']} in {where}")
    rows = [
        (user["name"], "enabled" if user["enabled"] else "disabled", ", ".join(sorted(roles.get(user["id"], ()))))
        for user in users.list_users(connection)
    ]
    return show(Listed("Users", ("Name", "State", "Roles"), rows))
