# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Root's directories on a host: whatever a local user plants in their place, root writes and removes nothing there."""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import pathlib
import re
import stat
import types
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._backup import live, sandbox, servers, store, whole
from ansible_collections.novalite.cloud.plugins.module_utils._disk import layout, removed
from ansible_collections.novalite.cloud.plugins.module_utils._disk.syscalls import with_private_mounts
from ansible_collections.novalite.cloud.plugins.module_utils._drift import host_facts as facts
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._firewall import cache, owner
from ansible_collections.novalite.cloud.plugins.module_utils._guest import session
from ansible_collections.novalite.cloud.plugins.module_utils._host import (
    host_files,
    locks,
    mark,
    module,
    small_records,
    trip,
    trip_code,
)
from ansible_collections.novalite.cloud.plugins.module_utils._host import records as records
from ansible_collections.novalite.cloud.plugins.module_utils._host.files import instance_dir
from ansible_collections.novalite.cloud.plugins.module_utils._host.own_directory import (
    NotOwnError,
    make_own,
    opened_own,
)
from ansible_collections.novalite.cloud.plugins.module_utils._network import additions, dhcp, dnsmasq, metadata_proxy
from ansible_collections.novalite.cloud.plugins.module_utils._network.ownership import NO_LEDGER, Mark
from ansible_collections.novalite.cloud.plugins.module_utils._replica import copies
from ansible_collections.novalite.cloud.plugins.module_utils._transfer import channel
from tests.unit.test_architecture import PACKAGE, UTILS

NOBODY = 65534
UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
EMPTY_ZIP = b"PK\x05\x06" + bytes(18)
MOVE = channel.Move(id=UUID, uuid=UUID, to_host="hv2", to_address="192.0.2.2")
CAPABILITIES: t.Any = types.SimpleNamespace(domain_types=("kvm",), arch="x86_64", qemu_user=None)


def hold_lock(_place: str) -> None:
    with locks.locked("name", 0, locks.LOCK_DIR):
        pass


def meet(state_dir: str) -> None:
    if mark.meet(mark.Expected("ledger", "hv1", leave="mark"), state_dir).refused:
        raise NotOwnError(f"{mark.NOT_PRIVATE} {state_dir} nobody")


def call_module(state_dir: str) -> None:
    def run(_call: module.HostCall) -> dict[str, t.Any]:
        os.makedirs(state_dir, exist_ok=True)
        pathlib.Path(state_dir, "file").write_text("root's")
        return {}

    result = module.call_module(run, module.HostCall({"state_dir": state_dir}), 60)
    if result.get("failed"):
        raise NovaliteError(result["msg"])


def bin_instance(state_dir: str) -> None:
    if not os.path.lexists(state_dir):
        layout.prepare_state_dir(state_dir)
        os.mkdir(instance_dir(state_dir, UUID))
    removed.put(state_dir, UUID)


def write_record(state_dir: str, **contents: t.Any) -> None:
    if not os.path.lexists(state_dir):
        make_own(state_dir)
    records.write_records(state_dir, {}, **contents)


def keep_code(place: str) -> None:
    trip_code.keep(place, "0" * 64, EMPTY_ZIP)
    with opened_own(place):  # it keeps nothing elsewhere, and leaves it to the steps to say so
        pass


# By module, and by the constant that holds its path there: a directory below one that anybody may write to, and what
# the module does in it. Of what is in the state directory, that is given.
def enter_socket(place: str) -> None:
    with live.socket_path(UUID, "instance-1", None, place):
        pass


