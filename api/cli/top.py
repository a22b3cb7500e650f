# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command `novalite top`: the hosts that are fullest, and the servers that take the most, by what was promised or
by what they use."""

from __future__ import annotations

import shutil
import sys
import time
import typing as t

import click

from ansible_collections.novalite.cloud.plugins.module_utils._samples.rings import GUEST, HOST

from . import looking, options
from . import output as shown
from .tables import Record, fitted, structure

_BY = {"cpu": ("vcpus", "vcpus"), "memory": ("memory_mb", "memory_mb")}  # resource of a host, field of a flavor
_USED = {"used-cpu": "cpu", "used-memory": "memory"}  # measure (_samples/rates.py)
_AROUND = 2  # lines that are blank, or the cursor's


@click.command("top")
@click.option("--by", type=click.Choice([*_BY, *_USED]), default="cpu", help="What counts. [default: cpu]")
@click.option("--interval", type=click.FloatRange(min=0.5), default=3.0, help="Seconds between two looks. [default: 3]")
@click.option("--once", is_flag=True, help="Look once, as where no terminal is.")
@options.structure
def command(by: str, interval: float, once: bool, output: str) -> None:
    """Show hosts and servers by the processors or memory promised to them, or by what they use, where it is measured
    (novalite.cloud.samples); on a terminal until Ctrl-C."""
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
    """The hosts, and the servers of all projects, in their order, with what they use as `measured`; that is empty for
    those that were not measured just now."""
    newest = looking.samples().newest(time.time())
    hosts = [host | {"measured": newest.get((HOST, host["name"]), {})} for host in looking.hosts()]
    servers = [
        shown.server_in_short(server)
        | {"flavor": server["flavor"], "measured": newest.get((GUEST, server["uuid"]), {})}
        for server in looking.servers(None, True, None)
    ]
    if by in _USED:
        for records in (hosts, servers):
            records.sort(key=lambda record: record["measured"].get(_USED[by]) or 0, reverse=True)
        return hosts, servers
    resource, field = _BY[by]
    hosts.sort(key=lambda host: _share(host["capacity"][resource]), reverse=True)
    servers.sort(key=lambda server: server["flavor"][field], reverse=True)
    return hosts, servers


def _screen(by: str, lines: int | None) -> str:
    """Return the tables, the second of them cut where so many `lines` end."""
    hosts, servers = _looked(by)
    used = ["cpu used", "mib used"] if any(record["measured"] for record in (*hosts, *servers)) else []
    head = ["host", "state", "servers", "vcpus", "%", "memory mib", "%", *used]
    rows = []
    for host in hosts if lines is None else hosts[: max(lines // 3, 1)]:
        vcpus, memory = (host["capacity"][name] for name in ("vcpus", "memory_mb"))
        cells = (shown.filled(vcpus), _percent(vcpus), shown.filled(memory), _percent(memory))
        rows.append([host["name"], "up" if host["up"] else "down", host["instances"], *cells, *_used(host, used)])
    first = fitted(rows, head)
    room = None if lines is None else max(lines - len(first) - 1 - _AROUND, 1)
    rows = [
        [
            *(record["name"], record["status"], record["host"], record["flavor"]["vcpus"]),
            *(record["flavor"]["memory_mb"], *_used(record, used)),
        ]
        for record in servers[:room]
    ]
    return "\n".join([*first, "", *fitted(rows, ["server", "status", "host", "vcpus", "memory mib", *used])])


def _used(record: Record, columns: t.Sequence[str]) -> list[str]:
    """Return the cells of what is used, if there are `columns` for them: cores, MiB."""
    cpu, memory = (record["measured"].get(measure) for measure in ("cpu", "memory"))
    cells = ["" if cpu is None else f"{cpu:.2f}", "" if memory is None else f"{memory / 1024**2:.0f}"]
    return cells if columns else []


def _share(resource: Record) -> float:
    return resource["used"] / resource["limit"] if resource["limit"] else 1.0


def _percent(resource: Record) -> int:
    return round(100 * _share(resource))
