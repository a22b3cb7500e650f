# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""DHCP servers and metadata proxies of another ledger: their files stay, and nobody takes their place."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host import locks
from ansible_collections.novalite.cloud.plugins.module_utils._network import (
    dhcp,
    dhcp_hosts,
    dnsmasq,
    haproxy,
    metadata_proxy,
    users,
)
from ansible_collections.novalite.cloud.plugins.module_utils._network.ownership import Mark

MINE, THEIRS = (Mark(f"{number}f5c8a52-9d2e-4a53-8c53-9a1d3c2b7e11") for number in "01")
HOST = {"mac": "fa:16:3e:00:00:01", "ip": "10.20.0.5", "hostname": "web"}
NETWORK = {"name": "n", "bridge": "br1", "listen": "10.20.0.2", "cidr": "10.20.0.0/24", "hosts": [HOST]}
PROXY = {"bridge": "br1", "network": "5f0c6ad8-5e8f-4ef5-a0d6-2f0d1ad1b5c2"}


@pytest.fixture(autouse=True)
def own_locks(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(users, "domains", lambda uri: {})
    monkeypatch.setattr(t.cast(t.Any, locks.locked).__wrapped__, "__defaults__", (1.0, str(tmp_path / "locks")))


def files(directory: pathlib.Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in directory.rglob("*") if path.is_file()}


def test_another_ledgers_dhcp_server(tmp_path: pathlib.Path) -> None:
    (network,) = dnsmasq.parse([NETWORK])
    directory = tmp_path / "networks" / "br1"
    directory.mkdir(parents=True)
    (directory / "conf").write_text(dnsmasq.config(network, str(directory), THEIRS))
    (directory / "hosts").write_text(dhcp_hosts.hosts_text(network.hosts, network.domain))
    before = files(tmp_path / "networks")
    with pytest.raises(ConflictError, match=f"br1 on this host is another ledger's .{THEIRS.text}"):
        dhcp.ensure([network], "present", state_dir=str(tmp_path), mark=MINE)
    assert not dhcp.ensure([network], "absent", state_dir=str(tmp_path), mark=MINE)["changed"]
    assert files(tmp_path / "networks") == before
    assert dhcp.ensure([network], "absent", state_dir=str(tmp_path), mark=THEIRS)["changed"]
    assert not directory.exists()


def test_a_server_whose_address_is_not_known_can_be_taken_away_and_nothing_else(tmp_path: pathlib.Path) -> None:
    (network,), (lost,) = dnsmasq.parse([NETWORK]), dnsmasq.parse([{**NETWORK, "listen": ""}])
    directory = tmp_path / "networks" / "br1"
    directory.mkdir(parents=True)
    (directory / "conf").write_text(dnsmasq.config(network, str(directory), MINE))
    (directory / "hosts").write_text(dhcp_hosts.hosts_text(network.hosts, network.domain))
    before = files(tmp_path / "networks")
    with pytest.raises(NovaliteError, match="'n': this host has no address"):
        dhcp.ensure([lost], "present", state_dir=str(tmp_path), mark=MINE)
    assert files(tmp_path / "networks") == before
    assert dhcp.ensure([lost], "absent", state_dir=str(tmp_path), mark=MINE)["changed"]
    assert not directory.exists()


def test_another_ledgers_metadata_proxy(tmp_path: pathlib.Path) -> None:
    (proxy,) = haproxy.parse([PROXY])
    upstream = haproxy.parse_upstream("http://192.0.2.10:8775")
    directory = tmp_path / "metadata" / "br1"
    directory.mkdir(parents=True)
    (directory / "haproxy.cfg").write_text(haproxy.config(proxy, upstream, "hv1", b"k" * 32, 7, THEIRS))
    before = files(tmp_path / "metadata")
    service = metadata_proxy.Service(upstream, "hv1", b"k" * 32, MINE)
    with pytest.raises(ConflictError, match=f"br1 on this host is another ledger's .{THEIRS.text}"):
        metadata_proxy.ensure([proxy], service, state_dir=str(tmp_path))
    assert metadata_proxy.remove(["br1"], state_dir=str(tmp_path), mark=MINE) == {"changed": False, "kept": {}}
    assert files(tmp_path / "metadata") == before
    assert haproxy.read(before[str(directory / "haproxy.cfg")]) == proxy
