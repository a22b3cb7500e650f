# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The door of a move is the sshd that Ansible came by: ssh is asked where it goes, and a real sshd lets it in."""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import os
import pathlib
import shlex
import socket
import subprocess
import typing as t

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host.waiting import wait_until
from ansible_collections.novalite.cloud.plugins.module_utils._transfer import channel, transfer
from tests.support.examples import part_of
from tests.support.patience import GENEROUS

IPAddress = t.Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
MOVE = channel.Move(id="0d2f9a3e-7a39-4f57-9a43-1f0a3c1f6a55", uuid="u", to_host="hv2", to_address="127.0.0.1")
KEY = f"ssh-ed25519 {'A' * 68}"
PARTS = pathlib.Path(__file__).parents[3] / "playbooks/parts"


def goes_to(argv: t.Sequence[str]) -> tuple[IPAddress, int, str]:
    """The address, port and user of what this command reaches first, through its own ssh inside of it or not."""
    proxies = [word.partition("=")[2] for word in argv if word.startswith("ProxyCommand=")]
    words = shlex.split(proxies[0].replace("%%", "%")) if proxies else list(argv)
    done = subprocess.run([words[0], "-G", *words[1:]], capture_output=True, text=True, check=True)
    options = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    return ipaddress.ip_address(options["hostname"]), int(options["port"]), options["user"]


@settings(max_examples=part_of(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    address=st.ip_addresses(),
    port=st.integers(1, 65535),
    login=st.sampled_from(["root", "deploy", "domain\\user", "a.b@c", "50%"]),
    client=st.ip_addresses(),
)
def test_a_source_goes_where_ansible_came(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    address: IPAddress,
    port: int,
    login: str,
    client: IPAddress,
) -> None:
    monkeypatch.setattr(channel, "RUN_DIR", str(tmp_path))
    monkeypatch.setattr(channel, "host_keys", lambda: [KEY])
    monkeypatch.setenv("SSH_CONNECTION", f"{client} 50022 {address} {port}")
    os.makedirs(tmp_path / MOVE["id"], exist_ok=True)
    door = channel.doors([{**MOVE, "to_address": str(address)}], {"hv2": channel.door(login)})["hv2"]
    if "%" in login:
        with pytest.raises(NovaliteError, match="is not a user's name"):
            channel.ssh(MOVE["id"], door)
    else:
        assert goes_to(channel.ssh(MOVE["id"], door)) == (address, port, login)


class Sshd(t.NamedTuple):
    door: channel.Door
    keys: pathlib.Path  # that it lets in


@pytest.fixture
def sshd(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Sshd]:
    """An sshd on a port of its own, which lets the move's key in to unpack files into a directory."""
    monkeypatch.setattr(channel, "RUN_DIR", str(tmp_path / "run"))
    public = channel.offer([MOVE])[MOVE["id"]]
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "host"], check=True)
    (tmp_path / "keys").write_text(f'command="tar --extract --file=- --directory={tmp_path}" {public}\n')
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = tmp_path / "sshd_config"
    config.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/keys\n"
        "PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\n"
    )
    os.makedirs("/run/sshd", exist_ok=True)
    process = subprocess.Popen(["/usr/sbin/sshd", "-D", "-E", tmp_path / "log", "-f", config])
    host_key = " ".join((tmp_path / "host.pub").read_text().split()[:2])

    def listens() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return False

    try:
        wait_until(listens, GENEROUS, "no sshd", pause=0.05)
        yield Sshd(channel.Door("127.0.0.1", (host_key,), channel.ROOT, port), tmp_path / "keys")
    finally:
        process.terminate()
        process.wait()


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="an sshd that lets root in")


@needs_root
def test_a_door_that_opens_is_known_to(sshd: Sshd, tmp_path: pathlib.Path) -> None:
    before = sorted(os.listdir(tmp_path))
    transfer.knock([MOVE], {"hv2": sshd.door})
    assert sorted(os.listdir(tmp_path)) == before


@needs_root
@pytest.mark.parametrize(
    ("change", "reason"),
    [({"port": 1}, "Connection refused"), ({"host_keys": (KEY,)}, "verification failed"), (None, "Permission denied")],
)
def test_a_door_that_does_not_open_is_named(sshd: Sshd, change: dict[str, t.Any] | None, reason: str) -> None:
    door = dataclasses.replace(sshd.door, **(change or {}))
    if change is None:
        sshd.keys.write_text("")
    message = rf"host hv2 cannot be reached .* as {door.login} at 127.0.0.1 port {door.port}: .*({reason})"
    with pytest.raises(NovaliteError, match=f"(?s){message}"):
        transfer.knock([MOVE], {"hv2": door})


def test_no_guest_is_stopped_before_its_way_is_seen_to_be_open() -> None:
    plays = yaml.safe_load((PARTS / "move_cold.yml").read_text())
    steps = [play["vars"]["move_step"] for play in plays if "move_step" in play.get("vars", {})]
    opened = [
        steps.index(step) for step in ("source_open_channel", "dest_open_channel", "source_reach", "stop", "send")
    ]
    assert opened == sorted(opened)
