# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ssh_config of a cloud that changes one server at a time, beside one that is written whole."""

from __future__ import annotations

import pathlib
import random
import re
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._host.locks import locked_directory
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks import ssh_config
from tests.support.cloud import Cloud, Network
from tests.support.rows import DEMO, OTHER

pytestmark = pytest.mark.parametrize("cloud", ["sqlite"], indirect=True)

HOSTS = ["hv1", "hv2", "gone"]
NAMES = ["web", "web", "web.demo", "web.b", "web.other.demo", "hv1"]
WAYS = {"hv1": {"options": [["HostName", "192.0.2.11"]], "local": False}, "hv2": {"options": [], "local": True}}


def written(cloud: Cloud, path: pathlib.Path, uuids: t.Sequence[str] | None = None, **more: t.Any) -> dict[str, str]:
    """Have the ways in written; returns the guests' files by name."""
    params = {"path": str(path), "identity_file": None, "servers": [], "ways": WAYS, "uuids": uuids, **more}
    with transaction(cloud.engine) as connection:
        ssh_config.ssh_config(connection, params)
    return files_of(path)


def files_of(path: pathlib.Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in pathlib.Path(f"{path}.d").iterdir()}


class Servers:
    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.projects = [DEMO, OTHER, cloud.project("b.demo")]
        self.networks: list[Network] = [cloud.network(f"n{number}", bridge=f"br{number}") for number in (7, 8)]
        self.alive: dict[str, tuple[str, str, tuple[Network, str] | None]] = {}

    def launch(self, chance: random.Random) -> str | None:
        project, name = chance.choice(self.projects), chance.choice(NAMES)
        free = [(network, f"10.20.0.{last}") for network in self.networks for last in range(20, 24)]
        free = [nic for nic in free if all(nic != taken for _project, _name, taken in self.alive.values())]
        if any((project, name) == about[:2] for about in self.alive.values()) or not free:
            return None
        nic = chance.choice(free)
        uuid = self.cloud.instance(project, name, chance.choice(HOSTS), [nic], launched_at=1)
        self.alive[uuid] = (project, name, nic)
        return uuid

    def end(self, chance: random.Random) -> str | None:
        if not self.alive:
            return None
        uuid = chance.choice(sorted(self.alive))
        del self.alive[uuid]
        of_vif = sa.select("vif:" + tables.vif.c.id).where(tables.vif.c.instance_uuid == uuid).scalar_subquery()
        self.cloud.write(
            sa.update(tables.fixed_ip).where(tables.fixed_ip.c.owner == of_vif).values(owner=None),
            sa.delete(tables.vif).where(tables.vif.c.instance_uuid == uuid),
        )
        self.cloud.delete(uuid)
        return uuid

    def move(self, chance: random.Random) -> str | None:
        if not self.alive:
            return None
        uuid, table = chance.choice(sorted(self.alive)), tables.instance
        self.cloud.write(sa.update(table).where(table.c.uuid == uuid).values(host=chance.choice(HOSTS)))
        return uuid


def without_address(files: dict[str, str]) -> dict[str, str]:
    first = re.compile(r"^(Host .*?)( 10\.20\S+)?$", re.M)
    return {name: first.sub(r"\1", text, count=1) for name, text in files.items()}


@pytest.mark.parametrize("seed", range(5))
def test_what_is_written_of_one_server_is_what_all_would_be(cloud: Cloud, tmp_path: pathlib.Path, seed: int) -> None:
    """After any launches, moves and terminations; an address that was shared is a name again when all are written."""
    chance, servers = random.Random(seed), Servers(cloud)
    path, beside = tmp_path / "ssh_config", tmp_path / "whole"
    written(cloud, path)
    whole: dict[str, str] = {}
    for _step in range(30):
        changed = chance.choice([servers.launch, servers.launch, servers.end, servers.move])(chance)
        if changed is None:
            continue
        files, whole = written(cloud, path, [changed]), written(cloud, beside)
        whole = {name: text.replace(str(beside), str(path)) for name, text in whole.items()}
        assert without_address(files) == without_address(whole)
        addresses = [line.split()[-1] for text in files.values() for line in text.splitlines() if line[:5] == "Host "]
        shared = [address for address in addresses if address.startswith("10.20.")]
        assert len(shared) == len(set(shared))
    assert written(cloud, path) == whole


def test_an_older_file_comes_over_by_itself(cloud: Cloud, tmp_path: pathlib.Path) -> None:
    """And so does one that was written by other ways in: with the first server that is launched all are written."""
    servers, chance, path = Servers(cloud), random.Random(1), tmp_path / "ssh_config"
    uuids = {servers.launch(chance) for _number in range(6)} - {None}
    path.write_text("# Written by novalite at every launch and termination.\n\nHost web\n    HostName 10.20.0.20\n")
    assert set(written(cloud, path, [])) == uuids and "Host web" not in path.read_text()
    directory = pathlib.Path(f"{path}.d")
    modes = [oct(file.stat().st_mode) for file in (directory, path, *directory.iterdir())]
    assert modes == ["0o40700", *["0o100600"] * (1 + len(uuids))]
    stray = directory / ".cut-off.tmp"
    stray.write_text("what a kill left")
    local = {host: {**way, "local": True} for host, way in WAYS.items()}
    assert not any("ProxyJump hv1" in text for text in written(cloud, path, [], ways=local).values())
    assert not stray.exists()
    own = written(cloud, path, [])
    assert set(written(cloud, path, ["../ssh_config", "../nova.sqlite"])) == uuids and files_of(path) == own
    path.write_text("")
    assert written(cloud, path, [], check_mode=True) == own and path.read_text() == ""


def test_two_controllers_write_in_turn(cloud: Cloud, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger is read while nobody else writes these files, so that no older text comes last."""
    path, free = tmp_path / "ssh_config", []
    real = ssh_config.instances_with_ways_in

    def reading(*args: t.Any) -> t.Any:
        with pytest.raises(ConflictError), locked_directory(f"{path}.d", timeout=0):
            free.append(True)
        return real(*args)

    monkeypatch.setattr(ssh_config, "instances_with_ways_in", reading)
    uuid = Servers(cloud).launch(random.Random(1))
    assert set(written(cloud, path)) == {uuid} and not free
