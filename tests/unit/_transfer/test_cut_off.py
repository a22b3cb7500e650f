# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a cut-off move leaves on a host is found there by another run, and closed by what was found."""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
import time
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import layout
from ansible_collections.novalite.cloud.plugins.module_utils._drift import move_ways
from ansible_collections.novalite.cloud.plugins.module_utils._guest import authorized_keys
from ansible_collections.novalite.cloud.plugins.module_utils._host import locks
from ansible_collections.novalite.cloud.plugins.module_utils._transfer import channel

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, and other users")
LOGIN = "nobody"
UUIDS = [f"5d7b1a3e-8a57-4a3c-9d34-{number:012x}" for number in range(4)]
IDS = [f"0d2f9a3e-7a39-4f57-9a43-{number:012x}" for number in range(4)]
KEY = f"ssh-ed25519 {'A' * 68}"
STRANGER = "ssh-ed25519 BBBB somebody@elsewhere"


def move(number: int) -> channel.Move:
    return {"id": IDS[number], "uuid": UUIDS[number], "to_host": "hv2", "to_address": "192.0.2.12"}


class Host(t.NamedTuple):
    state_dir: str
    homes: dict[str, pathlib.Path]

    def ways(self) -> list[tuple[str, str, list[str], bool]]:
        ways = move_ways.find(self.state_dir)
        return [(way["id"], way["uuid"], way["what"], way["expired"]) for way in ways]

    def keys(self, login: str) -> str:
        return (self.homes[login] / ".ssh" / "authorized_keys").read_text()


@pytest.fixture
def host(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Host]:
    account = authorized_keys.account
    top = pathlib.Path(tempfile.mkdtemp(prefix="novalite-moves-", dir="/run"))
    top.chmod(0o711)
    homes = {name: top / name for name in (channel.ROOT, LOGIN)}
    for name, home in homes.items():
        (home / ".ssh").mkdir(parents=True)
        (home / ".ssh" / "authorized_keys").write_text(f"{STRANGER}\n")
        for path in (home, home / ".ssh", home / ".ssh" / "authorized_keys"):
            os.chown(path, account(name).pw_uid, account(name).pw_gid)
    monkeypatch.setattr(
        authorized_keys,
        "account",
        lambda name: type(account(name))((*account(name)[:5], str(homes[name]), account(name).pw_shell)),
    )
    monkeypatch.setattr(channel, "RUN_DIR", str(top / "run"))
    monkeypatch.setattr(channel, "QEMU_USERS", (LOGIN,))
    monkeypatch.setattr(locks.locked.__wrapped__, "__defaults__", (10.0, str(tmp_path / "locks")))  # type: ignore[attr-defined]  # a wrapped function has it
    monkeypatch.setenv("SUDO_USER", LOGIN)
    try:
        yield Host(str(top / "state"), homes)
    finally:
        for number in range(4):
            channel.close([move(number)], str(top / "state"), LOGIN)
        shutil.rmtree(top)


def test_all_that_moves_leave_is_found_and_closed(host: Host) -> None:
    assert host.ways() == []
    assert channel.offer([move(0)])
    channel.accept([move(1)], {IDS[1]: KEY}, channel.FILES, host.state_dir)
    channel.accept([move(2)], {IDS[2]: KEY}, channel.TUNNEL, host.state_dir, LOGIN)
    channel.accept([move(3)], {IDS[3]: KEY}, channel.FILES, host.state_dir, LOGIN)
    assert host.ways() == [
        (IDS[0], "", ["key"], False),
        (IDS[1], UUIDS[1], ["authorized_keys", "incoming"], False),
        (IDS[2], "", ["authorized_keys", "gate", "key"], False),
        (IDS[3], "", ["authorized_keys", "gate"], False),
        ("", UUIDS[3], ["incoming"], False),  # a gate says no more than its move
    ]
    for identifier, uuid, _what, _expired in host.ways():
        assert channel.close([{**move(0), "id": identifier, "uuid": uuid}], host.state_dir)
    assert host.ways() == []
    assert os.listdir(channel.RUN_DIR) == os.listdir(os.path.join(host.state_dir, layout.INCOMING)) == []
    assert [host.keys(login) for login in (channel.ROOT, LOGIN)] == [f"{STRANGER}\n"] * 2


def test_lines_that_let_nobody_in_any_more_go_with_the_next_move(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        then = time.time() - channel.LIFETIME - 120
        earlier.setattr(channel.time, "time", lambda: then)
        channel.accept([move(0)], {IDS[0]: KEY}, channel.FILES, host.state_dir)
    assert (IDS[0], UUIDS[0], ["authorized_keys", "incoming"], True) in host.ways()
    channel.accept([move(1)], {IDS[1]: KEY}, channel.FILES, host.state_dir)
    assert IDS[0] not in host.keys(channel.ROOT) and IDS[1] in host.keys(channel.ROOT)
    assert STRANGER in host.keys(channel.ROOT)


def test_what_is_old_is_told_from_what_may_be_under_way(host: Host) -> None:
    channel.offer([move(0), move(1)])
    long_ago = time.time() - channel.LIFETIME - 60
    os.utime(channel.directory_of(IDS[0]), (long_ago, long_ago))
    assert host.ways() == [(IDS[0], "", ["key"], True), (IDS[1], "", ["key"], False)]
