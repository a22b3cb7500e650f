# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""An option of a noun is declared once: each door takes it as the declaration has it."""

from __future__ import annotations

import importlib
import json
import pathlib
import shutil
import subprocess
import sys
import textwrap
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import network
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import tenant_networks
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import carriers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import spec_of
from ansible_collections.novalite.cloud.plugins.module_utils._rules import noun_options, server_options
from ansible_collections.novalite.cloud.plugins.module_utils._rules.options import JSON_TYPES, Option, new_values
from ansible_collections.novalite.cloud.plugins.module_utils._stack import document
from api.jobs import kinds
from tests.support.cloud import Cloud, sqlite
from tests.support.rows import DEMO, add_project

REPOSITORY = pathlib.Path(__file__).parents[3]
Options = tuple[Option, ...]
NOUNS: dict[str, Options] = {
    "server": server_options.SERVER,
    "network": noun_options.NETWORK,
    "volume": noun_options.VOLUME,
    "image": noun_options.IMAGE,
    "security_group": noun_options.SECURITY_GROUP,
    "project": noun_options.PROJECT,
}
OF_SITES_ALONE = {"public", "state", "profile"}
V1: dict[str, t.Any] = {"server": kinds.SERVER, "security_group": kinds.GROUP}


def documented(noun: str) -> dict[str, t.Any]:
    """The module's argument spec of one such noun."""
    module = importlib.import_module(f"ansible_collections.novalite.cloud.plugins.modules.{noun}")
    return t.cast("dict[str, t.Any]", spec_of(module.DOCUMENTATION)[f"{noun}s"]["options"])


def written() -> dict[str, t.Any]:
    """The schemas of a site's document, as editors read them."""
    return t.cast("dict[str, t.Any]", json.loads(document.SCHEMA.read_text())["$defs"])


def resolved(schema: dict[str, t.Any]) -> dict[str, t.Any]:
    """The schema that a reference to a profile's option stands for; null, which takes one back, left out."""
    reference = schema.get("$ref", "")
    if reference.startswith("#/$defs/profile/"):
        schema = dict(written()["profile"]["properties"][reference.rpartition("/")[2]])
    if "enum" in schema:
        return {**schema, "enum": [choice for choice in schema["enum"] if choice is not None]}
    if isinstance(schema.get("type"), list) and "null" in schema["type"]:
        return {**schema, "type": [name for name in schema["type"] if name != "null"]}
    return schema


def compare(options: Options, schema: dict[str, t.Any], path: str) -> None:
    assert set(schema["required"]) == {option.name for option in options if option.required}, path
    for option in options:
        own, where = resolved(schema["properties"][option.name]), f"{path}.{option.name}"
        if option.choices:
            assert own["enum"] == list(option.choices), where
        elif option.json_schema is not None:
            assert option.json_schema.items() <= own.items(), where
        elif option.lists == 0 and option.kind != "raw":
            assert own["type"] in (JSON_TYPES[option.kind], [JSON_TYPES[option.kind]]), where
        if option.elements == "dict":
            compare(option.suboptions, own["items"], where)


@pytest.mark.parametrize("noun", NOUNS)
def test_each_option_has_the_same_type_default_and_choices_at_each_door(noun: str) -> None:
    todo = [(NOUNS[noun], documented(noun))]
    while todo:
        options, spec = todo.pop()
        assert [option.name for option in options] == list(spec)
        for option in options:
            own = spec[option.name]
            assert own["type"] == (option.module or option.kind), option.name
            assert own.get("required", False) == option.required, option.name
            assert (own.get("choices") or []) == list(option.choices), option.name
            assert own.get("default") == option.default, option.name
            if option.elements == "dict":
                todo.append((option.suboptions, own["options"]))
    of_site = written()[noun]
    assert set(of_site["properties"]) - OF_SITES_ALONE == {option.name for option in NOUNS[noun]}
    compare(NOUNS[noun], of_site, noun)
    if noun in V1:
        shown = tuple(option for option in NOUNS[noun] if not option.secret)
        assert list(V1[noun]["properties"]) == [option.name for option in shown]
        compare(shown, V1[noun], f"/v1 {noun}")


def test_the_schema_of_a_sites_document_is_made_of_the_declaration() -> None:
    declared = noun_options.stack_schemas()
    assert {name: written()[name] for name in declared} == declared, "run `python -m tools.stack_schema`"