WORKS: dict[str, dict[str, tuple[str, t.Callable[[str], object]]]] = {
    "_host.locks": {"LOCK_DIR": ("locks", hold_lock)},
    "_backup.live": {
        "SOCKETS": ("sockets", enter_socket),
        "": ("state/scratch", lambda state: live.Scratch(f"{state}/scratch", 0, 0).prepare()),
    },
    "_backup.sandbox": {"": ("state/backup-scratch", lambda state: sandbox.made(f"{state}/backup-scratch"))},
    "_backup.servers": {
        "": ("state/backup-cache", lambda state: servers.Place(os.path.dirname(state), "", state).store(UUID)),
        " ": ("state/backup-scratch", lambda state: servers.Place("", "", state).scratch()),
    },
    "_backup.store": {
        "": ("state/cache", lambda state: store.Restic("/no/repository", "key", f"{state}/cache")._remember({}))
    },
    "_replica.copies": {"": ("state/replicas", lambda state: copies.Place(state, UUID).prepare())},
    "_backup.whole": {"": ("state/kept", lambda state: whole.Kept(f"{state}/kept").put("owner", b"x"))},
    "_host.files": {"STATE_DIR": ("state/_base", layout.prepare_state_dir)},
    "_host.trip": {"TOKENS": ("trips", lambda place: trip.may_begin("token", False, place))},
    "_host.trip_code": {"": ("state/code", lambda state: keep_code(f"{state}/code"))},
    "_host.module": {"": ("state", call_module)},
    "_host.mark": {"": ("state/ledgers", meet)},
    "_drift.host_facts": {
        "": ("state", lambda state: facts.choose_domain_type("auto", CAPABILITIES, "", f"{state}/facts", True))
    },
    "_host.host_files": {
        "": ("etc/x", lambda place: host_files.ensure_files([host_files.HostFile(f"{place}/y", "directory")]))
    },
    "_host.records": {
        "": ("state/adopted", lambda state: write_record(state, adopted={UUID: "{}"})),
        " ": ("state/shelved", lambda state: write_record(state, shelved={UUID: "{}"})),
        "  ": ("state", lambda state: write_record(state, host_record="{}")),
    },
    "_host.small_records": {
        "RUN_DIR": ("run", lambda _run: small_records.replace("epoch", lambda _before: {"epoch": 1}))
    },
    "_disk.layout": {"": ("state/instances", layout.prepare_state_dir)},
    "_disk.removed": {"": ("state/removed", bin_instance)},
    "_network.dhcp": {
        "": (
            "state/networks/br",
            lambda state: dhcp.Server(dnsmasq.Network("n", "br", "", "192.0.2.0/24"), f"{state}/networks/br")._write(
                {"conf": "x"}
            ),
        )
    },
    "_network.metadata_proxy": {
        "": ("state/metadata/br", lambda state: metadata_proxy._Place("br", state, NO_LEDGER)._write("x"))
    },
    "_network.additions": {
        "DIRECTORY": ("run", lambda _run: additions._keep({"ipv4/x": additions.Setting("0", "1", ("br",))})),
        "DIRECTORY/": ("run/by-hand", lambda _run: additions.write("br", NO_LEDGER, additions.Additions(downs=("e",)))),
    },
    "_firewall.cache": {
        "DIRECTORY": ("run/firewall", lambda place: cache.Update(place).commit({}, {}))  # type: ignore[typeddict-item]
    },
    "_firewall.owner": {"FILE": ("state/firewall", lambda _state: owner.take(Mark("ledger")))},
    "_transfer.channel": {
        "RUN_DIR": ("qemu/novalite", lambda _run: channel.offer([MOVE])),
        "": ("state/incoming", lambda state: channel.accept([MOVE], {UUID: "ssh-ed25519 AAAA"}, channel.FILES, state)),
    },
    "_guest.session": {
        "WORK_DIR": (
            "run",
            lambda _run: with_private_mounts(lambda: contextlib.ExitStack().enter_context(session._work_dir())),
        )
    },
}
# Rooms that do without rather than refuse, and make nothing: plugin_utils/test_events.py plants links for them
FORGO = {"_host.events"}
CASES = [(module, constant) for module, works in WORKS.items() for constant in works]
# Paths of others, in which root makes nothing, or which only root's own programs make
OTHERS = {
    ("_network.metadata_proxy", "_NAMESPACES"),  # iproute2's
    ("_network.namespaces", "DIRECTORY"),  # iproute2's
    ("_disk.lvm", "UDEV"),  # a socket that is looked for
    ("_firewall.tables", "KEPT"),  # read; beside _firewall.owner's FILE
    (
        "_backup.tpm",
        "DIRECTORY",
    ),  # libvirt's: it and each domain's own below it belong to root, and nobody else writes there
    ("_host.switch", "BOOTED"),  # of systemd, which is looked for
}
# Functions that make directories by path, in a directory that one of the above has made
MAKE_BY_PATH = {
    "_disk.config_drive": {"_lay_out"},
    "_disk.overlay": {"_set_aside"},
    "_guest.authorized_keys": {"_change"},  # as the user whose home it is
    "_guest.session": {"_write"},  # in a file system that is mounted for this alone
    "_host.host_files": {"_write"},
    "_transfer.channel": {"offer", "accept", "_qemus_own"},
    "_transfer.gate": {"open_gate"},
    "_disk.controller_files": {"downloaded", "received"},  # on the controller, as its user
    "_secret_file": {"ensure_secret"},  # likewise
    "_image_catalog.fetch": {"fetch"},  # likewise
    "_image_import.imported": {"import_file"},  # likewise
    "_samples.rings": {"record"},  # likewise
    "_backup.without_ledger": {"restore"},  # likewise, where that user said
    "_backup.unpacked": {"unpack", "_make"},  # likewise
    "_backup.tpm": {"write"},  # in libvirt's directory, as libvirt does
}


