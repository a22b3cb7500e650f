# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command's reads of the ledger, by the ledger's own queries, each in a read-only view: nothing is written.

The queries' modules are imported where they are used, for SQLAlchemy is half of what a command takes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shlex
import time
import typing as t

import click

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host.files import STATE_DIR
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.revisions import DEFAULT_PROJECT
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import looks
from ansible_collections.novalite.cloud.plugins.module_utils._model import listed_hosts, listed_networks, listed_servers
from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import natural
from ansible_collections.novalite.cloud.plugins.module_utils._rules import build_states

if t.TYPE_CHECKING:
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
    from ansible_collections.novalite.cloud.plugins.module_utils._samples.rings import Samples

    from .doctor import Health

Record = JsonObject
MOST_NAMES = 1000  # that completion offers


class NoLedgerError(click.ClickException):
    """A home without a ledger, in which there never was one."""

    remedy = "say where it is with --home or NOVALITE_HOME; novalite.cloud.seed makes one"

    def __init__(self, path: str) -> None:
        self.problem = f"there is no ledger in {os.path.dirname(path)}"
        super().__init__(f"{self.problem}: {self.remedy}")


@contextlib.contextmanager
def open_ledger() -> t.Iterator[Connection]:
    """A view of the ledger. Raises click.ClickException for one that cannot be read, NoLedgerError where there is none
    yet."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import behind, known
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import engine as ledger

    try:
        place = ledger.place_of()
        if place.url is None and not os.path.exists(place.path) and known.known(place) is None:
            raise NoLedgerError(place.path)
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
    return str(lookups.project_by_name(connection, project or DEFAULT_PROJECT)["id"])


def servers(project: str | None, all_projects: bool, host: str | None) -> list[Record]:
    """The servers of a project (None: the default one), or of all; with `host`, those on it. The newest first."""
    listed = _servers_at_once(project, all_projects, host)
    if listed is not None:
        return listed
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import server_listing
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import silence

    with open_ledger() as connection:
        project_id, names = _project_id(connection, project, all_projects), lookups.project_names(connection)
        query = server_listing.Query(project_id=project_id, equals={} if host is None else {"host": host})
        listed = server_listing.load(connection, server_listing.find(connection, query))
        watched = silence.with_silence(connection, listed)
        return [{**record, "project": names.get(record["project_id"])} for record in watched]


def _servers_at_once(project: str | None, all_projects: bool, host: str | None) -> list[Record] | None:
    """Return what servers() does, without SQLAlchemy; None for an unusual ledger, and an unknown project."""
    with _at_once() as read:
        if read is None:
            return None
        names = {row["id"]: row["name"] for row in read("projects", {})}
        statement: str = "numbers"
        values: JsonObject = {}
        if not all_projects:
            values["project_id"] = _number_of(read, project)
            if values["project_id"] is None:
                return None
            statement += "_of_project"
        if host is not None:
            statement += "_on_host"
            values["host"] = host
        numbers = [row["id"] for row in read(statement, values)]
        listed = listed_servers.records(read, numbers)
    if any(map(_may_be_silent, listed)):
        return None  # whether a job is at it is for the ledger's own queries
    return [{**record, "project": names.get(record["project_id"]), "silent_for": None} for record in listed]


@contextlib.contextmanager
def _at_once() -> t.Iterator[looks.Read | None]:
    """A view of the ledger without SQLAlchemy; None for one that is unusual, or no file."""
    if os.environ.get("NOVALITE_LEDGER_URL"):
        yield None
        return
    with looks.looking(home()) as read:
        yield read


def _number_of(read: looks.Read, project: str | None) -> str | None:
    """The id of a project (None: of the default one); None for an unknown one."""
    named = project or DEFAULT_PROJECT
    return next((row["id"] for row in read("projects", {}) if row["name"] == named), None)


def _may_be_silent(record: JsonObject) -> bool:
    return build_states.may_be_silent(record, time.time() - build_states.BUILD_TIMEOUT)


def home() -> str:
    """The directory of the ledger that is a file."""
    return os.path.abspath(os.environ.get("NOVALITE_HOME") or STATE_DIR)


def samples() -> Samples:
    """Return the samples of hosts and servers, in the ledger's home."""
    from ansible_collections.novalite.cloud.plugins.module_utils._samples.rings import Samples

    if not os.environ.get("NOVALITE_LEDGER_URL"):
        return Samples(home())
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import place_of

    return Samples(place_of().home)


