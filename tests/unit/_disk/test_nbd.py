# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The choice of an nbd device, against a copy of what the kernel shows in /sys."""

from __future__ import annotations

import pathlib
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._disk.nbd import (
    DEVICES,
    Paths,
    is_free,
    is_loaded,
    reserved_device,
)
from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from tests.support.patience import GENEROUS


def tree(path: pathlib.Path, count: int = DEVICES) -> Paths:
    for index in range(count):
        (path / "block" / f"nbd{index}").mkdir(parents=True)
    for name in ("qemu", "locks"):
        (path / name).mkdir(parents=True)
    return Paths(str(path / "block"), str(path / "qemu"), str(path / "locks"))


def test_a_device_in_use_is_passed_over(tmp_path: pathlib.Path) -> None:
    paths = tree(tmp_path)
    (tmp_path / "block/nbd3/pid").write_text("1\n")
    (tmp_path / "qemu/qemu-nbd-nbd4").touch()
    assert not is_free("nbd3", paths) and not is_free("nbd4", paths) and not is_free("nbd16", paths)
    with reserved_device(paths, wait=0, start_at=3) as name:
        assert name == "nbd5"
    with reserved_device(paths, wait=0, start_at=15) as first, reserved_device(paths, wait=0, start_at=15) as second:
        assert (first, second) == ("nbd15", "nbd0")


def test_the_lock_is_given_back_after_an_error(tmp_path: pathlib.Path) -> None:
    paths = tree(tmp_path, count=1)
    with pytest.raises(ZeroDivisionError), reserved_device(paths, wait=0):
        raise ZeroDivisionError
    with reserved_device(paths, wait=0) as name:
        assert name == "nbd0"


def test_a_device_that_is_locked_but_busy_gives_its_lock_back(tmp_path: pathlib.Path) -> None:
    paths = tree(tmp_path, count=2)
    (tmp_path / "block/nbd0/pid").write_text("1\n")
    with reserved_device(paths, wait=0, start_at=0) as name:
        assert name == "nbd1"
        (tmp_path / "block/nbd0/pid").unlink()
        with reserved_device(paths, wait=0, start_at=0) as other:
            assert other == "nbd0"


def test_none_is_free(tmp_path: pathlib.Path) -> None:
    paths = tree(tmp_path, count=2)
    with (
        reserved_device(paths, wait=0),
        reserved_device(paths, wait=0),
        pytest.raises(ConflictError, match="nbd devices have been in use"),
        reserved_device(paths, wait=0),
    ):
        raise AssertionError
    assert is_loaded(paths) and not is_loaded(Paths(str(tmp_path)))


@settings(deadline=None)  # it makes a tree of directories each time
@given(busy=st.sets(st.integers(0, DEVICES - 1), max_size=DEVICES - 1), start=st.integers(0, DEVICES - 1))
def test_the_next_free_one_from_the_start_is_taken(
    tmp_path_factory: pytest.TempPathFactory, busy: set[int], start: int
) -> None:
    path = tmp_path_factory.mktemp("sys")
    paths = tree(path)
    for index in busy:
        (path / f"block/nbd{index}/pid").touch()
    with reserved_device(paths, wait=0, start_at=start) as name:
        taken = int(name[3:])
    assert taken not in busy
    between = (taken - start) % DEVICES
    assert all((start + step) % DEVICES in busy for step in range(between))


def test_threads_never_share_a_device(tmp_path: pathlib.Path) -> None:
    paths = tree(tmp_path)
    names: list[str] = []
    together = threading.Barrier(DEVICES, timeout=GENEROUS)

    def take() -> None:
        with reserved_device(paths, wait=20) as name:
            names.append(name)
            together.wait()  # all of them hold theirs at the same time

    threads = [threading.Thread(target=take) for _ in range(DEVICES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(names) == sorted(f"nbd{index}" for index in range(DEVICES))
