# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command `novalite top`: the hosts that are fullest, and the servers that take the most, by what was promised."""

from __future__ import annotations

import shutil
import sys
import time

import click

from . import looking, options
from . import output as shown
from .tables import Record, fitted, structure

_BY = {"cpu": ("vcpus", "vcpus"), "memory": ("memory_mb", "memory_mb")}  # resource of a host, field of a flavor
_AROUND = 2  # lines that are blank, or the cursor's


@click.command("top")
@click.option("--by", type=click.Choice(list(_BY)), default="cpu", help="What counts. [default: cpu]")
@click.option("--interval", type=click.FloatRange(min=0.5), default=3.0, help="Seconds between two looks. [default: 3]")
@click.option("--once", is_flag=True, help="Look once, as where no terminal is.")
@options.structure
def command(by: str, interval: float, once: bool, output: str) -> None:
    """Show hosts and servers by the processors or memory promised to them; on a terminal until Ctrl-C."""
    if output != "table":
        hosts, servers = _looked(by)
        structure({"hosts": hosts, "servers": servers}, output)
        return
    again = sys.stdout.isatty() and not once
    try:
        while True:
            text = _screen(by, shutil.get_terminal_size().lines if again else None)
            if again:
                click.clear()
            click.echo(text)
            if not again:
                return
            time.sleep(interval)
    except KeyboardInterrupt:
        return


def _looked(by: str) -> tuple[list[Record], list[Record]]:
    """The hosts, and the servers of all projects, in their order."""
    resource, field = _BY[by]
    hosts = sorted(looking.hosts(), key=lambda host: _share(host["capacity"][resource]), reverse=True)
    servers = sorted(looking.servers(None, True, None), key=lambda server: server["flavor"][field], reverse=True)
    return hosts, [shown.server_in_short(server) | {"flavor": server["flavor"]} for server in servers]


def _screen(by: str, lines: int | None) -> str:
    """Return the tables, the second of them cut where so many `lines` end."""
    hosts, servers = _looked(by)
    head = ["host", "state", "servers", "vcpus", "%", "memory mib", "%"]
    rows = []
    for host in hosts if lines is None else hosts[: max(lines // 3, 1)]:
        vcpus, memory = (host["capacity"][name] for name in ("vcpus", "memory_mb"))
        cells = (shown.filled(vcpus), _percent(vcpus), shown.filled(memory), _percent(memory))
        rows.append([host["name"], "up" if host["up"] else "down", host["instances"], *cells])
    first = fitted(rows, head)
    room = None if lines is None else max(lines - len(first) - 1 - _AROUND, 1)
    rows = [
        [record["name"], record["status"], record["host"], record["flavor"]["vcpus"], record["flavor"]["memory_mb"]]
        for record in servers[:room]
    ]
    return "\n".join([*first, "", *fitted(rows, ["server", "status", "host", "vcpus", "memory mib"])])


def _share(resource: Record) -> float:
    return resource["used"] / resource["limit"] if resource["limit"] else 1.0


def _percent(resource: Record) -> int:
    return round(100 * _share(resource))
