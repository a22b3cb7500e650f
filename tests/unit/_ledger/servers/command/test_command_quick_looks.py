# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Looks of the command that ask the ledger's file at once: they find what its own queries find, and import less."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest
import sqlalchemy as sa
from tools.looks import statements

from ansible_collections.novalite.cloud.plugins.module_utils._json import Json
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_images import server_snapshot
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import looks
from api.cli import looking
from api.cli.nouns import NOUNS
from tests.support.cloud import Cloud
from tests.unit._ledger.servers.command.test_command import (
    ROOT,
    active,
    insert_backup,
    novalite,
    on_sqlite,
    other_project,
)

__all__ = ["novalite"]  # a fixture


@on_sqlite
def test_a_quick_look_finds_what_the_ledgers_own_queries_find(
    cloud: Cloud, novalite: t.Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other_project(cloud)
    active(cloud, "web")
    failed = active(cloud, "db", "hv2", project="other")
    fault = {"message": "no room", "code": 500, "created": 1}
    c = tables.instance.c
    cloud.write(sa.update(tables.instance).where(c.uuid == failed).values(vm_state="error", fault=fault, locked=True))
    asked = [
        (None, False, None),
        (None, True, None),
        ("other", False, None),
        (None, True, "hv2"),
        ("other", False, "hv1"),
    ]
    quick = [looking.servers(*words) for words in asked]
    assert [len(records) for records in quick] == [1, 2, 1, 1, 0]
    program = "import sys; from api.cli import looking; print(len(looking.servers(None, True, None)), *sys.modules)"
    counted, *modules = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=ROOT).split()
    assert counted == "2" and not {"sqlalchemy", "netaddr"} & set(modules)
    with monkeypatch.context() as patched:
        patched.setenv("NOVALITE_LEDGER_URL", f"sqlite:///{os.environ['NOVALITE_HOME']}/ledger.sqlite")
        assert [looking.servers(*words) for words in asked] == quick


