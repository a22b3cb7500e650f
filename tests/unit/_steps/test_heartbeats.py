# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Heartbeats on shared storage: their ages, by the storage's own clock."""

from __future__ import annotations

import os
import pathlib
import time

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host import heartbeat


def test_ages_are_counted_from_the_beat_of_who_reads_them(tmp_path: pathlib.Path) -> None:
    assert heartbeat.beat(str(tmp_path), "hv1") == {"hv1": 0}
    now = (tmp_path / "hv1").stat().st_mtime
    for host, age in (("hv2", 30.0), ("hv3", 0.5)):
        (tmp_path / host).touch()
        os.utime(tmp_path / host, (now - age, now - age))
    before = time.time()
    ages = heartbeat.beat(str(tmp_path), "hv1")
    late = time.time() - before + (before - now)  # that the second beat is after the first, at most
    assert ages["hv1"] == 0
    assert 30.0 <= ages["hv2"] <= 30.0 + late + 0.01
    assert 0.5 <= ages["hv3"] <= 0.5 + late + 0.01


def test_what_is_no_heartbeat_is_left_out(tmp_path: pathlib.Path) -> None:
    (tmp_path / ".nfs0001").touch()
    (tmp_path / "hv2").symlink_to("/etc/hostname")
    assert set(heartbeat.beat(str(tmp_path), "hv1")) == {"hv1"}


def test_storage_that_is_not_there_is_not_made(tmp_path: pathlib.Path) -> None:
    with pytest.raises(NovaliteError, match="novalite_ha_heartbeat names a directory"):
        heartbeat.beat(str(tmp_path / "gone"), "hv1")
    assert not (tmp_path / "gone").exists()
    with pytest.raises(NovaliteError, match="cannot be the name of a file"):
        heartbeat.beat(str(tmp_path), "../hv1")
