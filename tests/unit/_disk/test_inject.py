# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Paths inside a guest and the plan of an injection, in a plain directory; openat2 needs no root."""

from __future__ import annotations

import os
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._guest.guest_root import Entry, GuestRoot
from ansible_collections.novalite.cloud.plugins.module_utils._guest.inject import File, Request, apply, plan

UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
ME = {"uid": os.getuid(), "gid": os.getgid()}


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "guest/etc").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    return tmp_path / "guest"


def test_write_and_read(root: pathlib.Path) -> None:
    entry = Entry(0o640, **ME, data=b"x")
    with GuestRoot(str(root)) as guest:
        if os.getuid() == 0:  # parents belong to root
            guest.write("/a/b/c", entry)
            assert guest.read("/a/b/c") == entry
            assert guest.directory("/a/b") == Entry(0o755)
        guest.write("/etc/x", entry)
        guest.write("/etc/x", Entry(0o600, **ME, data=b"yy"))
        assert guest.read("/etc/x") == Entry(0o600, **ME, data=b"yy")
        assert guest.read("/etc/none") is None and guest.read("/none/none") is None
    assert os.listdir(root / "etc") == ["x"]


@pytest.mark.parametrize("path", ["etc/x", "", "/", "/../x", "/etc/../../x", "/a\0b"])
def test_paths_that_are_none(root: pathlib.Path, path: str) -> None:
    with GuestRoot(str(root)) as guest, pytest.raises(NovaliteError, match="not an absolute path"):
        guest.write(path, Entry(0o644, **ME, data=b"x"))


def test_links_do_not_lead_out(root: pathlib.Path) -> None:
    outside = root.parent / "outside"
    (root / "absolute").symlink_to(outside)
    (root / "relative").symlink_to("../outside")
    (root / "magic").symlink_to("/proc/self/root")
    (root / "etc/file").symlink_to(outside / "secret")
    entry = Entry(0o644, **ME, data=b"x")
    with GuestRoot(str(root)) as guest:
        for name in ("absolute", "relative", "magic"):
            with pytest.raises(NovaliteError, match="leads nowhere inside the guest"):
                guest.write(f"/{name}/secret", entry)
            assert guest.read(f"/{name}/secret", follow=True) is None
        with pytest.raises(NovaliteError, match="symbolic link"):
            guest.read("/etc/file")
        guest.write("/etc/file", entry)  # the link itself is replaced
    assert (outside / "secret").read_text() == "secret" and sorted(os.listdir(outside)) == ["secret"]
    assert not (root / "etc/file").is_symlink()


def test_only_regular_files_of_one_name_are_read(root: pathlib.Path) -> None:
    os.mkfifo(root / "fifo")
    os.link(root.parent / "outside/secret", root / "hard")
    (root / "large").write_bytes(bytes((1 << 20) + 1))
    with GuestRoot(str(root)) as guest:
        for name, why in (
            ("fifo", "not a regular file"),
            ("etc", "not a regular file"),
            ("hard", "2 hard links"),
            ("large", "larger than"),
            ("fifo/x", "not a directory"),
        ):
            with pytest.raises(NovaliteError, match=why):
                guest.read(f"/{name}")


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="files are given to root")


@needs_root
@given(
    keys=st.lists(st.sampled_from(["ssh-rsa A", "ssh-rsa B x", " ssh-dss C "]), max_size=3),
    old=st.none() | st.sampled_from(["", "ssh-rsa A", "ssh-rsa A\n", "# ssh-rsa A\n", "ssh-rsa B x\nssh-rsa A\n"]),
    hostname=st.none() | st.just("web-1"),
    content=st.none() | st.binary(max_size=5),
)
def test_applied_once_there_is_nothing_to_do(
    tmp_path_factory: pytest.TempPathFactory,
    keys: list[str],
    old: str | None,
    hostname: str | None,
    content: bytes | None,
) -> None:
    root = tmp_path_factory.mktemp("guest")
    (root / "etc").mkdir()
    if old is not None:
        (root / "root/.ssh").mkdir(parents=True)
        (root / "root/.ssh/authorized_keys").write_text(old)
    files = (File("/srv/f", content, 0o600),) if content is not None else ()
    request = Request(UUID, tuple(keys), hostname=hostname, files=files)
    with GuestRoot(str(root)) as guest:
        steps = plan(guest, request)
        assert bool(steps) or not (hostname or files or (keys and old is None))
        apply(guest, steps)
        assert plan(guest, request) == []
    if keys:
        text = (root / "root/.ssh/authorized_keys").read_text()
        assert text.startswith(old or "")
        lines = [line.strip() for line in text.split("\n")]
        for key in keys:
            before = [line.strip() for line in (old or "").split("\n")].count(key.strip())
            assert lines.count(key.strip()) == max(1, before)


@needs_root
def test_accounts_of_the_guest(root: pathlib.Path) -> None:
    (root / "etc/passwd").write_text(
        "root:x:7:7::/:/bin/sh\ndebian:x:1000:1001:,,,:/home/debian/:/bin/bash\nbad:x:-1:0::/b:\nbig:x:4294967295:0::/b:\n"
    )
    with GuestRoot(str(root)) as guest:
        steps = {step.path: step.after for step in plan(guest, Request(UUID, ("k k",), user="debian"))}
        assert list(steps) == ["/home/debian", "/home/debian/.ssh", "/home/debian/.ssh/authorized_keys"]
        assert {(entry.uid, entry.gid) for entry in steps.values()} == {(1000, 1001)}
        root_steps = plan(guest, Request(UUID, ("k k",)))
        assert {(step.after.uid, step.after.gid) for step in root_steps} == {(0, 0)}
        for user, why in (("none", "no user 'none'"), ("bad", "no proper ids"), ("big", "impossible ids")):
            with pytest.raises(NovaliteError, match=why):
                plan(guest, Request(UUID, ("k k",), user=user))


def test_bad_requests(root: pathlib.Path) -> None:
    for keys in (("a\nb",), ("",), (" ",), ("a\0",)):
        with pytest.raises(NovaliteError, match="one line of text"):
            Request(UUID, keys)
    with pytest.raises(NovaliteError, match="at most"):
        File("/x", bytes((256 << 10) + 1))
    with pytest.raises(NovaliteError, match="mode"):
        File("/x", b"", 0o10000)
    (root / "etc").rmdir()
    with GuestRoot(str(root)) as guest, pytest.raises(NovaliteError, match="no /etc"):
        plan(guest, Request(UUID, hostname="x"))
