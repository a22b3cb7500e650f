# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks that a restore replaces, when it is cut off while it puts them back."""

from __future__ import annotations

import os
import pathlib

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._backup import former_disks, tpm
from ansible_collections.novalite.cloud.plugins.module_utils._backup.former_disks import FormerDisks

UUID = "6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11"


def of_run(run: str, home: pathlib.Path) -> FormerDisks:
    return FormerDisks(run, UUID, str(home), [str(home / name) for name in ("disk", "disk.eph")])


def replaced(home: pathlib.Path, text: str) -> None:
    for name in ("disk", "disk.eph"):
        (home / name).unlink(missing_ok=True)
        (home / name).write_text(text)


def test_the_next_restore_keeps_what_a_put_back_that_was_cut_off_left(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tpm, "VERSIONS", ())
    replaced(tmp_path, "the server's")
    first = of_run("first", tmp_path)
    first.keep()
    replaced(tmp_path, "of the first backup")
    first.end()

    def rename(source: str, target: str) -> None:
        if target.endswith(".eph"):
            raise KeyboardInterrupt
        os.replace(source, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(former_disks.os, "rename", rename)
        first.put_back()
    second = of_run("second", tmp_path)
    second.keep()
    replaced(tmp_path, "of the second backup")
    second.put_back()
    assert {(tmp_path / name).read_text() for name in ("disk", "disk.eph")} == {"the server's"}
    assert sorted(os.listdir(tmp_path)) == ["disk", "disk.eph"]
