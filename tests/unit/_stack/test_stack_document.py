# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import pathlib
import sys
import typing as t

import jsonschema
import pytest
import yaml

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import spec_of
from ansible_collections.novalite.cloud.plugins.module_utils._stack import document
from ansible_collections.novalite.cloud.plugins.module_utils._stack.document import Stack, load
from ansible_collections.novalite.cloud.plugins.modules import flavor, keypair, server_group

REPOSITORY = pathlib.Path(__file__).parents[3]
MODULES: dict[str, t.Any] = {"flavor": flavor, "keypair": keypair, "server_group": server_group}


def written(path: pathlib.Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def loaded(tmp_path: pathlib.Path, text: str) -> Stack:
    return load(None, written(tmp_path / "cloud.yml", text))


def refused(tmp_path: pathlib.Path, text: str) -> str:
    with pytest.raises(NovaliteError) as error:
        loaded(tmp_path, text)
    return str(error.value).removeprefix(f"{tmp_path}/")


def test_counts_and_profiles_are_worked_in(tmp_path: pathlib.Path) -> None:
    stack = loaded(
        tmp_path,
        """
project: {name: shop, quotas: {cores: 4}}
profiles:
  base: {image: linux, metadata: {owner: me, role: none}}
  web: {profile: base, metadata: {role: web}, networks: [front]}
servers:
  - {name: web, count: 2, profile: web, flavor: small}
  - {name: none, count: 0, profile: web}
  - {name: old, state: absent}
""",
    )
    assert (stack.name, stack.project, stack.quotas, stack.prune) == ("shop", "shop", {"cores": 4}, False)
    assert [(instance.name, instance.absent) for instance in stack.servers] == [
        ("web-1", False),
        ("web-2", False),
        ("old", True),
    ]
    assert stack.servers[1].fields == {
        "image": "linux",
        "flavor": "small",
        "networks": ["front"],
        "metadata": {"owner": "me", "role": "web"},
    }


def test_a_document_may_stand_under_its_name(tmp_path: pathlib.Path) -> None:
    assert loaded(tmp_path, "stack: {name: a}").name == "a"
    assert load({"name": "b"}, None).name == "b"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flavours: []\n", "cloud.yml:1:1: the document: 'flavours' is not an option here: did you mean 'flavors'?"),
        (
            "name: a\nservers:\n  - name: web\n    count: three\n",
            "cloud.yml:4:12: servers 'web': count is \"three\": give integer",
        ),
        (
            "stack:\n  servers:\n    - {name: web, flavour: x}\n",
            "cloud.yml:3:19: servers 'web': 'flavour' is not an option here: did you mean 'flavor'?",
        ),
        ("flavors:\n  - vcpus: 1\n", "cloud.yml:2:5: flavors[0]: 'name' is missing"),
        ("flavors:\n  - {name: a, vcpus: 0}\n", "cloud.yml:2:22: flavors 'a': vcpus is 0: give at least 1"),
        (
            "servers:\n  - {name: a, state: gone}\n",
            "cloud.yml:2:22: servers 'a': state is \"gone\": give present or absent",
        ),
        ("name: a b\n", 'cloud.yml:1:7: name is "a b": it must match ^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
        (
            "servers:\n  - {name: a, profile: nowhere}\n",
            "cloud.yml:2:24: servers 'a': there is no profile 'nowhere': the document has none",
        ),
        (
            "profiles:\n  a: {profile: b}\n  b: {profile: a}\n",
            "cloud.yml:2:6: profiles: a: the profile 'a' leads to itself: a -> b -> a",
        ),
        (
            "servers:\n  - {name: a}\n  - {name: b}\n  - {name: a}\n",
            "cloud.yml:4:5: servers: 'a' is named twice (first at {tmp}/cloud.yml:2:5)",
        ),
        (
            "servers:\n  - {name: a-1}\n  - {name: a, count: 2}\n",
            "cloud.yml:3:5: servers: 'a-1' is named twice (first at {tmp}/cloud.yml:2:5)",
        ),
        ("name: a\nname: b\n", "cloud.yml:2:1: 'name' stands here a second time (first in line 1): keep one of them"),
        ("name: [a\n", "cloud.yml:2:1: this is not YAML: did not find expected ',' or ']'"),
        ("", "cloud.yml: the file is empty: describe a stack in it"),
        (
            "servers: [{name: a, count: 600}, {name: b, count: 600}]\n",
            "cloud.yml:1:34: servers: there are more than 1000: split the document",
        ),
    ],
)
def test_errors_name_line_and_column(tmp_path: pathlib.Path, text: str, message: str) -> None:
    assert refused(tmp_path, text) == message.replace("{tmp}", str(tmp_path))


def test_a_document_of_many_aliases_is_refused(tmp_path: pathlib.Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 9):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]")
    assert "nested too deeply" in refused(tmp_path, "\n".join(lines))


def test_a_document_that_holds_itself_is_refused(tmp_path: pathlib.Path) -> None:
    assert "refers to itself" in refused(tmp_path, "servers: &a [*a]\n")


def test_an_error_without_a_file_has_no_place() -> None:
    with pytest.raises(NovaliteError, match=r"^the document: 'x' is not an option here"):
        load({"x": 1}, None)


def test_the_schema_knows_what_the_modules_take() -> None:
    for kind, module in MODULES.items():
        section = "keypairs" if kind == "keypair" else f"{kind}s"
        options = dict(spec_of(module.DOCUMENTATION)[section]["options"])
        del options["name"]
        assert set(document.fields_of(kind)) == set(options), kind


def test_the_schema_is_one_and_takes_the_example() -> None:
    whole: dict[str, t.Any] = json.loads(document.SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(whole)
    example = yaml.safe_load((REPOSITORY / "inventories/example/cloud.yml").read_text())
    jsonschema.Draft202012Validator(whole).validate(example)
    jsonschema.Draft202012Validator(whole).validate(example["stack"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(whole).validate({"stack": {"flavours": []}})


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    document.validator.cache_clear()
    with pytest.raises(NovaliteError, match=r"jsonschema.*on .*Python"):
        load({"project": "demo"}, None)
