# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Arguments of modules, what is documented, and what the scheduler knows: the same options everywhere."""

from __future__ import annotations

import dataclasses

import yaml

from ansible_collections.novalite.cloud.plugins.doc_fragments.scheduling import ModuleDocFragment
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.arguments import SCHEDULING_ARGUMENTS
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.choices import CHOICES
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.options import Options
from ansible_collections.novalite.cloud.plugins.modules import scheduler


def test_every_choice_that_the_module_takes_exists() -> None:
    for name in scheduler.ARGUMENT_SPEC["choice"]["choices"]:
        assert name == CHOICES[name].name


def test_modules_take_every_option_of_the_scheduler() -> None:
    fields = [field.name for field in dataclasses.fields(Options)]
    documented = yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"]
    assert sorted(SCHEDULING_ARGUMENTS["options"]["options"]) == sorted(fields)
    assert sorted(documented["options"]["suboptions"]) == sorted(fields)
    assert sorted(documented) == sorted(SCHEDULING_ARGUMENTS)