def test_a_new_one_has_what_is_declared_at_the_playbooks_and_the_apis_door(
    migrated: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    cloud = Cloud(sqlite(shutil.copytree(migrated, tmp_path / "home")))
    with transaction(cloud.engine) as connection:
        add_project(connection, "demo", DEMO)
    cloud.run("network", networks=[{"name": "by-playbook", "cidr": "10.20.0.0/24"}])
    with transaction(cloud.engine) as connection:
        values = {"name": "by-api", "description": "", "mtu": None, "port_security_enabled": True}
        tenant_networks.create_network(connection, DEMO, values, carriers.Carrier("flat_dhcp", None))
        connection.execute(
            sa.insert(network).values(uuid="0", name="by-columns", bridge="br9", dhcp=True, dns=[], manager="flat")
        )
    declared = {name: value for name, value in new_values(noun_options.NETWORK).items() if value is not None}
    kept = [name for name in declared if name in network.c]
    assert "quarantine_seconds" in kept
    for row in cloud.rows(sa.select(network).order_by(network.c.id)):
        assert {name: getattr(row, name) for name in kept} == {name: declared[name] for name in kept}, row.name
    made = cloud.run("volume", project="demo", volumes=[{"name": "data", "size": 1}])["volumes"][0]
    assert (made["type"], made["bootable"], made["readonly"]) == tuple(
        new_values(noun_options.VOLUME)[name] for name in ("type", "bootable", "readonly")
    )
    cloud.close()


def test_the_values_of_a_new_one_are_the_callers_own() -> None:
    new_values(noun_options.IMAGE)["properties"]["os_admin_user"] = "root"
    assert new_values(noun_options.IMAGE)["properties"] == {}


PLANTED = """
    import importlib.util, json, sys, types

    import sqlalchemy as sa

    ROOM = "ansible_collections.novalite.cloud.plugins.module_utils."
    spec = importlib.util.find_spec(ROOM + "_rules.noun_options")
    text = open(spec.origin).read()
    for noun in ("NETWORK", "SECURITY_GROUP"):
        begin = f"\\n{noun} = (\\n    KEY,\\n"
        assert text.count(begin) == 1
        text = text.replace(begin, begin + '    Option("planted", "int", (1, 5), new=3),\\n')
        begin = f'\\n{noun}_TEXTS = r\"\"\"\\n'
        assert text.count(begin) == 1
        text = text.replace(begin, begin + "planted: A planted option.\\n")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    exec(compile(text, spec.origin, "exec"), module.__dict__)

    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables

    tables.network.append_column(sa.Column("planted", sa.Integer, nullable=False, server_default="3"))

    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import tenant_networks
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.carriers import Carrier
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import spec_of
    from ansible_collections.novalite.cloud.plugins.modules import network, security_group
    from api.jobs import kinds
    from tests.support.cloud import Cloud, sqlite
    from tests.support.rows import DEMO, add_project

    cloud = Cloud(sqlite(sys.argv[1]))
    with transaction(cloud.engine) as connection:
        add_project(connection, "demo", DEMO)
        values = {"name": "api", "description": "", "mtu": None, "port_security_enabled": True}
        tenant_networks.create_network(connection, DEMO, values, Carrier())
    asked = {"name": "n", "cidr": "10.20.0.0/24"}
    made = cloud.run("network", networks=[asked])
    changed = cloud.run("network", networks=[{**asked, "planted": 5}])
    again = cloud.run("network", networks=[{**asked, "planted": 5}])
    print(json.dumps({
        "spec": spec_of(network.DOCUMENTATION)["networks"]["options"]["planted"],
        "group": spec_of(security_group.DOCUMENTATION)["security_groups"]["options"]["planted"],
        "site": module.stack_schemas()["network"]["properties"]["planted"],
        "v1": kinds.GROUP["properties"]["planted"],
        "made": made["networks"][0]["planted"],
        "before": changed["diff"]["before"]["networks"]["n"]["planted"],
        "after": changed["networks"][0]["planted"],
        "again": again["changed"],
        "api": cloud.rows(sa.select(tables.network.c.planted).where(tables.network.c.name == "api"))[0][0],
    }))
"""


def test_to_declare_an_option_is_enough(tmp_path: pathlib.Path) -> None:
    """Beside its column, an option that is planted into the declaration needs nothing to be taken, kept, compared and
    returned."""
    command = [sys.executable, "-c", textwrap.dedent(PLANTED), str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    schema = {"type": "integer", "minimum": 1, "maximum": 5}
    assert json.loads(done.stdout) == {
        "spec": {"type": "int"},
        "group": {"type": "int"},
        "site": schema,
        "v1": schema,
        **{"made": 3, "before": 3, "after": 5, "again": False, "api": 3},
    }
