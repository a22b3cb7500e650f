# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our domain XML beside nova 34.0.0's own, as tests/parity/nova_guests.py wrote it down."""

from __future__ import annotations

import functools
import gzip
import json
import pathlib
import typing as t

import pytest

from tests.parity import differences, guest_cases, our_guests

EXPECTED = pathlib.Path(__file__).parents[2] / "parity/guests.json.gz"
DIFFERENT = {place for places in differences.GUESTS.values() for place in places}


@functools.lru_cache(maxsize=1)
def recorded() -> dict[str, t.Any]:
    return t.cast(dict, json.loads(gzip.decompress(EXPECTED.read_bytes())))


def test_the_expectations_are_those_of_these_cases() -> None:
    assert recorded()["nova"] == "34.0.0"
    assert recorded()["digest"] == guest_cases.digest(), "the cases were changed: run tests/parity/nova_guests.py"
    known = {(name, path) for name, case in guest_cases.CASES.items() for path in case.about}
    assert known >= DIFFERENT
    assert len(guest_cases.CASES) - len({name for name, _path in DIFFERENT}) - len(differences.REFUSED) >= 40


@pytest.mark.parametrize("name", guest_cases.CASES)
def test_a_guest_is_as_nova_would_make_it(name: str) -> None:
    case, nova = guest_cases.CASES[name], recorded()["answers"][name]
    ours = our_guests.answer(case)
    assert ("refused" in ours) == ("raises" in nova or name in differences.REFUSED), ours.get("refused")
    if "refused" in ours:
        assert not case.about or "xml" in nova
        return
    assert case.about
    novas, own = guest_cases.parts(nova["xml"], case.about), guest_cases.parts(ours["xml"], case.about)
    for path in case.about:
        # a difference that is listed and gone is one too many in the list
        assert (own[path] != novas[path]) == ((name, path) in DIFFERENT), (path, novas[path], own[path])