def server(name: str, project: str | None, all_projects: bool, history: bool = False) -> Record:
    """The server of this name or UUID, as the module server_info returns it; with `history`, its action log as
    `actions`. A UUID is looked for in all projects, unless one is named. Raises click.ClickException for none, or
    several."""
    quick = _server_at_once(name, project, all_projects, history)
    if quick is not None:
        return quick
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import server_history

    with _server(name, project, all_projects) as (connection, record):
        if history:
            record["actions"] = server_history.history(connection, [record["uuid"]]).get(record["uuid"], [])
        return record


def _server_at_once(name: str, project: str | None, all_projects: bool, history: bool) -> Record | None:
    """Return what server() does, without SQLAlchemy; None for what is unusual, and where there is not one server."""
    with _at_once() as read:
        uuid = None if read is None else _uuid_at_once(read, name, project, all_projects)
        if read is None or uuid is None:
            return None
        from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import whole_looks

        record = whole_looks.server(read, uuid, history)
    return None if record is None or _may_be_silent(record) else record


def _uuid_at_once(read: looks.Read, name: str, project: str | None, all_projects: bool) -> str | None:
    """The UUID of the server of this name or UUID; None where there is not one server."""
    by_uuid = _is_uuid(name)
    everywhere = all_projects or (by_uuid and not project)
    project_id = None if everywhere else _number_of(read, project)
    words = {"uuid": name.lower() if by_uuid else None, "name": None if by_uuid else name}
    rows = [row for row in read("servers_named", words) if everywhere or row["project_id"] == project_id]
    return str(rows[0]["uuid"]) if len(rows) == 1 else None


def names_of(uuids: t.Sequence[str]) -> dict[str, str]:
    """Return the names of those of these servers that there are, or were, by their UUIDs."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import views

    with open_ledger() as connection:
        return {record["uuid"]: record["name"] for record in views.instances_by(connection, uuids=uuids, deleted=True)}


def placement(name: str, project: str | None, all_projects: bool) -> Record:
    """The scheduler's record of the server of this name or UUID. Raises click.ClickException as server()."""
    with _at_once() as read:
        uuid = None if read is None else _uuid_at_once(read, name, project, all_projects)
        placed = None
        if read is not None and uuid is not None:
            placed = listed_servers.placement(lambda name, values: read(name, {"project_id": None, **values}), uuid)
        if placed is not None and not _may_be_silent(placed[0]):
            return placed[1]
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import status

    with _server(name, project, all_projects) as (connection, record):
        return {**status.placement(connection, record["uuid"], None)}


@contextlib.contextmanager
def _server(name: str, project: str | None, all_projects: bool) -> t.Iterator[tuple[Connection, Record]]:
    """A view of the ledger, and what server() says of a server."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import views
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import silence

    with open_ledger() as connection:
        by_uuid = _is_uuid(name)
        project_id = _project_id(connection, project, all_projects or (by_uuid and not project))
        words: JsonObject = {"uuids": [name.lower()]} if by_uuid else {"names": [name]}
        matching = views.instances_by(connection, project_id=project_id, **words)
        if not matching:
            where = "" if project_id is None else f" in project {project or DEFAULT_PROJECT}"
            raise click.ClickException(f"there is no server {name!r}{where}: novalite list shows which there are")
        if len(matching) > 1:
            which = ", ".join(f"{record['uuid']} ({record['project']['name']})" for record in matching)
            raise click.ClickException(f"there are several servers {name!r}: say which by its UUID: {which}")
        (record,) = silence.with_silence(connection, matching[:1])
        yield connection, record


def hosts() -> list[Record]:
    """The compute hosts by name, with what each resource has in all and in use."""
    with _at_once() as read:
        listed = None if read is None else listed_hosts.records(read)
    if listed is None:
        from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import status

        with open_ledger() as connection:
            listed = status.hosts(connection)
    return sorted(({**host} for host in listed), key=lambda host: natural(host["name"]))


def records(noun: str, project: str | None, all_projects: bool) -> list[Record]:
    """Return the records of listed_nouns.LISTS[noun] of a project (None: the default one), or of all. The ids of
    projects that records have as `project` are their names then."""
    from ansible_collections.novalite.cloud.plugins.module_utils._rules import listed_nouns

    find = listed_nouns.LISTS[noun]
    with _at_once() as looked:
        project_id = _number_of(looked, project) if looked and not all_projects else None
        if looked and (all_projects or project_id is not None):
            names = {row["id"]: row["name"] for row in looked("projects", {})}
            return [_with_name(record, names) for record in find(looked, project_id)]
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import listings
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups

    with open_ledger() as connection:
        names = lookups.project_names(connection)
        matching = find(listings.reader(connection), _project_id(connection, project, all_projects))
        return [_with_name(record, names) for record in matching]


def losses() -> list[Record]:
    """Return the loss of each host with servers if it died, as the module reserve_info has it in `hosts`."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import reserve

    with open_ledger() as connection:
        return reserve.losses(connection)


