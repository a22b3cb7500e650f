# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The list of mutants follows the sources: each line stands once where it is looked for, and so do its tests."""

from __future__ import annotations

import pytest

from tests.mutants.listed import ROOT, Mutant, mutants


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_a_mutant_can_be_made(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text()
    assert text.count(mutant.old) == 1 and mutant.new != mutant.old
    assert all((ROOT / path).exists() for path in mutant.tests)


def test_each_has_a_name_of_its_own() -> None:
    names = [mutant.name for mutant in mutants()]
    assert len(set(names)) == len(names)
