# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What YAML made of a text without quotes is refused with its place, at every door, and never made a text again."""

from __future__ import annotations

import collections.abc as c
import itertools
import json
import pathlib
import re
import shutil
import types
import typing as t
import unittest.mock

import jsonschema
import pytest
import yaml
from ansible.errors import AnsibleActionFail

from ansible_collections.novalite.cloud.plugins.action.server import ActionModule as ServerAction
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._rules.server_options import SERVER, Option, v1_schema
from ansible_collections.novalite.cloud.plugins.plugin_utils._ledger_step_actions import ACTIONS as STEPS
from ansible_collections.novalite.cloud.plugins.plugin_utils._playbook_variables import meant
from tests.support.cloud import Cloud, sqlite

WRITTEN = {
    "no": "a boolean",
    "5": "a number",
    "1.10": "a number",
    "0755": "a number",
    "12:30": "a number",
    "2027-01-31": "a date",
    "2001-12-14t21:59:43.10-05:00": "a date",
    "{packages: [vim]}": "a mapping",
    "[a, b]": "a list",
}
WORDS = {"a mapping": "give a text", "a list": "give a text"}


def fields(options: c.Iterable[Option] = SERVER) -> c.Iterator[tuple[str, ...]]:
    """The way to each text of a server's options: a name, or 0 for an item of a list."""
    for option in options:
        if option.name in ("name", "count"):
            continue
        if option.suboptions:
            item = ("0",) if option.kind == "list" else ()
            yield from ((option.name, *item, *way) for way in every(option.suboptions))
        elif option.kind == "dict":
            yield (option.name, "expires")
        elif option.kind == "list" and option.elements == "str":
            yield (option.name, "0")
        elif option.kind == "str":
            yield (option.name,)


def every(options: c.Iterable[Option]) -> c.Iterator[tuple[str, ...]]:
    return ((option.name,) for option in options if option.kind == "str")


def server(way: tuple[str, ...], value: t.Any) -> dict[str, t.Any]:
    """A server with this value at the place, and with what else belongs to it there."""
    beside: dict[str, dict[str, t.Any]] = {"files": {"path": "/x", "content": "x"}, "networks": {"name": "private"}}
    for step in reversed(way[1:]):
        value = [value] if step == "0" else {**(beside.get(way[0], {}) if len(way) == 3 else {}), step: value}
    return {"name": "web", "flavor": "m1.nano", "image": "ami-tiny", way[0]: value}


# Connection, play context, loader, templar and plug-ins; to make one takes as long as a refusal
AROUND = [unittest.mock.MagicMock() for _ in range(5)]


def task(action: t.Any, **args: t.Any) -> dict[str, t.Any]:
    """Run a controller module's action, with values as playbooks hand them over, and templates that are none."""
    made = types.SimpleNamespace(args=args, check_mode=False, diff=False, async_val=0)
    ready = action(made, *AROUND)
    ready._templar.template = lambda value: value
    return t.cast("dict[str, t.Any]", ready.run(task_vars={}))


def refused(action: t.Any, **args: t.Any) -> str:
    try:
        result = task(action, **args)
    except AnsibleActionFail as error:
        return str(error)
    return str(result["msg"]) if result.get("failed") else f"taken: {result}"


def by_module(entry: dict[str, t.Any], url: str, _path: pathlib.Path) -> str:
    return refused(ServerAction, servers=[entry], ledger_url=url)


def by_variables(entry: dict[str, t.Any], url: str, path: pathlib.Path) -> str:
    """`launch.yml -e @file.yml`, with an option for each."""
    words = {"server": entry["name"], **{name: value for name, value in entry.items() if name != "name"}}
    try:
        meant("launch", words, {"launch"}, False, [])
    except NovaliteError as error:
        return str(error)
    return by_module(entry, url, path)


def by_stack(entry: dict[str, t.Any], url: str, path: pathlib.Path) -> str:
    file = path / "cloud.yml"
    file.write_text(yaml.safe_dump({"project": "demo", "servers": [entry]}))
    message = refused(STEPS["stack_plan"], path=str(file), ledger_url=url)
    assert re.search(r"cloud\.yml:\d+:\d+: ", message), message
    return message


def by_v1(entry: dict[str, t.Any], _url: str, _path: pathlib.Path) -> str:
    """JSON has no dates: a client sends what its own language makes of them."""
    sent = json.loads(json.dumps(entry, default=lambda value: {"date": str(value)}))
    return "taken" if jsonschema.Draft202012Validator(v1_schema()).is_valid(sent) else ""


DOORS = {"module": by_module, "variables": by_variables, "stack": by_stack, "v1": by_v1}


@pytest.mark.parametrize("door", DOORS)
def test_no_value_is_made_a_text_again(door: str, seeded: pathlib.Path, tmp_path: pathlib.Path) -> None:
    ways = sorted(set(fields()))
    assert len(ways) > 20
    shutil.copy(seeded, tmp_path)
    for way, (written, kind) in itertools.product(ways, WRITTEN.items()):
        value = yaml.safe_load(written)
        if way[0] == "hints" and isinstance(value, list):
            continue  # some may be lists
        message = DOORS[door](server(way, value), sqlite(tmp_path), tmp_path)
        case = f"{'.'.join(way)}: {written}: {message}"
        assert "taken" not in message, case
        if door == "v1":
            continue
        assert way[0] in message or way[-1] in message, case
        if (way[0] in ("networks", "hints") or way[-1].endswith("encoding")) and "date" not in kind:
            continue  # of several types, or of a few words: refused in words of their own
        assert kind in message and WORDS.get(kind, "a text is meant, so quote it") in message, case
        if way[0] in ("admin_password", "user_data") and written in ("0755", "12:30"):
            assert str(value) not in message.replace(str(tmp_path), ""), case
    assert Cloud(sqlite(tmp_path)).info() == []


def test_numbers_that_are_numbers_stay_so(cloud: Cloud) -> None:
    entry = {"name": "web", "flavor": "m1.nano", "image": "ami-tiny", "count": 2, "config_drive": True}
    result = task(ServerAction, servers=[{**entry, "volumes": [{"size": 3, "boot": False}]}], ledger_url=cloud.url)
    assert len(result["to_build"]) == 2, result


def test_keys_are_texts_too(cloud: Cloud) -> None:
    entry = {"name": "web", "flavor": "m1.nano", "image": "ami-tiny", "metadata": yaml.safe_load("{no: a}")}
    with pytest.raises(AnsibleActionFail, match="servers 'web': metadata: False is false, a boolean: a text is meant"):
        task(ServerAction, servers=[entry], ledger_url=cloud.url)
