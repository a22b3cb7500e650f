# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Test beds: one per backend and worker, since building one costs more than a policy's probes."""

from __future__ import annotations

import os
import typing as t

import pytest

from tests.packets.bed import Bed

GUESTS = 4


def _bed(backend: str, factory: pytest.TempPathFactory) -> t.Iterator[Bed]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with Bed(backend, GUESTS, str(factory.mktemp("locks"))) as bed:
        yield bed


@pytest.fixture(scope="session")
def nft_bed(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Bed]:
    yield from _bed("nft", tmp_path_factory)


@pytest.fixture(scope="session")
def legacy_bed(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Bed]:
    yield from _bed("legacy", tmp_path_factory)


@pytest.fixture(params=["nft", "legacy"])
def bed(request: pytest.FixtureRequest) -> Bed:
    """A host without rules, with iptables of one backend."""
    bed = t.cast(Bed, request.getfixturevalue(f"{request.param}_bed"))
    bed.clear()
    return bed
