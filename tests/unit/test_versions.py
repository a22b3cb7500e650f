# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""All places that say which ansible-core the project takes say the same, and has no end."""

from __future__ import annotations

import pathlib
import re

import tomllib
import yaml

import ansible_collections.novalite.cloud as collection

ROOT = pathlib.Path(__file__).parents[2]
COLLECTION = pathlib.Path(next(iter(collection.__path__)))


def test_the_oldest_ansible_core_is_the_same_everywhere_and_there_is_no_newest() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (requirement,) = [each for each in project["dependencies"] if re.match(r"ansible-core\b", each)]
    oldest = re.fullmatch(r"ansible-core>=(\d+\.\d+)", requirement)
    assert oldest is not None, f"{requirement} has an upper bound, or no lower one"
    runtime = yaml.safe_load((COLLECTION / "meta" / "runtime.yml").read_text(encoding="utf-8"))
    assert runtime["requires_ansible"] == f">={oldest[1]}.0"
    for meta in COLLECTION.glob("roles/*/meta/main.yml"):
        assert yaml.safe_load(meta.read_text(encoding="utf-8"))["galaxy_info"]["min_ansible_version"] == oldest[1]
