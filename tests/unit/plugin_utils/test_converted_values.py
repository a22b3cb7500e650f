# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values that YAML made of a text or a number are refused at each option of each controller module, with a place."""

from __future__ import annotations

import collections.abc as c
import importlib
import itertools
import pathlib
import types
import typing as t
import unittest.mock

import pytest
import yaml
from ansible.errors import AnsibleActionFail

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes.volumes import checked_metadata
from ansible_collections.novalite.cloud.plugins.plugin_utils._ledger_action import LedgerAction
from ansible_collections.novalite.cloud.plugins.plugin_utils._ledger_step_actions import ACTIONS as STEPS
from ansible_collections.novalite.cloud.plugins.plugin_utils._playbook_variables import meant
from ansible_collections.novalite.cloud.plugins.plugin_utils._playbooks import PLAYBOOKS

ACTIONS = pathlib.Path(__file__).parents[3] / "plugins" / "action"
NO_TEXT = (
    "1.10",
    "no",
    "5",
    "12:30",
    "0755",
    ".inf",
    "2027-01-31",
    "{a: b}",
    "[a, b]",
    "!!set {a, b}",
    "!!binary aGk=",
)
NO_NUMBER = ("yes", "no", ".inf", "-.inf", ".nan", "2027-01-31", "!!set {a, b}", "!!binary aGk=")
MAPS_OF_TEXTS = {
    ("aggregate", "aggregates.0.metadata"),
    ("flavor", "flavors.0.extra_specs"),
    ("image", "images.0.properties"),
    ("server", "servers.0.metadata"),
    ("server_action", "request.metadata"),
    ("server_action", "request.properties"),
    ("volume", "volumes.0.metadata"),
}
# Connection, play context, loader, templar and plug-ins, which a refusal needs not; to make one takes as long as it
AROUND = [unittest.mock.MagicMock() for _ in range(5)]
Way = tuple[str, ...]


def actions() -> c.Iterator[tuple[str, type[LedgerAction]]]:
    for path in sorted(ACTIONS.glob("*.py")):
        module = importlib.import_module(f"ansible_collections.novalite.cloud.plugins.action.{path.stem}")
        action: type = module.ActionModule
        if issubclass(action, LedgerAction):
            yield path.stem, action
    yield from STEPS.items()


def ways(spec: t.Mapping[str, t.Any], before: Way = ()) -> c.Iterator[tuple[Way, str]]:
    """The way to each option, 0 for an item of a list, and its kind."""
    for name, option in spec.items():
        kind, way = option.get("type", "str"), (*before, name)
        if kind == "list":
            kind, way = option.get("elements", "raw"), (*way, "0")
        if option.get("options"):
            yield from ways(option["options"], way)
        else:
            yield way, kind


def refusal(action: type[LedgerAction], way: Way, value: t.Any) -> str:
    args: t.Any = value
    for step in reversed(way):
        args = [args] if step == "0" else {step: args}
    made = types.SimpleNamespace(args=args, check_mode=True, diff=False, async_val=0)
    ready = action(made, *AROUND)
    with pytest.raises(AnsibleActionFail) as refused:
        ready.run(task_vars={})
    return str(refused.value)


@pytest.mark.parametrize(("name", "action"), list(actions()), ids=lambda value: value if isinstance(value, str) else "")
def test_each_option_refuses_what_yaml_converted(name: str, action: type[LedgerAction]) -> None:
    for way, kind in ways(action.spec):
        texts = kind in ("str", "path") or (name, ".".join(way)) in MAPS_OF_TEXTS
        if not texts and kind not in ("int", "float"):
            continue
        place = way if kind != "dict" else (*way, "key")
        for written in NO_TEXT if texts else NO_NUMBER:
            message = refusal(action, place, yaml.safe_load(written))
            case = f"{'.'.join(place)}: {written}: {message}"
            assert next(step for step in reversed(place) if step != "0") in message, case
            assert "meant" in message or "give a text" in message, case


def test_maps_of_texts_are_known() -> None:
    """Further options of this type belong into MAPS_OF_TEXTS, here and in the product, or hold something else."""
    maps = {
        (name, ".".join(way))
        for name, action in actions()
        for way, kind in ways(action.spec)
        if kind == "dict" and way[-1] in ("metadata", "properties", "extra_specs", "tags", "labels")
    }
    assert maps == MAPS_OF_TEXTS


@pytest.mark.parametrize("written", [each for each in NO_TEXT if "!!" not in each])
def test_metadata_of_volumes_are_texts_at_every_door(written: str) -> None:
    with pytest.raises(NovaliteError, match="metadata 'key' is"):
        checked_metadata({"key": yaml.safe_load(written)})


NUMBERS = [
    (name, word)
    for name, book in PLAYBOOKS.items()
    for word, variable in book.variables.items()
    if variable.kind in ("int", "float")
]


def test_numbers_of_playbooks_are_finite() -> None:
    for (name, word), written in itertools.product(NUMBERS, (*NO_NUMBER, "'inf'", "'NaN'")):
        with pytest.raises(NovaliteError, match=rf"{word}.* is not a "):
            meant(name, {word: yaml.safe_load(written)}, {name}, False, [])