@pytest.fixture
def base(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A directory that anybody may write to, as /run/lock is on Debian, in which all paths of the product lie."""
    path = tmp_path / "open"
    path.mkdir()
    path.chmod(0o1777)
    for name, works in WORKS.items():
        for constant, (place, _do) in works.items():
            if constant.strip("/ "):
                held = importlib.import_module(f"{PACKAGE}.{name}")
                ending = "/owner" if constant == "FILE" else ""
                monkeypatch.setattr(held, constant.strip("/ "), f"{path}/{place}{ending}")
    monkeypatch.setattr(facts, "kvm_fault", lambda *_: None)
    monkeypatch.setattr(channel, "host_keys", list)
    monkeypatch.setattr(channel.authorized_keys, "change", lambda *_: False)
    return path


def do(module: str, constant: str, base: pathlib.Path) -> None:
    place, work = WORKS[module][constant]
    work(str(base / ("state" if place.startswith("state") else place)))


@contextlib.contextmanager
def as_nobody(directory: pathlib.Path) -> t.Iterator[None]:
    """Work in `directory` as an unprivileged user, who cannot pass through those above it."""
    before = os.getcwd()
    os.chdir(directory)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.chdir(before)


def plant(kind: str, parts: t.Sequence[str], victim: str) -> None:
    """Put in the place of the first of `parts` what an attacker may think of."""
    if kind == "link":
        os.symlink(victim, parts[0])
    elif kind == "file":
        pathlib.Path(parts[0]).write_text("planted")
    elif kind == "fifo":
        os.mkfifo(parts[0])
    else:
        os.makedirs(os.path.join(*parts) if kind == "directories" else parts[0])
    if kind == "directory":  # the attacker's own, from which everything leads to the victim
        for name in {"name", "trips", *parts[1:2]}:
            os.symlink(victim, os.path.join(parts[0], name))


def look(path: pathlib.Path) -> dict[str, tuple[t.Any, ...]]:
    """All that is at `path` and below, with its owner, mode, time and content."""
    entries = [path, *path.rglob("*")]
    return {
        str(entry): (
            (status := entry.lstat()).st_mode,
            status.st_uid,
            status.st_mtime_ns,
            entry.read_bytes() if stat.S_ISREG(status.st_mode) else None,
        )
        for entry in entries
    }


@pytest.mark.root
@pytest.mark.parametrize("kind", ["link", "file", "fifo", "directory", "directories"])
@pytest.mark.parametrize(("module", "constant"), CASES)
def test_what_others_planted_is_refused(
    module: str, constant: str, kind: str, base: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    victim = tmp_path / "victim"
    (victim / "directory").mkdir(parents=True)
    (victim / "shadow").write_text("root:*:1::::::\n")
    for path in (victim / "shadow", victim / "directory", victim):
        os.utime(path, (1, 1))
    with as_nobody(base):
        plant(kind, WORKS[module][constant][0].split("/"), str(victim))
    before, planted = look(victim), look(base)
    with pytest.raises(NovaliteError) as refusal:
        do(module, constant, base)
    assert look(victim) == before
    assert look(base) == planted
    assert str(base) in str(refusal.value) and "nobody" in str(refusal.value)


@pytest.mark.root
@pytest.mark.parametrize(("module", "constant"), CASES)
def test_what_root_makes_is_roots_alone(module: str, constant: str, base: pathlib.Path) -> None:
    do(module, constant, base)
    do(module, constant, base) if module not in ("_disk.removed", "_host.trip") else None
    path = base
    for name in WORKS[module][constant][0].split("/"):
        path /= name
        status = path.lstat()
        assert path.is_dir() and status.st_uid == 0 and not status.st_mode & 0o022
        with as_nobody(base), pytest.raises(PermissionError):
            (path.relative_to(base) / "planted").touch()


@pytest.mark.root
def test_a_link_is_roots_choice_where_only_root_can_make_one(tmp_path: pathlib.Path) -> None:
    (tmp_path / "disk/novalite").mkdir(parents=True)
    (tmp_path / "state").symlink_to("disk/novalite")
    (tmp_path / "again").symlink_to(tmp_path / "state")
    (tmp_path / "circle").symlink_to("circle")
    with opened_own(str(tmp_path / "again"), links=True) as fd:
        assert os.path.samestat(os.fstat(fd), (tmp_path / "disk/novalite").stat())
    with pytest.raises(NotOwnError, match="state is a link of root, where root works: look at who made it"):
        make_own(str(tmp_path / "state"))
    with pytest.raises(OSError, match="levels of symbolic links"):
        make_own(str(tmp_path / "circle"), links=True)
    (tmp_path / "disk").chmod(0o777)
    with pytest.raises(NotOwnError, match=r"disk belongs to root and has mode 0777: .*chmod go-w it"):
        make_own(str(tmp_path / "again"), links=True)
    (tmp_path / "disk").chmod(0o755)
    tmp_path.chmod(0o1777)  # in a directory of everybody's, not even root's link: it may be another's, hard-linked
    with pytest.raises(NotOwnError, match="again is a link"):
        make_own(str(tmp_path / "again"), links=True)


def _host_files_of_rooms() -> t.Iterator[tuple[str, ast.Module]]:
    for path in sorted(UTILS.rglob("*.py")):
        name = ".".join(path.relative_to(UTILS).with_suffix("").parts)
        if not name.startswith(("_ledger", "_plan", "_rules", "_scheduling", "_stack", "_graph")):
            yield name, ast.parse(path.read_text())


def test_each_room_that_has_a_directory_is_attacked() -> None:
    """A path that is new, or a room that is, needs a line above."""
    attacked = {(module, constant.strip("/ ")) for module, works in WORKS.items() for constant in works}
    users, constants = set(), set()
    for name, tree in _host_files_of_rooms():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("own_directory"):
                users.add(name)
        for node in tree.body:
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
                continue
            if re.match(r"/(run|var|tmp|srv)/", str(node.value.value)):
                constants |= {(name, target.id) for target in node.targets if isinstance(target, ast.Name)}
    assert users <= WORKS.keys() | FORGO
    assert constants == {pair for pair in attacked if pair[1]} | OTHERS


def test_directories_are_made_by_one_helper() -> None:
    makers: dict[str, set[str]] = {}
    for name, tree in _host_files_of_rooms():
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            for call in ast.walk(function):
                if (
                    isinstance(call, ast.Call)
                    and ast.unparse(call.func) in ("os.makedirs", "os.mkdir", "tempfile.mkdtemp")
                    and not any(keyword.arg == "dir_fd" for keyword in call.keywords)
                ):
                    makers.setdefault(name, set()).add(function.name)
    assert makers == MAKE_BY_PATH
