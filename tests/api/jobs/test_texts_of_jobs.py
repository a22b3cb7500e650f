# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of a job, as its playbook gets them from Ansible: the same ones, and no template."""

from __future__ import annotations

import pathlib
import typing as t

from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.plugin_utils._playbook_variables import meant
from api.jobs import runs
from api.jobs.kinds import KINDS

# What YAML has another type for, where it has no quotes
TYPED = (
    "2024",
    "007",
    "1.10",
    "1e3",
    "12:30",
    "0x1f",
    "1_000",
    "yes",
    "off",
    "true",
    "null",
    "~",
    "",
    "2027-01-31",
    "=",
    "<<",
)
TEXTS = st.sampled_from((*TYPED, "{{ 6 * 7 }}", "{% raw %}", "lookup('pipe', 'id')")) | st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=20
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(("snapshot", "image_name", "reason")), TEXTS | st.lists(TEXTS, max_size=2)))
def test_ansible_gets_them_as_they_are(tmp_path: pathlib.Path, variables: dict[str, t.Any]) -> None:
    loader = DataLoader()
    (tmp_path / "variables.yml").write_text(runs.variables_file(variables), encoding="utf-8")
    loaded = loader.load_from_file(str(tmp_path / "variables.yml"), cache="none")
    assert loaded == variables
    assert Templar(loader=loader, variables=loaded).template(loaded) == variables


def test_each_text_of_each_kind_may_look_like_something_else() -> None:
    checked = []
    for kind in KINDS.values():
        book = kind.playbook.removesuffix(".yml")
        for name, schema in kind.variables.items():
            if schema.get("type") != "string" or "pattern" in schema or "enum" in schema:
                continue
            for text in filter(None, TYPED):
                extra = DataLoader().load(runs.variables_file({name: text}))
                assert text in meant(book, extra, {book}, False, []).values()
                checked.append(name)
    assert {"image_name", "snapshot", "backup"} <= set(checked)
