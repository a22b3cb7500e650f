# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""libvirt's daemons on a host: the modular one for QEMU, or the one for everything."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain import lifecycle_migrate
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host import libvirt_connection


@pytest.fixture
def run_libvirt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in place of /run/libvirt."""
    there = {
        name: dataclasses.replace(daemon, socket=str(tmp_path / Path(daemon.socket).name))
        for name, daemon in libvirt_connection.DAEMONS.items()
    }
    monkeypatch.setattr(libvirt_connection, "DAEMONS", there)
    return tmp_path


@pytest.mark.parametrize(
    ("sockets", "name"),
    [
        (["libvirt-sock"], "libvirtd"),
        (["virtqemud-sock"], "virtqemud"),
        (["virtqemud-sock", "libvirt-sock"], "virtqemud"),  # the other one is virtproxyd's then
    ],
)
def test_the_daemon_is_the_one_that_libvirt_would_ask(sockets: list[str], name: str, run_libvirt: Path) -> None:
    for socket in sockets:
        (run_libvirt / socket).touch()
    assert libvirt_connection.local_daemon().name == name
    assert libvirt_connection.local_daemon().socket == str(run_libvirt / sockets[0])


@pytest.mark.parametrize(("installed", "name"), [("/usr/sbin/virtqemud", "virtqemud"), (None, "libvirtd")])
@pytest.mark.usefixtures("run_libvirt")
def test_without_a_socket_it_is_the_one_that_is_installed(
    installed: str | None, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libvirt_connection.shutil, "which", lambda program, path=None: installed)
    assert libvirt_connection.local_daemon().name == name


def test_a_move_goes_to_the_daemon_that_its_destination_has() -> None:
    assert lifecycle_migrate._daemon({"hv2": "virtqemud"}, "hv2").socket == "/run/libvirt/virtqemud-sock"
    assert lifecycle_migrate._daemon({"hv2": "libvirtd"}, "hv2").socket == "/run/libvirt/libvirt-sock"
    for named in ({}, {"hv2": ""}, {"hv2": "/tmp/socket"}):
        with pytest.raises(NovaliteError, match="host hv2 has no libvirt daemon"):
            lifecycle_migrate._daemon(named, "hv2")
