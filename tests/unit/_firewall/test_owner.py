# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host carries the security groups of one ledger at a time."""

from __future__ import annotations

import contextlib
import pathlib
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._firewall import apply, arguments, owner
from ansible_collections.novalite.cloud.plugins.module_utils._network.ownership import Mark

MINE, THEIRS = (Mark(f"{number}f5c8a52-9d2e-4a53-8c53-9a1d3c2b7e11") for number in "01")


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> list[str]:
    """What iptables-save says, which is another host's here; and a place for the owner."""
    lines: list[str] = []

    class Done:
        stdout = property(lambda self: "\n".join(lines))

    monkeypatch.setattr(owner, "run", lambda _argv: Done())
    monkeypatch.setattr(owner, "FILE", str(tmp_path / "firewall" / "owner"))
    return lines


def test_the_first_ledger_has_the_host_while_its_chains_are_there(rules: list[str]) -> None:
    owner.take(MINE)
    rules += ["*filter", ":FORWARD DROP [0:0]", ":nova-inst-1 - [0:0]"]
    owner.take(MINE)
    with pytest.raises(ConflictError, match=f"another ledger .{MINE.text}"):
        owner.take(THEIRS)
    assert (owner.is_others(THEIRS), owner.is_others(MINE)) == (MINE.text, None)
    rules.pop()
    owner.take(THEIRS)
    rules.append(":nova-sg-7 - [0:0]")
    assert owner.is_others(MINE) == THEIRS.text


def test_who_calls_the_module_by_hand_is_not_asked(rules: list[str]) -> None:
    owner.take(MINE)
    rules.append(":nova-inst-1 - [0:0]")
    owner.take(Mark())
    assert owner.is_others(Mark()) is None and owner.is_others(THEIRS) == MINE.text


def test_another_ledgers_chains_stay(rules: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    owner.take(MINE)
    rules.append(":nova-inst-1 - [0:0]")
    touched: list[t.Any] = []
    monkeypatch.setattr(apply, "_Run", lambda *call: touched.append(call))
    monkeypatch.setattr(apply, "locked", lambda name: contextlib.nullcontext(name))
    for exclusive in (False, True):
        request = arguments.Request(state="present", exclusive=exclusive)
        with pytest.raises(ConflictError, match="carries security groups of another ledger"):
            apply.apply(request, mark=THEIRS)
    outcome = apply.apply(arguments.Request(state="absent"), mark=THEIRS)
    assert not outcome.changed and MINE.text in outcome.warnings[0]
    assert touched == []
