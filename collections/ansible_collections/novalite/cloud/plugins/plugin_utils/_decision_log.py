# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The log of decisions: one line in the controller's journal for what was launched where and why, and what was refused.

Nova writes these lines in the logs of its API, scheduler and conductor, those that begin with "Casting to" in these
words (release Cactus). Here a playbook has no log of its own, so they go to the system's: `journalctl -t novalite`.
"""

from __future__ import annotations

import contextlib
import socket
import typing as t

from ..module_utils._json import JsonMapping
from ..module_utils._model.plain_text import without_controls

SOCKET = "/dev/log"
PRIORITY = "<30>"  # facility daemon, severity info (RFC 3164)
LONGEST = 1000  # bytes; syslog promises 1024 a line

Result = JsonMapping


def decisions(operation: str, result: Result) -> list[str]:
    """Return the lines for what the controller module `operation` decided, oldest first.

    A failure is a refusal, of whatever operation. Only the scheduler and moves decide where something goes.
    """
    if result.get("failed"):
        return [f"{operation}: refused: {result.get('msg', 'no message')}"]
    lines = []
    if refused := result.get("refused"):
        lines.append(f"{operation}: refused: {refused}")
    if operation == "server":
        lines += [
            f"server: Casting to scheduler for {instance['project']['name']}'s instance {_named(instance)}"
            for instance in result.get("to_build") or ()
        ]
    if operation in ("scheduler", "launch_plan", "launch_record"):
        hosts = {explained["uuid"]: explained for explained in result.get("explanations") or ()}
        for instance in result.get("instances") or ():
            explained = hosts.get(instance["uuid"])
            if explained is None or not instance["host"]:  # launch_record returns those that are only recorded, too
                continue
            lines.append(
                f"scheduler: Casting to compute {instance['host']} for run_instance of {_named(instance)}: "
                f"{explained.get('message', 'no message')}{_alternates(instance)}"
            )
        for unplaced in result.get("unplaced") or ():
            instance = unplaced["instance"]
            lines.append(f"scheduler: Casting to no compute for {_named(instance)}: {unplaced['message']}")
    if operation == "server_migration":
        lines += [
            f"server_migration: {move['name']} ({move['uuid']}) moves from {move['from_host']} to {move['to_host']}"
            # later steps, which say what is `done`, name the moves again: they were decided on before
            for move in (() if "done" in result else result.get("moves") or ())
            if {"name", "uuid", "from_host", "to_host"} <= move.keys()
        ]
        lines += [
            f"server_migration: refused: {error['message']}"
            for error in result.get("errors") or ()
            if "message" in error
        ]
    return lines


def write(lines: t.Iterable[str]) -> None:
    """Send the lines to the system's log under the name `novalite`. A system without one is no error."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.connect(SOCKET)
        for line in lines:
            # names and messages hold what tenants wrote: a line of theirs must not become two lines of ours
            text = without_controls(line)
            log.send(f"{PRIORITY}novalite: {text}".encode()[:LONGEST])


def _named(instance: Result) -> str:
    return f"{instance['uuid']} ({instance['name']})"


def _alternates(instance: Result) -> str:
    alternates = instance.get("alternates")
    return f"; alternates: {', '.join(alternates)}" if alternates else ""
