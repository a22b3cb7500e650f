# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The addresses in `novalite show` that a guest's agent tells. libvirt's binding on the host, which is this machine, is
imitated; tests/molecule/guests asks a real agent."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from api.cli import agents
from tests.support.cloud import Cloud
from tests.unit._ledger.servers.command.test_command import active, novalite

__all__ = ["novalite"]  # a fixture

MAC, TOLD = "fa:16:3e:01:02:03", ["10.20.0.5", "fd20::5"]
LIBVIRT = f"""
import os, time
VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_AGENT = 1
class libvirtError(Exception):
    def get_error_message(self): return "Guest agent is not responding"
class Domain:
    def agentSetResponseTimeout(self, seconds, flags): assert seconds > 0
    def interfaceAddresses(self, source, flags):
        agent = os.environ["AGENT"]
        if agent == "silent": raise libvirtError
        if agent == "hangs": time.sleep(60)
        if agent == "mad": return ["<script>"]
        return {{"eth0": {{"hwaddr": {MAC!r}, "addrs": [{{"addr": ip}} for ip in {TOLD!r} + ["<script>"]]}}, "x": 7}}
class Connection:
    def lookupByUUIDString(self, uuid): return Domain()
def open(uri): return Connection()
"""


@pytest.fixture(autouse=True)
def host(cloud: Cloud, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make hv1 this machine, with such a libvirt."""
    if cloud.engine.dialect.name != "sqlite":
        pytest.skip("a home holds a file")
    (tmp_path / "binding").mkdir()
    (tmp_path / "binding/libvirt.py").write_text(LIBVIRT)
    (tmp_path / "ssh_config").write_text("# hv1 is this machine\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "binding"))


def with_agent(cloud: Cloud, value: str = "yes", **columns: t.Any) -> str:
    """Have a server run whose image says `value` of an agent; returns its UUID."""
    uuid, c = active(cloud, "web"), tables.instance.c
    (row,) = cloud.rows(sa.select(c.image).where(c.uuid == uuid))
    image = {**row.image, "properties": {"hw_qemu_guest_agent": value}}
    cloud.write(sa.update(tables.instance).where(c.uuid == uuid).values(image=image, **columns))
    return uuid


def test_a_guest_with_an_agent_tells_its_addresses(
    cloud: Cloud, novalite: t.Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_agent(cloud)
    monkeypatch.setenv("AGENT", "answers")
    (line,) = [line for line in novalite("show", "web").splitlines() if line.startswith("by its agent")]
    assert line.split()[3:] == [MAC, *TOLD]
    assert json.loads(novalite("show", "web", "-o", "json"))["guest_addresses"] == {MAC: TOLD}


@pytest.mark.parametrize("agent", ["silent", "hangs", "mad"])
def test_an_agent_that_does_not_answer_is_no_error(
    cloud: Cloud, novalite: t.Callable[..., str], monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    with_agent(cloud)
    monkeypatch.setenv("AGENT", agent)
    monkeypatch.setattr(agents, "LONGEST", 1.0)
    assert "no answer" in novalite("show", "web")
    assert json.loads(novalite("show", "web", "-o", "json"))["guest_addresses"] == {}


@pytest.mark.parametrize(
    ("value", "columns"), [("no", {}), ("perhaps", {}), ("yes", {"vm_state": "stopped"}), ("yes", {"host": None})]
)
def test_no_host_is_asked_about_a_guest_without_an_agent(
    cloud: Cloud, novalite: t.Callable[..., str], monkeypatch: pytest.MonkeyPatch, value: str, columns: dict[str, t.Any]
) -> None:
    with_agent(cloud, value, **columns)
    monkeypatch.setenv("AGENT", "answers")
    assert "by its agent" not in novalite("show", "web")
    assert json.loads(novalite("show", "web", "-o", "json"))["guest_addresses"] is None
