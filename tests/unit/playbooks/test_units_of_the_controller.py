# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's services find their program and the ledger, whatever the directories of both are called."""

from __future__ import annotations

import pathlib
import re
import shlex

import pytest
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ansible_collections.novalite.cloud.plugins.plugin_utils._texts import as_bool

ROLE = pathlib.Path(__file__).parents[3] / "roles" / "controller"
UNITS = sorted(path.name for path in (ROLE / "templates").glob("*.service.j2"))
DIRECTORIES = ["/opt/novalite", "/srv/my cloud", "/srv/feature%2Fvpn", "/srv/grün", "/srv/%h %%i", "/srv/it's here"]
# of systemd.exec(5) and systemd.service(5): they take words, the others a line
OF_WORDS = ("ExecStart", "ReadWritePaths", "InaccessiblePaths", "ReadOnlyPaths", "LoadCredential", "Documentation")


def rendered(unit: str, directory: str, home: str) -> str:
    environment = Environment(loader=FileSystemLoader(ROLE / "templates"), undefined=StrictUndefined)
    environment.filters["novalite.cloud.as_bool"] = as_bool
    environment.tests["match"] = lambda text, pattern: re.match(pattern, text) is not None
    variables = {**yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())}
    variables |= yaml.safe_load((ROLE / "vars" / "main.yml").read_text())
    variables |= {"controller_directory": directory, "controller_home": home, "controller_ledger_url": "", "item": 1}
    for _round in range(4):  # of variables in variables
        for name, value in variables.items():
            if isinstance(value, str) and "{{" in value and name.startswith("controller_") and "units" not in name:
                variables[name] = environment.from_string(value).render(variables)
    return environment.get_template(unit).render(variables)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("home", DIRECTORIES)
@pytest.mark.parametrize("directory", DIRECTORIES)
def test_a_unit_has_its_paths_whole(unit: str, directory: str, home: str) -> None:
    for line in rendered(unit, directory, home).splitlines():
        name, equals, value = line.partition("=")
        if not equals or line.startswith("#"):
            continue
        assert not re.search(r"%(?!%|[idt]\b)", value.replace("%%", "")), line
        words = shlex.split(value.replace("%%", "\0")) if name in OF_WORDS else [value.replace("%%", "\0")]
        words = [word.replace("\0", "%").lstrip("-") for word in words]
        if name == "ExecStart" and "/venv/" in value:
            assert words[0].startswith(f"{directory}/current/venv/bin/"), line
        elif name == "ReadWritePaths":
            assert words == [home], line
        elif name == "InaccessiblePaths":
            assert words[:2] == [home, directory], line
        elif name == "WorkingDirectory":
            assert words == [f"{directory}/current"], line
        elif name == "Documentation":
            assert len(words) == 1 and words[0].startswith("file:/"), line
