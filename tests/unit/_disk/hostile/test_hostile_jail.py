# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Both corpora on a host whose every change is seen (jail.py): nothing but the instance's own directory may differ."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import typing as t

import pytest

from tests.support.patience import GENEROUS
from tests.unit._disk.hostile.guests import GUESTS, INJECTED
from tests.unit._disk.hostile.images import IMAGES
from tests.unit._disk.hostile.jail import LIMIT_CPU, LIMIT_MEMORY, REPOSITORY

pytestmark = pytest.mark.root


def jailed(corpus: str) -> dict[str, dict[str, t.Any]]:
    """The result of every case, by its name."""
    command = [sys.executable, "-B", "-m", "tests.unit._disk.hostile.jail", corpus]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=2 * GENEROUS, check=False)
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    return {result.pop("name"): result for result in results}


def harm(result: dict[str, t.Any]) -> t.Iterator[str]:
    """Yield what no case may do, whether it is refused or not."""
    for key in ("crash", "touched", "left", "mounts", "nodes"):
        if result.get(key):
            yield f"{key}: {result[key]}"
    if result["cpu"] > LIMIT_CPU or result["memory"] > LIMIT_MEMORY:
        yield f"{result['cpu']} s, {result['memory']} bytes"
    if not (result["refusal"] or "").isprintable():
        yield f"not printable: {result['refusal']!r}"


def wrong(expected: str | None, result: dict[str, t.Any]) -> t.Iterator[str]:
    refusal = result["refusal"]
    if refusal is None:
        if expected:
            yield f"injected, instead of: {expected}"
        if not result["has_key"] or result["again"]:
            yield "the key is not there, or was written twice"
    elif expected == INJECTED or not re.search(expected or "", refusal):
        yield f"refused with {refusal!r}, instead of {expected!r}"


def test_hostile_guests_change_nothing_but_themselves() -> None:
    results = jailed("guests")
    assert len(results) == len(GUESTS) >= 40
    problems_by_guest = {
        guest.name: [*harm(results[guest.name]), *wrong(guest.expected, results[guest.name])] for guest in GUESTS
    }
    assert {name: problems for name, problems in problems_by_guest.items() if problems} == {}


def test_no_kernel_reads_the_file_systems_of_tenants() -> None:
    """Images that the operator did not vouch for are launched where no mount and no loop or nbd device is to be had."""
    results = jailed("tenants")
    assert len(results) == len(GUESTS)
    refused = {guest.name for guest in GUESTS if guest.expected == "content is qcow2"}
    problems_by_guest: dict[str, list[str]] = {}
    for name, result in results.items():
        problems_by_guest[name] = [*harm(result), *(key for key in ("injections", "injected") if result.get(key))]
        if name in refused:
            problems_by_guest[name] += [] if "qcow2" in result["refusal"] else ["accepted"]
        elif result["refusal"] or not result["has_key"] or not result["unread"]:
            problems_by_guest[name].append(f"not told by its config drive, or written to: {result}")
    assert {name: problems for name, problems in problems_by_guest.items() if problems} == {}


def test_what_the_operator_vouches_for_needs_the_kernel() -> None:
    """The proof above is worth nothing unless the same way with a mount in it fails there."""
    (result,) = jailed("vouched").values()
    assert result["injections"] == 1 and (result.get("crash") or result["refusal"])


def test_hostile_images_change_nothing_at_all() -> None:
    results = jailed("images")
    assert len(results) == len(IMAGES) >= 40
    problems_by_image = {
        name: [*harm(result), *([] if result["refusal"] and not result["cached"] else ["accepted"])]
        for name, result in results.items()
    }
    assert {name: problems for name, problems in problems_by_image.items() if problems} == {}


def test_the_jail_sees_what_is_written() -> None:
    """The proof is worth nothing unless a write anywhere is seen."""
    before = os.stat("/etc/passwd").st_mode, os.path.exists("/etc/group")
    assert jailed("self-test") == {
        "self-test": {"seen": ["etc", "etc/group", "etc/new", "etc/new/x", "etc/passwd", "run/y", "usr", "usr/z"]}
    }
    assert (os.stat("/etc/passwd").st_mode, os.path.exists("/etc/group")) == before
