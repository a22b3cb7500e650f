# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `ssh_config`: keep the ssh_config of the active instances, and say how to log in to some."""

from __future__ import annotations

import contextlib
import os
import shlex
import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._host.files import read_text, remove_file, write_atomically
from ..._host.locks import locked_directory
from ..._json import JsonMapping, JsonObject
from ..._ssh.config import console_command, directory_of, render, render_guests
from ..._ssh.way_in import WayIn
from ..queries.compute.views import instances_with_ways_in, named_alike


def ssh_config(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Write `path` and the guests' files beside it from the ledger: those of `uuids`, and of all where there is no
    such list, or where the ways to hosts are others than before. Returns `access`: how to log in (`ssh`) and attach
    to the `console` of each of `servers`. `ways` (WayIn of each compute host) and `check_mode` are the action
    plug-in's to add: what is written here is files, which no rollback takes back."""
    path, check_mode = params["path"], bool(params.get("check_mode"))
    ways = {
        host: WayIn(tuple((name, value) for name, value in way["options"]), bool(way["local"]))
        for host, way in (params.get("ways") or {}).items()
    }
    known_hosts = os.path.join(os.path.dirname(path), "known_hosts")
    directory = directory_of(path)
    try:
        if not check_mode:
            for made in (os.path.dirname(path), directory):
                os.makedirs(made, mode=0o700, exist_ok=True)
        # before the ledger is read: what is written last is what the ledger said last
        with contextlib.nullcontext() if check_mode else locked_directory(directory):
            after = _files(connection, params, ways, known_hosts)
            before = {name: read_text(name) or "" for name in after}
            changed = [name for name in after if after[name] != before[name]]
            for name in [] if check_mode else changed:
                if after[name]:
                    write_atomically(name, after[name], 0o600)
                else:
                    remove_file(name)
            forgotten = _forget(known_hosts, params.get("forget") or [], check_mode)
    except OSError as error:
        raise NovaliteError(f"cannot write the ssh_config {error.filename or path}: {error.strerror}") from None
    command = f"ssh -F {shlex.quote(path)}"
    access = [
        {
            "name": server["name"],
            "uuid": server["uuid"],
            "host": server["host"],
            "ip": server["nics"][0]["ip"] if server["nics"] else None,
            "ssh": f"{command} {server['uuid']}",
            "console": _console(server, path, ways),
        }
        for server in params["servers"] or []
    ]
    result: JsonObject = {"changed": bool(changed or forgotten), "access": access}
    if changed:
        result["diff"] = [
            {"before_header": name, "after_header": name, "before": before[name], "after": after[name]}
            for name in changed
        ]
    return result


def _files(
    connection: sa.Connection, params: JsonMapping, ways: t.Mapping[str, WayIn], known_hosts: str
) -> dict[str, str]:
    """Path -> text of each file that is to be looked at, the ssh_config itself last: until it is written, the next
    operation writes all again. Empty: there shall be none."""
    path, uuids = params["path"], params.get("uuids")
    directory, identity = directory_of(path), params["identity_file"]
    of_hosts = render(ways, identity, os.path.abspath(path))
    if uuids is None or read_text(path) != of_hosts:
        looked_at = set(os.listdir(directory)) if os.path.isdir(directory) else set()
        instances = instances_with_ways_in(connection)
        looked_at.update(instance["uuid"] for instance in instances)
    else:
        looked_at = named_alike(connection, uuids)
        instances = instances_with_ways_in(connection, named_alike(connection, looked_at))
    texts = render_guests(instances, ways, known_hosts, identity, os.path.abspath(path))
    return {os.path.join(directory, uuid): texts.get(uuid, "") for uuid in sorted(looked_at)} | {path: of_hosts}


def _console(server: JsonMapping, path: str, ways: t.Mapping[str, WayIn]) -> str | None:
    if server["host"] is None:
        return None
    return console_command(server["host"], server["domain_name"], path, ways.get(server["host"], WayIn()).local)


def _forget(path: str, uuids: t.Sequence[str], check_mode: bool) -> bool:
    """Take the host keys of these guests out of `path`: they have made new ones. Returns whether there were any."""
    if not uuids:
        return False
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as handle:
            lines = handle.readlines()
    except FileNotFoundError:
        return False
    kept = [line for line in lines if line.partition(" ")[0] not in uuids]
    if kept != lines and not check_mode:
        write_atomically(path, "".join(kept).encode(errors="surrogateescape"), 0o600)
    return kept != lines
