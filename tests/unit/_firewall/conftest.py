# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._firewall import apply
from ansible_collections.novalite.cloud.plugins.module_utils._host import locks
from tests.unit._firewall.host_model import Host


@pytest.fixture(params=["read", "kept"])
def host(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Host:
    """A host of which each run reads the rules, or trusts what the one before it kept."""
    return Host(directory=tmp_path if request.param == "kept" else None)


@pytest.fixture
def own_files(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """Locks, and what an earlier run kept, in a directory of this test's."""
    monkeypatch.setattr(locks.locked.__wrapped__, "__defaults__", (60.0, str(tmp_path)))  # type: ignore[attr-defined]  # a wrapped function has it
    monkeypatch.setitem(t.cast(dict[str, t.Any], apply.apply.__kwdefaults__), "directory", str(tmp_path / "kept"))


@pytest.fixture(params=["nft", "legacy"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)
