# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Marks of hosts where the controller has no ledger, has lost it, or has another."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import known
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import place_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.host_marks import open_marks
from ansible_collections.novalite.cloud.plugins.plugin_utils._handshake import Errand, Handshake
from tests.support.cloud import Cloud


def test_a_home_without_a_ledger_compares_nothing(tmp_path: pathlib.Path) -> None:
    assert open_marks(str(tmp_path), None) is None
    (tmp_path / "ledger.sqlite").touch()
    marks = open_marks(str(tmp_path), None)
    assert marks is not None and Handshake.begin(marks, Errand("hv1")) is None
    marks.close()
    (tmp_path / "ledger.sqlite").unlink()
    with pytest.raises(NovaliteError, match="cannot be used"):
        marks.begin("hv1", True)
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_ledger_that_is_lost_or_another_leaves_no_mark(home: pathlib.Path, ledger_url: str) -> None:
    """Hosts are looked at all the same: what they keep makes the ledger again."""
    Cloud(ledger_url).close()
    place = place_of(str(home), ledger_url)
    pathlib.Path(known.path_of(place)).write_text("another-ledger\n")
    for _time in range(2):
        marks = open_marks(str(home), ledger_url)
        assert marks is not None and marks.begin("hv1", False) is None
        with pytest.raises(NovaliteError, match="another-ledger"):
            marks.begin("hv1", True)
        marks.close()
        if place.path:
            pathlib.Path(place.path).unlink(missing_ok=True)
