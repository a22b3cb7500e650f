# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order in which the files of an instance travel."""

from __future__ import annotations

import pathlib
import subprocess
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import layout
from ansible_collections.novalite.cloud.plugins.module_utils._transfer import channel, transfer

UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
MOVE: channel.Move = {"id": "1d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41", "uuid": UUID, "to_host": "hv2", "to_address": ""}


def test_what_disks_stand_on_is_known_before_they_arrive(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An eviction at the destination would take it away else. tar's output is read here, where ssh carries it there."""
    directory = tmp_path / "instances" / UUID
    directory.mkdir(parents=True)
    for name in (layout.DISK, layout.EPHEMERAL, layout.DISK_INFO, layout.NVRAM):
        (directory / name).write_bytes(b"x")
    arrived: list[str] = []

    def pipe(tar: list[str], _ssh: list[str], **_options: t.Any) -> None:
        archive = subprocess.run(tar, check=True, capture_output=True).stdout
        arrived.extend(
            subprocess.run(["tar", "-t"], input=archive, check=True, capture_output=True).stdout.decode().split()
        )

    monkeypatch.setattr(transfer, "pipe", pipe)
    monkeypatch.setattr(channel, "ssh", lambda _move, _door: ["ssh"])
    transfer.send([MOVE], {"hv2": channel.Door("192.0.2.1", ())}, str(tmp_path))
    assert arrived[0] == layout.DISK_INFO and len(arrived) == 4
