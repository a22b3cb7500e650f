# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Arguments of modules, what is documented, and what the scheduler knows: the same options everywhere."""

from __future__ import annotations

import dataclasses

from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import spec_of
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.choices import CHOICES
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.options import Options
from ansible_collections.novalite.cloud.plugins.modules import scheduler

SPEC = spec_of(scheduler.DOCUMENTATION)


def test_every_choice_that_the_module_takes_exists() -> None:
    for name in SPEC["choice"]["choices"]:
        assert name == CHOICES[name].name


def test_modules_take_every_option_of_the_scheduler() -> None:
    """Each with the type that the scheduler works with."""
    types = {"t.Sequence[str]": "list", "t.Mapping[str, float]": "dict", "str | None": "str"}
    fields = {field.name: types.get(str(field.type), field.type) for field in dataclasses.fields(Options)}
    assert {name: option["type"] for name, option in SPEC["options"]["options"].items()} == fields
