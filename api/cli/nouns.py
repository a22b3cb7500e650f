# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands that list what the cloud has besides servers and hosts: one row of NOUNS for each, read by the ledger's own
queries, which are imported where they are used."""

from __future__ import annotations

import dataclasses
import typing as t

import click

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.looks import Read
from ansible_collections.novalite.cloud.plugins.module_utils._model import listed_networks
from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import natural

from . import looking, options
from .looking import age
from .tables import Column, Form, Record, show

if t.TYPE_CHECKING:
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection


@dataclasses.dataclass(frozen=True)
class Noun:
    """A list that a command shows. `read` gets the id of a project, None for all; `by_project` says whether it asks.
    `at_once` finds the same without SQLAlchemy."""

    title: str
    read: t.Callable[[Connection, str | None], t.Sequence[Record]]
    columns: tuple[Column, ...]
    by_project: bool = True
    at_once: t.Callable[[Read, str | None], t.Sequence[Record]] | None = None


def _field(name: str, title: str | None = None, wide: bool = False) -> Column:
    return Column(title or name, lambda record: record[name], wide)


def _age() -> Column:
    return Column("age", lambda record: age(record["created_at"] or None))


def _networks(connection: Connection, project_id: str | None) -> list[Record]:
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import network_records

    networks = network_records.networks_seen(connection, project_id, bare=True)
    return [{**dataclasses.asdict(network), "project": network.owner or None} for network in networks]


def _networks_at_once(read: Read, project_id: str | None) -> list[Record]:
    def read_seen(name: str, values: JsonMapping) -> t.Iterable[JsonMapping]:
        seen = "networks_of_all" if project_id is None else "networks_of_project"
        return read(seen if name == "networks" else name, {"project_id": project_id, **values})

    return [{**network, "project": network["owner"] or None} for network in listed_networks.records(read_seen)]


def _volumes(connection: Connection, project_id: str | None) -> list[Record]:
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import volume_views

    return [
        {**dataclasses.asdict(volume), "project": volume.project_id, "status": volume.shown_status}
        for volume in volume_views.volumes_by(connection, project_id=project_id)
    ]


def _images(connection: Connection, project_id: str | None) -> list[Record]:
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import image_records

    images = image_records.images_seen(connection, project_id or "", everything=project_id is None)
    return [{**image, "project": image["owner"] or None} for image in images]


def _catalog() -> list[Record]:
    from ansible_collections.novalite.cloud.plugins.module_utils._image_catalog import entries

    images = entries.catalog(looking.home()).values()
    return [
        {
            "name": image.name,
            "login": image.login,
            "min_disk_gb": image.min_disk_gb,
            "keyring": image.keyring,
            "source": image.place_of(),
        }
        for image in images
    ]


def _groups(connection: Connection, project_id: str | None) -> list[Record]:
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security import group_rules

    groups = group_rules.groups_of(connection, project_id)
    return [{**group, "project": group["project_id"]} for group in groups]


def _keys(connection: Connection, project_id: str | None) -> list[Record]:
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import keypair_records, projects

    owners = [project_id] if project_id is not None else [row["id"] for row in projects.projects(connection)]
    return [
        {**key, "project": owner} for owner in owners for key in keypair_records.keypairs_of(connection, owner, None)
    ]


def _flavors(connection: Connection, _project_id: str | None) -> list[Record]:
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import flavors

    return flavors.flavors_seen(connection, private=True)


def _projects(connection: Connection, _project_id: str | None) -> list[Record]:
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import projects, usage

    counted = ("instances", "cores", "ram")
    return [{**project, **usage.usage(connection, project["id"], counted)} for project in projects.projects(connection)]


def _servers_of(volume: Record) -> str:
    return ", ".join(f"{place['device']} of {place['instance_uuid']}" for place in volume["attachments"])


def _snapshots(connection: Connection, project_id: str | None) -> list[Record]:
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import server_snapshot_rows

    return [
        {**dataclasses.asdict(snapshot), "server": server}
        for snapshot, server in server_snapshot_rows.snapshots_by(connection, project_id)
    ]


NOUNS: t.Mapping[str, Noun] = {
    "networks": Noun(
        "networks, and the public ones",
        _networks,
        (
            _field("name"),
            _field("cidr"),
            _field("cidr_v6"),
            _field("vlan"),
            _field("bridge"),
            Column("default", lambda network: "yes" if network["is_default"] else ""),
            _field("project"),
            _field("manager", wide=True),
            _field("uuid", wide=True),
        ),
        at_once=_networks_at_once,
    ),
    "volumes": Noun(
        "volumes",
        _volumes,
        (
            _field("name"),
            _field("status"),
            _field("size_gb", "size_gib"),
            _field("type"),
            _field("host"),
            Column("attached", lambda volume: ", ".join(place["device"] for place in volume["attachments"])),
            _age(),
            _field("project", wide=True),
            Column("servers", _servers_of, wide=True),
            _field("id", "uuid", wide=True),
        ),
    ),
    "snapshots": Noun(
        "snapshots of servers",
        _snapshots,
        (
            _field("server"),
            _field("name"),
            _field("status"),
            _field("consistency"),
            Column("size_mib", lambda snapshot: None if snapshot["size"] is None else -(-snapshot["size"] // 2**20)),
            _field("host"),
            _age(),
            _field("description", wide=True),
            _field("id", "uuid", wide=True),
        ),
    ),
    "images": Noun(
        "images that may be used",
        _images,
        (
            _field("name"),
            _field("status"),
            _field("disk_format", "format"),
            Column("size_mib", lambda image: None if image["size"] is None else -(-image["size"] // 2**20)),
            _field("visibility"),
            _age(),
            _field("project", wide=True),
            _field("id", "uuid", wide=True),
        ),
    ),
    "groups": Noun(
        "security groups",
        _groups,
        (
            _field("name"),
            Column("rules", lambda group: len(group["rules"])),
            _field("description"),
            _field("project", wide=True),
            _field("uuid", wide=True),
        ),
    ),
    "keys": Noun(
        "key pairs that playbooks find",
        _keys,
        (_field("name"), _field("type"), _field("fingerprint"), _field("project", wide=True)),
    ),
    "flavors": Noun(
        "flavors",
        _flavors,
        (
            _field("name"),
            _field("vcpus"),
            _field("memory_mb", "memory_mib"),
            _field("root_gb", "root_gib"),
            _field("ephemeral_gb", "ephemeral_gib", wide=True),
            _field("swap_mb", "swap_mib", wide=True),
            Column("public", lambda flavor: "yes" if flavor["is_public"] else "no"),
            _field("flavorid", wide=True),
        ),
        by_project=False,
    ),
    "projects": Noun(
        "projects, and what they use",
        _projects,
        (
            _field("name"),
            _field("instances"),
            _field("cores"),
            _field("ram", "ram_mib"),
            Column("enabled", lambda project: "yes" if project["enabled"] else "no"),
            _field("id", "uuid", wide=True),
        ),
        by_project=False,
    ),
}


CATALOG = (
    _field("name"),
    _field("login"),
    _field("min_disk_gb", "disk_gib"),
    _field("keyring"),
    _field("source", wide=True),
)


def add_to(main: click.Group) -> None:
    """Add the command of each noun."""
    for name, noun in NOUNS.items():
        main.add_command(_command(name, noun))


def _command(name: str, noun: Noun) -> click.Command:
    @options.form
    def listed(
        form: Form, project: str | None = None, all_projects: bool = not noun.by_project, catalog: bool = False
    ) -> None:
        if catalog:
            show(_catalog(), CATALOG, form)
            return
        records = looking.records(noun.read, project, all_projects, noun.at_once)
        records.sort(key=lambda record: natural(record["name"]))
        show(records, noun.columns, form)

    command = options.of_project(listed) if noun.by_project else listed
    if name == "images":
        text = "List those that a launch can name, and that the first one fetches."
        command = click.option("--catalog", is_flag=True, help=text)(command)
    scope = " of a project" if noun.by_project else ""
    head, comma, rest = noun.title.partition(",")
    return click.command(name, help=f"List {head}{scope}{comma}{rest}.")(command)
