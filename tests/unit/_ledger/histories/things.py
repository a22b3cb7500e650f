# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a hypervisor in memory has: domains, disks, DHCP servers, and the files by which it is known."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._host import mark
from ansible_collections.novalite.cloud.plugins.module_utils._network.dhcp_hosts import Host

Plan = dict[str, t.Any]
RUNNING = ("running", "paused")


class StepFailed(Exception):
    """A module's failure on a host; `steps` are those of its trip, as host_steps returns them."""

    def __init__(self, message: str, steps: t.Sequence[Plan] = ()) -> None:
        super().__init__(message)
        self.steps = steps


@dataclasses.dataclass(frozen=True)
class Nic:
    mac: str
    ip: str
    bridge: str


@dataclasses.dataclass
class Domain:
    uuid: str
    name: str
    nics: tuple[Nic, ...]
    state: str = "running"
    reason: str = ""

    @property
    def runs(self) -> bool:
        return self.state in RUNNING


@dataclasses.dataclass
class Disk:
    """The directory of an instance; `kept` is a copy from before a resize, for its revert."""

    content: int
    version: int = 0
    record: str | None = None
    kept: tuple[int, int] | None = None

    @property
    def copy(self) -> tuple[int, int]:
        return self.content, self.version


@dataclasses.dataclass
class Server:
    """The DHCP server of a bridge: the ledger that it is marked with, its options, its guests."""

    ledger: str
    options: Plan
    hosts: list[Host]


def install(root: pathlib.Path, machine_id: str, product_uuid: str) -> None:
    """Make the files by which a machine is known."""
    for (path, _form), value in zip(mark.SOURCES.values(), (machine_id, product_uuid)):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{value}\n")


def hosts_of(network: Plan) -> list[Host]:
    return [
        Host(host["mac"], host["ip"], host["hostname"], host["ipv6"], uuid=host.get("uuid"))
        for host in network["hosts"]
    ]


def nics_of(xml: str) -> tuple[Nic, ...]:
    """The interfaces in what stands here for a domain's XML (see rendered())."""
    return tuple(Nic(*nic) for nic in json.loads(xml))


def rendered(instance: Plan) -> str:
    """Stands for the domain's XML of an instance: its interfaces."""
    return json.dumps([[nic["mac"], nic["ip"], nic["network"]["bridge"]] for nic in instance["nics"]])
