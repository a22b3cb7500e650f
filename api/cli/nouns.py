# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands that list what the cloud has besides servers and hosts: one row of NOUNS for each."""

from __future__ import annotations

import dataclasses
import typing as t

import click

from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import natural

from . import looking, options
from .looking import age
from .tables import Column, Form, Record, show


@dataclasses.dataclass(frozen=True)
class Noun:
    """A list that a command shows; its name is that of its records in listed_nouns.LISTS. `by_project` says whether
    they are of a project."""

    title: str
    columns: tuple[Column, ...]
    by_project: bool = True


def _field(name: str, title: str | None = None, wide: bool = False) -> Column:
    return Column(title or name, lambda record: record[name], wide)


def _age() -> Column:
    return Column("age", lambda record: age(record["created_at"] or None))


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


def _servers_of(volume: Record) -> str:
    return ", ".join(f"{place['device']} of {place['instance_uuid']}" for place in volume["attachments"])


def _verified(backup: Record) -> str:
    """Tell whether the backup was put together and compared, or booted as well, and how that went."""
    if backup["verified_at"] is None:
        return "no"
    if backup["complaint"] or backup["booted_at"] is None:
        return "DAMAGED" if backup["complaint"] else "whole"
    return "NO BOOT" if backup["proven_at"] is None else "booted"


NOUNS: t.Mapping[str, Noun] = {
    "networks": Noun(
        "networks, and the public ones",
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
    ),
    "volumes": Noun(
        "volumes",
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
    "backups": Noun(
        "backups of servers",
        (
            _field("server"),
            _field("name"),
            _field("status"),
            _field("kind"),
            Column("verified", _verified),
            Column("size_mib", lambda backup: None if backup["size"] is None else -(-backup["size"] // 2**20)),
            _age(),
            _field("consistency", wide=True),
            _field("id", "uuid", wide=True),
        ),
    ),
    "images": Noun(
        "images that may be used",
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
        (_field("name"), _field("type"), _field("fingerprint"), _field("project", wide=True)),
    ),
    "flavors": Noun(
        "flavors",
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
    for name in NOUNS:
        main.add_command(command(name))


def command(name: str) -> click.Command:
    """Make the command that lists the nouns of this name."""
    noun = NOUNS[name]

    @options.form
    def listed(
        form: Form, project: str | None = None, all_projects: bool = not noun.by_project, catalog: bool = False
    ) -> None:
        if catalog:
            show(_catalog(), CATALOG, form)
            return
        records = looking.records(name, project, all_projects)
        records.sort(key=lambda record: natural(record["name"]))
        show(records, noun.columns, form)

    lister = options.of_project(listed) if noun.by_project else listed
    if name == "images":
        text = "List those that a launch can name, and that the first one fetches."
        lister = click.option("--catalog", is_flag=True, help=text)(lister)
    scope = " of a project" if noun.by_project else ""
    head, comma, rest = noun.title.partition(",")
    return click.command(name, help=f"List {head}{scope}{comma}{rest}.")(lister)
