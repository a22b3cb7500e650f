# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `ssh_config`: keep the ssh_config of all active instances, and say how to log in to some."""

from __future__ import annotations

import os
import shlex
import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._host import write_atomically
from ..._json import JsonMapping, JsonObject
from ..._ssh.config import console_command, render
from ..._ssh.way_in import WayIn
from ..queries.views import instances_with_ways_in


def ssh_config(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Write `path` from the ledger; returns `access`: how to log in (`ssh`) and attach to the `console` of each of
    `servers`. `ways` (WayIn of each compute host) and `check_mode` are the action plug-in's to add:
    what is written here is a file, which no rollback takes back."""
    path = params["path"]
    known_hosts = os.path.join(os.path.dirname(path), "known_hosts")
    ways = {
        host: WayIn(tuple((name, value) for name, value in way["options"]), bool(way["local"]))
        for host, way in (params.get("ways") or {}).items()
    }
    text = render(
        instances_with_ways_in(connection),
        ways,
        known_hosts=known_hosts,
        identity_file=params["identity_file"],
        path=os.path.abspath(path),
    )
    forgotten = _forget(known_hosts, params.get("forget") or [], bool(params.get("check_mode")))
    before = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as handle:
            before = handle.read()
    if text != before and not params.get("check_mode"):
        try:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            write_atomically(path, text, 0o600)
        except OSError as error:
            raise NovaliteError(f"cannot write the ssh_config {path}: {error.strerror}") from None
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
    result: JsonObject = {"changed": text != before or forgotten, "access": access}
    if text != before:
        result["diff"] = {"before_header": path, "after_header": path, "before": before, "after": text}
    return result


def _console(server: JsonMapping, path: str, ways: t.Mapping[str, WayIn]) -> str | None:
    if server["host"] is None:
        return None
    return console_command(server["host"], server["domain_name"], path, ways.get(server["host"], WayIn()).local)


def _forget(path: str, uuids: t.Sequence[str], check_mode: bool) -> bool:
    """Take the host keys of these guests out of `path`: they have made new ones. Returns whether there were any."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as handle:
            lines = handle.readlines()
    except FileNotFoundError:
        return False
    kept = [line for line in lines if line.partition(" ")[0] not in uuids]
    if kept != lines and not check_mode:
        write_atomically(path, "".join(kept).encode(errors="surrogateescape"), 0o600)
    return kept != lines
