# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists of what servers are made of and reached by, and of who may do what: images, volumes, security groups, floating
IPs, key pairs, users, projects. Each is a table of texts, with ways to the forms that make, change and delete."""

from __future__ import annotations

import dataclasses
import time
import typing as t

from flask import render_template

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import server_backups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import images_seen
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.keypair_records import keypairs_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import instance_rows
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import assignments, user_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import projects as project_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.assignments import implied
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.group_records import groups_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import backup_ages, volume_views

from ..web.context import current
from ..web.services import reads
from ..work.calls import calling
from ..work.images import offered
from . import rendering
from .forms import Link
from .noun_forms import links
from .session import pages

MIB = 1 << 20

Texts = t.Sequence[str | t.Sequence[str]]  # of a row, by columns; a text of several lines is a list


class Row(t.NamedTuple):
    texts: Texts
    links: t.Sequence[Link] = ()


@dataclasses.dataclass(frozen=True)
class Listed:
    """A list: what it is called, its columns, its rows, and the ways to forms that make more."""

    title: str
    columns: t.Sequence[str]
    rows: t.Sequence[Row]
    links: t.Sequence[Link] = ()


def show(listed: Listed) -> str:
    return render_template("pages/list.html", listed=listed)


def show_with_forms(
    connection: Connection, noun: str, title: str, columns: t.Sequence[str], rows: t.Iterable[tuple[str, object, Texts]]
) -> str:
    """Show a list of things with their forms: of each its number, what the ledger has of it, and its texts."""
    call = calling(connection)
    listed = [Row(texts, links(call, noun, number, record)) for number, record, texts in rows]
    return show(Listed(title, columns, listed, links(call, noun)))


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
    columns = ("Name", "State", "Format", "Size", "Visibility", "Id")
    return show(Listed("Images", columns, [Row(texts) for texts in sorted(rows)]))


@pages.get("/volumes", "volume:read", reads)
def list_volumes(connection: Connection) -> str:
    volumes = volume_views.volumes_by(connection, project_id=current().project)
    names = instance_rows.shown_names(
        connection, {attachment.instance_uuid for volume in volumes for attachment in volume.attachments}
    )
    rows = [
        (
            volume.id,
            volume,
            (
                volume.display_name or volume.name,
                volume.shown_status,
                f"{volume.size_gb} GiB",
                volume.type,
                [names.get(each.instance_uuid, each.instance_uuid) for each in volume.attachments],
            ),
        )
        for volume in volumes
    ]
    return show_with_forms(connection, "volumes", "Volumes", ("Name", "State", "Size", "Type", "Attached to"), rows)


@pages.get("/backups", server_backups.READ, reads)
def list_backup_ages(connection: Connection) -> str:
    """Show the servers that have backups or a policy, those first whose backups are late."""
    listed = backup_ages.ages(connection, current().reach)
    rows = [
        (
            each.name,
            each.late or "",
            *(_age(at) for at in (each.newest, each.whole, each.proven)),
            each.policy.name if each.policy else "",
        )
        for each in sorted(listed, key=lambda each: (each.late is None, each.name))
    ]
    columns = ("Server", "Late", "Newest", "Found whole", "Booted", "Policy")
    return show(Listed("Backups", columns, [Row(texts) for texts in rows]))


def _age(at: int) -> str:
    return f"{rendering.duration(time.time() - at)} ago" if at else "never"


@pages.get("/security-groups", "network:security_groups:read", reads)
def list_security_groups(connection: Connection) -> str:
    groups = sorted(groups_of(connection, current().project), key=lambda group: group["name"])
    names = {group["uuid"]: group["name"] for group in groups}
    rows = [
        (
            group["uuid"],
            group,
            (group["name"], group["description"], [rendering.rule_text(rule, names) for rule in group["rules"]]),
        )
        for group in groups
    ]
    return show_with_forms(connection, "security-groups", "Security groups", ("Name", "Description", "Rules"), rows)


@pages.get("/floating-ips", "network:floating_ips:read", reads)
def list_floating_ips(connection: Connection) -> str:
    seen = network_records.floating_ips_of(connection, current().project)
    rows = [
        (each.id, each, (each.address, each.pool_name, each.fixed_ip or "", each.instance_name or "")) for each in seen
    ]
    return show_with_forms(
        connection, "floating-ips", "Floating IPs", ("Address", "Pool", "Leads to", "Instance"), rows
    )


@pages.get("/keys", "compute:keypairs:read", reads)
def list_keys(connection: Connection) -> str:
    seen = keypairs_of(connection, current().project, current().user_id)
    rows = [
        (key["name"], key, (key["name"], key["fingerprint"], "your own" if key["user_id"] else "the project's"))
        for key in seen
    ]
    return show_with_forms(connection, "keys", "Key pairs", ("Name", "Fingerprint", "Whose"), rows)


@pages.get("/users", "identity:users:list", reads)
def list_users(connection: Connection) -> str:
    """Show the users, and the roles that they have, with those of their groups, but without what a role implies."""
    roles: dict[str, dict[str, set[str]]] = {}
    for held in assignments.list_assignments(connection, effective=True):
        where = held.get("project_name") or held.get("domain_name") or "everywhere"
        roles.setdefault(held["user_id"], {}).setdefault(where, set()).add(held["role_name"])
    texts = {
        user_id: [line for place in sorted(held) for line in _strongest(held[place], place)]
        for user_id, held in roles.items()
    }
    rows = [
        (
            user["id"],
            user,
            (user["shown_name"], "enabled" if user["enabled"] else "disabled", texts.get(user["id"], [])),
        )
        for user in user_records.list_users(connection)
    ]
    return show_with_forms(connection, "users", "Users", ("Name", "State", "Roles"), rows)


def _strongest(names: set[str], place: str) -> list[str]:
    implied_names = {below for name in names for below in implied([name]) if below != name}
    return [f"{name} in {place}" for name in sorted(names - implied_names)]


@pages.get("/projects", "identity:projects:list", reads)
def list_projects(connection: Connection) -> str:
    rows = [
        (
            project["id"],
            project,
            (project["shown_name"], "enabled" if project["enabled"] else "disabled", project["description"] or ""),
        )
        for project in project_records.projects(connection)
    ]
    return show_with_forms(connection, "projects", "Projects", ("Name", "State", "Description"), rows)