def healing() -> Record:
    """Return how hosts are watched, as operations.healing.status() has it."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import healing as operation

    with open_ledger() as connection:
        return operation.status(connection)


def _with_name(record: Record, names: t.Mapping[str, str]) -> Record:
    return {**record, "project": names.get(record["project"])} if "project" in record else record


def health(sources: t.Sequence[str]) -> Health:
    """Return the state of this controller and its cloud; the inventory is that in `sources`. Raises
    click.ClickException for a ledger that cannot be read."""
    from ansible import constants

    from . import inventory
    from .doctor import Health, has_libvirt_collection

    controller = Health(
        has_libvirt_collection=has_libvirt_collection(constants.COLLECTIONS_PATHS),
        inventory=inventory.read(sources),
        home=None if os.environ.get("NOVALITE_LEDGER_URL") else home(),
    )
    with _at_once() as read:
        if read is not None:
            now = int(time.time())
            suspects = [{**row, "silent_for": None} for row in read("suspects", {})]
            if not any(map(_may_be_silent, suspects)):
                return dataclasses.replace(
                    controller,
                    now=now,
                    hosts=[{**host} for host in listed_hosts.records(read)],
                    networks=listed_networks.with_addresses(lambda name, _values: read(name, {"now": now})),
                    troubled=list(filter(build_states.is_troubled, suspects)),
                    uncopied=read("uncopied", {}),
                )
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import behind, clock
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import status
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import replica_records

    try:
        with open_ledger() as connection:
            return dataclasses.replace(
                controller,
                now=clock.seconds(connection),
                behind=behind.sentence(connection),
                hosts=[{**host} for host in status.hosts(connection)],
                networks=status.networks(connection, None),
                troubled=status.troubled(connection),
                uncopied=replica_records.uncopied(connection),
            )
    except NoLedgerError as error:
        return dataclasses.replace(controller, no_ledger=(error.problem, error.remedy))


def names_beginning(text: str, project: str | None, all_projects: bool) -> list[str]:
    """Names of servers that begin so, for completion, where an error would only be in the way. A shell puts them into
    the line as they are: what is more to it than a word, such as a tenant's `$(reboot)`, is left out."""
    with contextlib.suppress(click.ClickException), contextlib.redirect_stderr(None):
        plain = re.compile(r"[\w.][\w.,:@%+/-]*")
        names = {record["name"] for record in servers(project, all_projects, None) if plain.fullmatch(record["name"])}
        return sorted(name for name in names if name.startswith(text))[:MOST_NAMES]
    return []


def ssh_config() -> str:
    """The file that every launch writes beside the ledger. Raises click.ClickException where there is none."""
    path = os.path.join(home(), "ssh_config")
    if not os.path.exists(path):
        raise click.ClickException(f"there is no {path}: ansible-playbook novalite.cloud.launch writes it")
    return path


def console_command(record: Record) -> list[str]:
    """The command that attaches this terminal to the server's console. Raises click.ClickException for one that is on
    no host."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ssh.config import console_command as command

    if record["host"] is None:
        raise click.ClickException(f"server {record['name']!r} is on no host, so it has no console")
    return shlex.split(command(record["host"], record["domain_name"], *way_to(record["host"])))


def way_to(host: str) -> tuple[str, bool]:
    """Return the ssh_config that leads to a host, and whether the host is this machine. Raises click.ClickException
    where there is none."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ssh.config import local_line

    path = ssh_config()
    with open(path, encoding="utf-8") as handle:
        return path, local_line(host) in handle.read().splitlines()


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
    return re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", text.lower()) is not None