@on_sqlite
def test_quick_looks_at_a_server_hosts_and_networks_find_the_same(
    cloud: Cloud, novalite: t.Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other_project(cloud)
    _web, db = active(cloud, "web"), active(cloud, "db", "hv2", project="other")
    cloud.run("aggregate", aggregates=[{"name": "fast", "zone": "z1", "hosts": ["hv1"]}])
    cloud.network("shop", "10.30.0.0/24", owner="e" * 32)
    asked = [["show", "web"], ["show", db], ["show", "db", "-p", "other"], ["events", "web"], ["hosts"]]
    asked += [["networks"], ["networks", "-A"], ["networks", "-p", "other"]]
    with monkeypatch.context() as patched:
        patched.setattr(looking, "open_ledger", None)  # the slow way
        quick = [novalite(*words, "-o", "json") for words in asked]
    assert [len(json.loads(text)) for text in quick[-4:]] == [3, 1, 2, 2]
    with monkeypatch.context() as patched:
        patched.setenv("NOVALITE_LEDGER_URL", f"sqlite:///{os.environ['NOVALITE_HOME']}/ledger.sqlite")
        assert [novalite(*words, "-o", "json") for words in asked] == quick
    for words in (["show", "web"], ["hosts"]):
        program = f"import sys; from api import cli; cli.main({words!r}, standalone_mode=False); print(*sys.modules)"
        assert "sqlalchemy" not in subprocess.check_output([sys.executable, "-c", program], text=True, cwd=ROOT).split()


LOOKS = (
    *([noun, "-A", "-o", "json"] for noun, row in NOUNS.items() if row.by_project),
    *([noun, "-o", "json"] for noun, row in NOUNS.items() if not row.by_project),
    *([noun, "-p", "other", "-o", "json"] for noun, row in NOUNS.items() if row.by_project),
    ["why", "web", "-o", "json"],
    ["why", "db", "-p", "other", "-o", "json"],
    ["top", "--once", "-o", "json"],
    ["doctor", "-i", "hosts.ini", "-o", "json"],
)


@on_sqlite
def test_quick_lists_reasons_and_findings_are_those_of_the_ledgers_own_queries(
    cloud: Cloud, novalite: t.Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    other_project(cloud)
    web, db = active(cloud, "web"), active(cloud, "db", "hv2", project="other")
    cloud.write(sa.update(tables.instance).where(tables.instance.c.uuid == db).values(vm_state="error"))
    details = {"scheduler": {"host": "hv1", "lines": ["hv1: chosen"]}}
    created = {"instance_uuid": web, "action": "create", "request_id": "req-1", "started_at": 7, "details": details}
    cloud.write(sa.insert(tables.instance_action).values(created))
    cloud.network("shop", "10.30.0.0/24", owner="e" * 32)
    cloud.run("volume", volumes=[{"name": "data", "size": 1}])
    snapshot = {"id": "5" * 36, "instance_uuid": web, "name": "before", "volumes": [], "created_at": 1, "updated_at": 1}
    cloud.insert(server_snapshot, **snapshot, status="available", host="hv1")
    insert_backup(cloud, web)
    cloud.run("security_group", project="other", security_groups=[{"name": "door", "rules": [{"protocol": "icmp"}]}])
    (tmp_path / "hosts.ini").write_text("[compute]\nhv1\nhv2\n")
    monkeypatch.chdir(tmp_path)

    def said(words: list[str]) -> list[Json]:
        return list(json.loads(novalite(*words, code=words[0] == "doctor")))

    with monkeypatch.context() as patched:
        patched.setattr(looking, "open_ledger", None)  # the slow way
        quick = [said(words) for words in LOOKS]
    assert all(quick[: len(NOUNS)]) and len(quick[-1]) > 1
    with monkeypatch.context() as patched:
        patched.setenv("NOVALITE_LEDGER_URL", f"sqlite:///{os.environ['NOVALITE_HOME']}/ledger.sqlite")
        assert [said(words) for words in LOOKS] == quick


@on_sqlite
@pytest.mark.parametrize("words", LOOKS, ids="-".join)
def test_no_look_imports_sqlalchemy(
    cloud: Cloud, novalite: t.Callable[..., str], words: list[str], tmp_path: pathlib.Path
) -> None:
    other_project(cloud)
    active(cloud, "web"), active(cloud, "db", project="other")
    (tmp_path / "hosts.ini").write_text("[compute]\nhv1\nhv2\n")
    words = [str(tmp_path / word) if word == "hosts.ini" else word for word in words]
    program = (
        f"import contextlib, sys; from api import cli\nwith contextlib.suppress(SystemExit): cli.main({words!r})\n"
    )
    program += "print(*sys.modules)"
    modules = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=ROOT).splitlines()[-1].split()
    assert "api.cli" in modules and "sqlalchemy" not in modules


@on_sqlite
def test_an_unusual_server_is_shown_by_the_ledgers_own_queries(cloud: Cloud, novalite: t.Callable[..., str]) -> None:
    uuid = active(cloud, "web")
    pairs = [{"ip_address": "10.20.0.99", "mac_address": None}]
    cloud.write(sa.update(tables.vif).values(allowed_address_pairs=pairs))
    assert json.loads(novalite("show", uuid, "-o", "json"))["nics"][0]["allowed_address_pairs"] == pairs
    of_one, c = tables.instance.c.uuid == uuid, tables.instance.c
    kept = {name: cloud.rows(sa.select(c.image))[0].image[name] for name in ("source", "checksum", "size")}
    image = {**kept, "virtual_size": 7, "disk_format": "raw"}
    cloud.write(sa.update(tables.vif).values(allowed_address_pairs=None))
    cloud.write(sa.update(tables.instance).where(of_one).values(disk_image=image))
    assert json.loads(novalite("show", uuid, "-o", "json"))["image"]["virtual_size"] == 7
    cloud.write(sa.update(tables.instance).where(of_one).values(task_state="rebooting", updated_at=1))
    assert json.loads(novalite("show", uuid, "-o", "json"))["silent_for"] > 1000


@on_sqlite
def test_a_ledger_that_is_not_as_usual_is_not_looked_at_quickly(
    cloud: Cloud, novalite: t.Callable[..., str], tmp_path: pathlib.Path
) -> None:
    active(cloud, "web")
    cloud.write(sa.update(tables.ledger_identity).values(behind="it was restored", behind_since=1))
    assert "Mind that the ledger is behind its hosts" in novalite("list")
    (tmp_path / "ledger.known").write_text("another\n")
    assert "another is to be here" in novalite("list", code=1)


def test_texts_of_quick_looks_are_those_of_the_ledgers_queries() -> None:
    assert json.loads(looks.STATEMENTS.read_text()) == statements()
