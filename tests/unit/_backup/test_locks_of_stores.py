# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Locks that restic leaves in a store: one of a killed reader would keep all hosts from giving back room."""

from __future__ import annotations

import os
import pathlib
import shutil

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._backup.store import Restic

pytestmark = pytest.mark.skipif(shutil.which("restic") is None, reason="needs restic")
CONTENT = os.urandom(8 << 20)  # more than what waits in pipes


@pytest.fixture
def store(tmp_path: pathlib.Path) -> Restic:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    made = Restic(str(tmp_path / "store"), "a key", str(cache))
    made.prepare()
    return made


def test_who_stops_reading_early_leaves_no_lock(store: Restic) -> None:
    name = store.put({"of": "one"}, lambda stream: stream.write(CONTENT))
    with store.get(name) as stream:
        assert stream.read(10) == CONTENT[:10]
    with pytest.raises(ValueError, match="the first bytes are wrong"), store.get(name) as stream:
        stream.read(10)
        raise ValueError("the first bytes are wrong")
    assert list(pathlib.Path(store.place, "locks").iterdir()) == []
    store.forget([name])
    store.prune(60)
