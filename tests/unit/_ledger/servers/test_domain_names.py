# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The domain that is adopted may be called anything that libvirt takes. Wherever a shell reads the name, be it that of
a host or of whoever copies what a message says, it is one word and no program."""

from __future__ import annotations

import os
import pathlib
import random
import shlex
import subprocess
import types
import typing as t
import uuid

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain import adopt, lifecycle
from ansible_collections.novalite.cloud.plugins.module_utils._domain.outcome import DomainSpec, Outcome
from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._host import libvirt_connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.ssh_config import ssh_config
from api.cli import looking
from tests.support.cloud import Cloud
from tests.unit._domain.fake_libvirt import FakeLibvirt

pytestmark = pytest.mark.parametrize("cloud", ["sqlite"], indirect=True)

# What shells read something into; no slash and no new line, which libvirt refuses
PIECES = [
    *"'\"\\`$&;|<>(){}[]*?~#!%^=:,@+- \t\u6771",
    *("$(touch pwned)", "`touch pwned`", "${IFS}", "; touch pwned;", "&& touch pwned", "|touch pwned", ">pwned", "-c"),
    *("--help", "\\", "''", "$'\\x41'", "a", "db", "%h", "*", "\x1b[2J", "\u202e"),
]
UUID = "00000000-0000-4000-8000-000000000001"


def names(count: int) -> list[str]:
    chance = random.Random(7)
    made = ["".join(chance.choices(PIECES, k=chance.randint(1, 6))) for _name in range(count)]
    return [*PIECES, *filter(str.strip, made)]


def by_module(cloud: Cloud, home: pathlib.Path, name: str, local: bool) -> str:
    """The command that module ssh_config, and with it `console_attach.yml`, tells for an adopted server."""
    server = adopted(cloud, name)
    ways = {"hv1": {"options": [], "local": local}}
    params = {"path": str(home / "ssh_config"), "identity_file": None, "servers": [server], "ways": ways, "uuids": []}
    with cloud.engine.connect() as connection:
        return str(ssh_config(connection, params)["access"][0]["console"])


def by_command(cloud: Cloud, home: pathlib.Path, name: str) -> str:
    """The command that `novalite console` runs."""
    (home / "ssh_config").touch()
    return shlex.join(looking.console_command(adopted(cloud, name)))


def by_hint_to_rename(cloud: Cloud, home: pathlib.Path, name: str) -> str:
    there = Outcome(uuid=UUID, name=name, state="shutoff")
    with pytest.raises(ConflictError) as caught:
        lifecycle.refuse_conflict(t.cast(t.Any, None), DomainSpec(uuid=UUID, name="instance-00000001", xml=None), there)
    return _hint(str(caught.value), "give it that name (", ") and run again")


def by_hint_to_define(cloud: Cloud, home: pathlib.Path, name: str) -> str:
    transient = types.SimpleNamespace(isPersistent=lambda: False)
    with pytest.raises(ConflictError) as caught:
        adopt.find(t.cast(t.Any, types.SimpleNamespace(lookupByName=lambda _name: transient)), name)
    return _hint(str(caught.value), "define it first (", ")")


PLACES: dict[str, t.Callable[[Cloud, pathlib.Path, str], str]] = {
    "the module, over ssh": lambda cloud, home, name: by_module(cloud, home, name, False),
    "the module, on this machine": lambda cloud, home, name: by_module(cloud, home, name, True),
    "novalite console": by_command,
    "a hint to rename it": by_hint_to_rename,
    "a hint to define it": by_hint_to_define,
}


def _hint(message: str, before: str, after: str) -> str:
    return message[message.rindex(before) + len(before) :].removesuffix(after)


def adopted(cloud: Cloud, name: str) -> dict[str, t.Any]:
    guest = {
        **{"uuid": str(uuid.uuid4()), "name": name, "state": "running", "vcpus": 1, "memory_mb": 64, "disk_gb": 1},
        **{"disks": [], "nics": [], "marked": False, "adopted_by": None},
    }
    server = cloud.task("server_adopt", host="hv1", domain=guest, name="db", check_mode=True)["server"]
    assert server["domain_name"] == name
    return t.cast("dict[str, t.Any]", server)


@pytest.fixture
def programs(tmp_path: pathlib.Path) -> pathlib.Path:
    """Stand-ins for the programs of these commands, by which the last word is written down."""
    (directory := tmp_path / "programs").mkdir()
    for program, text in (
        ("virsh", 'printf "%s\\0" "$@" >>"$LOG"'),
        ("sudo", 'exec "$@"'),
        ("ssh", 'for last; do :; done; exec sh -c "$last"'),  # as sshd has the login's shell run it
    ):
        (directory / program).write_text(f"#!/bin/sh\n{text}\n")
        (directory / program).chmod(0o755)
    return directory


@pytest.mark.parametrize("place", PLACES)
def test_a_domains_name_is_a_word_wherever_a_shell_reads_it(
    cloud: Cloud, tmp_path: pathlib.Path, programs: pathlib.Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    for module in (libvirt_connection, lifecycle):
        monkeypatch.setattr(module, "libvirt", FakeLibvirt, raising=False)
    monkeypatch.setenv("NOVALITE_HOME", str(tmp_path))
    (room := tmp_path / "room").mkdir()
    log = tmp_path / "log"
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "LOG": str(log)}
    for name in names(60):
        command = PLACES[place](cloud, tmp_path, name)
        log.unlink(missing_ok=True)
        done = subprocess.run(["sh", "-c", command], env=environment, cwd=room, capture_output=True, check=False)
        assert done.returncode == 0, (name, command, done.stderr)
        words = log.read_text().split("\0")
        word = words[words.index("--") + 1]
        # messages show what cannot be printed by escapes
        assert word == name or ("hint" in place and not name.isprintable()), (name, command, words)
        assert set(os.listdir(room)) <= {"guest.xml"}, (name, command)
