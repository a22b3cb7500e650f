# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Both consoles of a guest of QEMU's, on a host that a real sshd leads to."""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import socket
import subprocess
import tempfile
import typing as t

import pytest
from wsproto.events import BytesMessage

from ansible_collections.novalite.cloud.plugins.module_utils._ssh import config
from api.work import consoles
from tests.api.dashboard.consoles import UUID, WebSocket, libvirt, wait
from tests.api.dashboard.test_consoles import Door, door  # noqa: F401 - a fixture
from tests.api.web.test_reverse_proxy import free_port

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="an sshd that lets root in")


@contextlib.contextmanager
def sshd(directory: pathlib.Path) -> t.Iterator[int]:
    """The port of an sshd that lets in whoever has the key in `directory`, and whose own key is known there."""
    for name in ("host", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / name], check=True)
    port = free_port()
    (directory / "keys").write_text((directory / "key.pub").read_text())
    (directory / "known").write_text(f"[127.0.0.1]:{port} {(directory / 'host.pub').read_text()}")
    (directory / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {directory}/host\nAuthorizedKeysFile {directory}/keys\n"
        "PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\n"
    )
    os.makedirs("/run/sshd", exist_ok=True)
    process = subprocess.Popen(["/usr/sbin/sshd", "-D", "-E", directory / "log", "-f", directory / "sshd_config"])

    def listens() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return False

    try:
        wait(listens)
        yield port
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def far_door(
    door: Door,  # noqa: F811
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> t.Iterator[Door]:
    """The application, where `hv1` is behind ssh and has a guest."""
    place = tmp_path / "ssh"
    place.mkdir()
    # pytest's own directories are closed to others
    with (
        tempfile.TemporaryDirectory(prefix="guest-") as of_guest,
        libvirt(pathlib.Path(of_guest)) as (uri, _log),
        sshd(place) as port,
    ):
        path = pathlib.Path(door.api.app.extensions["settings"].home, "ssh_config")
        path.write_text(
            f"Host hv1\n  HostName 127.0.0.1\n  Port {port}\n  User root\n  IdentityFile {place}/key\n"
            f"  IdentitiesOnly yes\n  UserKnownHostsFile {place}/known\n"
        )
        monkeypatch.setattr(consoles, "RELAY", functools.partial(config.relay_command, uri=uri))
        door.api.instance("demo", "echo", uuid=UUID, host="hv1", vm_state="active")
        yield door


def opened(far_door: Door, kind: str) -> WebSocket:
    client = far_door.api.client_as("demo")
    url = client.post(f"/v1/instances/{UUID}/console", json={"type": kind}).get_json()["console"]["url"]
    return far_door.open(url.partition("#")[2])


def test_both_consoles_come_through_ssh(far_door: Door) -> None:
    serial = opened(far_door, "serial")
    serial.send(BytesMessage(data=b"Q"))
    assert serial.read(1)[-1:] == b"Q"  # the guest says every byte again
    assert opened(far_door, "novnc").read(12).startswith(b"RFB 003.")


def test_a_host_whose_key_is_another_one_is_not_talked_to(far_door: Door, tmp_path: pathlib.Path) -> None:
    known = tmp_path / "ssh/known"
    known.write_text(known.read_text().replace("AAAAI", "AAAAIA", 1))
    end = opened(far_door, "serial").end()
    assert end is not None and end.code == 1011
