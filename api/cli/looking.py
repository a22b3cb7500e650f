# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command's reads of the ledger, by the ledger's own queries, each in a read-only view: nothing is written.

The queries' modules are imported where they are used, for SQLAlchemy is half of what a command takes.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import time
import typing as t
import uuid

import click

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import natural

from .doctor import Health, has_libvirt_collection

if t.TYPE_CHECKING:
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection

Record = JsonObject
MOST_NAMES = 1000  # that completion offers


@contextlib.contextmanager
def _ledger() -> t.Iterator[Connection | None]:
    """A view of the ledger, None where there is none yet. Raises click.ClickException for one that cannot be read."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import behind, known
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import engine as ledger

    try:
        place = ledger.place_of()
        if place.url is None and not os.path.exists(place.path) and known.known(place) is None:
            click.echo(f"There is no ledger at {place.path} yet: see --home, or launch something.", err=True)
            yield None
            return
        # in check mode: one that is older than the code is looked at as a migrated copy
        opened = ledger.open_ledger(check_mode=True)
        try:
            with ledger.reading(opened) as connection:
                if refusal := behind.sentence(connection):
                    click.echo(f"Mind that {refusal}.", err=True)
                yield connection
        finally:
            opened.dispose()
    except NovaliteError as error:
        raise click.ClickException(str(error)) from None


def _project_id(connection: Connection, project: str | None, all_projects: bool) -> str | None:
    """The id of a project (None: of the default one); None for all."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups

    if all_projects:
        return None
    return str(lookups.project_by_name(connection, project or lookups.DEFAULT_PROJECT)["id"])


def servers(project: str | None, all_projects: bool, host: str | None) -> list[Record]:
    """The servers of a project (None: the default one), or of all; with `host`, those on it. The newest first."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import server_listing

    def read(connection: Connection, project_id: str | None) -> list[Record]:
        query = server_listing.Query(project_id=project_id, equals={} if host is None else {"host": host})
        listed = server_listing.load(connection, server_listing.find(connection, query))
        return [{**record, "project": record["project_id"]} for record in listed]

    return records(read, project, all_projects)


def server(name: str, project: str | None, all_projects: bool, history: bool = False) -> Record:
    """The server of this name or UUID, as the module server_info returns it; with `history`, its action log as
    `actions`. A UUID is looked for in all projects, unless one is named. Raises click.ClickException for none, or
    several."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import actions

    with _server(name, project, all_projects) as (connection, record):
        if history:
            record["actions"] = actions.history(connection, [record["uuid"]]).get(record["uuid"], [])
        return record


def placement(name: str, project: str | None, all_projects: bool) -> Record:
    """The scheduler's record of the server of this name or UUID. Raises click.ClickException as server()."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import status

    with _server(name, project, all_projects) as (connection, record):
        return {**status.placement(connection, record["uuid"], None)}


@contextlib.contextmanager
def _server(name: str, project: str | None, all_projects: bool) -> t.Iterator[tuple[Connection, Record]]:
    """A view of the ledger, and what server() says of a server."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups, views

    with _ledger() as connection:
        if connection is None:
            raise click.ClickException(f"there is no server {name!r}")
        by_uuid = _is_uuid(name)
        project_id = _project_id(connection, project, all_projects or (by_uuid and not project))
        words: JsonObject = {"uuids": [name.lower()]} if by_uuid else {"names": [name]}
        matching = views.instances_by(connection, project_id=project_id, **words)
        if not matching:
            where = "" if project_id is None else f" in project {project or lookups.DEFAULT_PROJECT}"
            raise click.ClickException(f"there is no server {name!r}{where}: novalite list shows which there are")
        if len(matching) > 1:
            which = ", ".join(f"{record['uuid']} ({record['project']['name']})" for record in matching)
            raise click.ClickException(f"there are several servers {name!r}: say which by its UUID: {which}")
        yield connection, dict(matching[0])


def hosts() -> list[Record]:
    """The compute hosts by name, with what each resource has in all and in use."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import status

    with _ledger() as connection:
        if connection is None:
            return []
        return sorted(({**host} for host in status.hosts(connection)), key=lambda host: natural(host["name"]))


def records(
    read: t.Callable[[Connection, str | None], t.Sequence[Record]], project: str | None, all_projects: bool
) -> list[Record]:
    """Return what `read` finds of a project (None: the default one), or of all. The ids of projects that records have
    as `project` are their names then."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups

    with _ledger() as connection:
        if connection is None:
            return []
        names = lookups.project_names(connection)
        return [
            {**record, "project": names.get(record["project"])} if "project" in record else record
            for record in read(connection, _project_id(connection, project, all_projects))
        ]


def health() -> Health:
    """Return the state of this controller and its cloud. Raises click.ClickException for a ledger that cannot be read,
    or that is not there."""
    from ansible import constants

    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import behind, clock
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import status

    with _ledger() as connection:
        if connection is None:
            raise click.ClickException("without a ledger there is nothing to look at")
        return Health(
            now=clock.seconds(connection),
            has_libvirt_collection=has_libvirt_collection(constants.COLLECTIONS_PATHS),
            behind=behind.sentence(connection),
            hosts=[{**host} for host in status.hosts(connection)],
            networks=status.networks(connection, None),
            troubled=status.troubled(connection, clock.before(connection, status.SILENT)),
        )


def names_beginning(text: str, project: str | None, all_projects: bool) -> list[str]:
    """Names of servers that begin so, for completion, where an error would only be in the way."""
    with contextlib.suppress(click.ClickException), contextlib.redirect_stderr(None):
        names = {record["name"] for record in servers(project, all_projects, None)}
        return sorted(name for name in names if name.startswith(text))[:MOST_NAMES]
    return []


def ssh_config() -> str:
    """The file that every launch writes beside the ledger. Raises click.ClickException where there is none."""
    from ansible_collections.novalite.cloud.plugins.module_utils._host.files import STATE_DIR

    path = os.path.join(os.path.abspath(os.environ.get("NOVALITE_HOME") or STATE_DIR), "ssh_config")
    if not os.path.exists(path):
        raise click.ClickException(f"there is no {path}: ansible-playbook novalite.cloud.launch writes it")
    return path


def console_command(record: Record) -> list[str]:
    """The command that attaches this terminal to the server's console. Raises click.ClickException for one that is on
    no host."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ssh.config import console_command as command
    from ansible_collections.novalite.cloud.plugins.module_utils._ssh.config import local_line

    if record["host"] is None:
        raise click.ClickException(f"server {record['name']!r} is on no host, so it has no console")
    path = ssh_config()
    with open(path, encoding="utf-8") as handle:
        local = local_line(record["host"]) in handle.read().splitlines()
    return shlex.split(command(record["host"], record["domain_name"], path, local))


def age(since: int | None) -> str:
    """Return the time since `since` (seconds since the epoch) in its largest unit, as in 3d; "-" for None."""
    if since is None:
        return "-"
    seconds = max(int(time.time()) - since, 0)
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False
