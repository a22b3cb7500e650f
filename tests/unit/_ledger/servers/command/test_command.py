# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command `novalite` over a ledger of its own. `ssh` and `python` notice here what they are called with."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import click.testing
import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_images import server_backup
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.ssh_config import ssh_config
from api import cli
from tests.support.cloud import Cloud
from tests.support.patience import GENEROUS
from tests.support.rows import DEMO

ROOT = pathlib.Path(__file__).parents[5]
WEB = {"name": "web", "flavor": "m1.tiny", "image": "ami-tiny", "key": "test"}


on_sqlite = pytest.mark.parametrize("cloud", ["sqlite"], indirect=True)


@pytest.fixture
def novalite(cloud: Cloud, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., str]:
    """The command, in this process; returns what it prints."""
    for name in ("NOVALITE_LEDGER_URL", "NOVALITE_PROJECT", "NOVALITE_INVENTORY", "ANSIBLE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NOVALITE_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words: str, code: int = 0) -> str:
        done = click.testing.CliRunner().invoke(cli.main, list(words))
        assert done.exit_code == code, done.output
        return done.output

    return call


@pytest.fixture
def called(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., dict[str, t.Any]]:
    """The command as a process of its own, with nothing but programs that write down how they are called."""
    programs, log = tmp_path / "programs", tmp_path / "called"
    programs.mkdir()
    note = (
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"json.dump({{'argv': sys.argv, 'environment': dict(os.environ)}}, open({str(log)!r}, 'w'))\nsys.exit(7)\n"
    )
    for name in ("ssh", "python"):
        (programs / name).write_text(note)
        (programs / name).chmod(0o755)

    def call(*words: str) -> dict[str, t.Any]:
        program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from api import cli; "
        program += f"sys.executable = {str(programs / 'python')!r}; cli.main()"
        done = subprocess.run(
            [sys.executable, "-c", program, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path)},
            timeout=GENEROUS,
        )
        assert done.returncode == 7, done.stderr  # the program's own
        return t.cast("dict[str, t.Any]", json.loads(log.read_text()))

    return call


def insert_backup(cloud: Cloud, uuid: str) -> str:
    """Record a backup of the server; returns its id."""
    of_server = {"id": "6" * 36, "instance_uuid": uuid, "project_id": DEMO, "server": "web", "name": "friday"}
    taken = {"status": "available", "kind": "full", "size": 1, "disks": [], "gigabytes": 1, "flavor": {}, "host": "hv1"}
    cloud.insert(server_backup, **of_server, **taken, verified_at=1, created_at=1, updated_at=1)
    return "6" * 36


def active(cloud: Cloud, name: str, host: str = "hv1", **more: t.Any) -> str:
    """Have a server run on the host; returns its UUID."""
    uuid: str = cloud.server({**WEB, "name": name}, **more)["to_build"][0]["uuid"]
    cloud.place(uuid, host)
    cloud.state({"uuids": [uuid], "host": host, "state": "active"})
    return uuid


def other_project(cloud: Cloud) -> None:
    cloud.write(
        sa.insert(tables.keypair).values(
            project_id="e" * 32, name="test", public_key="ssh-ed25519 AAAA test", fingerprint="00", created_at=1
        )
    )


@on_sqlite
def test_list_is_of_one_project_or_of_all(cloud: Cloud, novalite: t.Callable[..., str]) -> None:
    other_project(cloud)
    web = active(cloud, "web")
    cloud.server({**WEB, "name": "db"}, project="other")
    assert novalite("list").split()[:6] == ["NAME", "STATUS", "HOST", "ADDRESSES", "FLAVOR", "AGE"]
    lines = novalite("list", "-c", "name,status,host,addresses,uuid").splitlines()
    assert lines[0].split() == ["NAME", "STATUS", "HOST", "ADDRESSES", "UUID"]
    assert len(lines) == 2 and lines[1].split()[:3] == ["web", "ACTIVE", "hv1"] and lines[1].endswith(web)
    assert [line.split()[0] for line in novalite("list", "--project", "other").splitlines()[1:]] == ["db"]
    (record,) = json.loads(novalite("list", "-A", "--host", "hv1", "-o", "json"))
    assert record["uuid"] == web and record["status"] == "ACTIVE" and record["addresses"]["private"][0] in lines[1]
    assert [instance["name"] for instance in json.loads(novalite("list", "-A", "-o", "json"))] == ["db", "web"]
    assert "unknown project 'shop'" in novalite("list", "-p", "shop", code=1)


@on_sqlite
def test_looking_writes_nothing(cloud: Cloud, novalite: t.Callable[..., str], tmp_path: pathlib.Path) -> None:
    before = cloud.dump()
    novalite("list")
    novalite("hosts")
    assert cloud.dump() == before
    empty = tmp_path / "empty"
    for words in (["list"], ["hosts"], ["networks"], ["show", "web"]):
        (line,) = novalite("--home", str(empty), *words, code=1).splitlines()
        assert f"there is no ledger in {empty}: say where it is" in line
    assert not empty.exists()


@on_sqlite
def test_looks_tell_what_becomes_of_a_server_whose_host_dies(cloud: Cloud, novalite: t.Callable[..., str]) -> None:
    uuid = active(cloud, "web")
    shown = dict(line.split(maxsplit=1) for line in novalite("show", "web").splitlines())
    assert shown["ha"] == "no"
    cloud.task("server_ha", servers=["web"], ha=True, ha_rebuild=True, ha_priority=7)
    shown = dict(line.split(maxsplit=1) for line in novalite("show", "web").splitlines())
    assert shown["ha"] == "yes, rebuilt, priority 7"
    assert "yes, rebuilt, priority 7" in novalite("list", "-o", "wide") and "priority" not in novalite("list")
    wishes = {"ha": True, "ha_priority": 7, "ha_rebuild": True}
    (listed,) = json.loads(novalite("list", "-o", "json"))
    for record in (json.loads(novalite("show", uuid, "-o", "json")), listed):
        assert {name: record[name] for name in wishes} == wishes


@on_sqlite
def test_show_tells_by_name_and_by_uuid(cloud: Cloud, novalite: t.Callable[..., str]) -> None:
    other_project(cloud)
    uuid = active(cloud, "web")
    theirs = active(cloud, "web", project="other")
    rows = dict(line.split(maxsplit=1) for line in novalite("show", "web").splitlines())
    assert (rows["uuid"], rows["host"], rows["key"]) == (uuid, "hv1", "test")
    assert rows["action"].startswith("create, ")
    shown = json.loads(novalite("show", theirs, "-o", "json"))  # whosever it is
    assert shown["project"]["name"] == "other" and shown["actions"][0]["action"] == "create"
    several = novalite("show", "-A", "web", code=1)
    assert uuid in several and theirs in several
    assert "there is no server 'wbe' in project demo" in novalite("show", "wbe", code=1)


@on_sqlite
def test_what_a_tenant_wrote_is_no_command_to_the_terminal(cloud: Cloud, novalite: t.Callable[..., str]) -> None:
    uuid = active(cloud, "web")
    fault = {"message": "red \x1b[31m", "code": 500, "created": 1}
    cloud.write(sa.update(tables.instance).where(tables.instance.c.uuid == uuid).values(fault=fault))
    assert "red ?[31m" in novalite("show", "web")


@on_sqlite
def test_hosts_tell_what_they_have_left(cloud: Cloud, novalite: t.Callable[..., str]) -> None:
    active(cloud, "web")
    c = tables.compute_host.c
    cloud.write(
        sa.update(tables.compute_host).where(c.name == "hv2").values(enabled=False, disabled_reason="new disks")
    )
    head, hv1, hv2, _hv3 = novalite("hosts").splitlines()
    assert head.split()[:3] == ["HOST", "STATE", "ZONE"]
    assert "1/32" in hv1 and "512/15872" in hv1
    assert "up, disabled" in hv2 and hv2.endswith("new disks")
    assert json.loads(novalite("hosts", "-o", "json"))[0]["capacity"]["vcpus"]["used"] == 1


@on_sqlite
def test_completion_offers_servers(cloud: Cloud, novalite: t.Callable[..., str]) -> None:
    active(cloud, "web")
    active(cloud, "db", "hv2")
    program = click.testing.CliRunner().invoke(
        cli.main,
        env={"_NOVALITE_COMPLETE": "bash_complete", "COMP_WORDS": "novalite ssh w", "COMP_CWORD": "2"},
        prog_name="novalite",
    )
    assert program.output.split() == ["plain,web"]


@on_sqlite
def test_ssh_goes_by_the_ssh_config_of_launches(
    cloud: Cloud, novalite: t.Callable[..., str], called: t.Callable[..., dict[str, t.Any]], tmp_path: pathlib.Path
) -> None:
    uuid = active(cloud, "web")
    assert "novalite.cloud.launch writes it" in novalite("ssh", "web", code=1)
    path = tmp_path / "ssh_config"
    with transaction(cloud.engine) as connection:
        ssh_config(connection, {"path": str(path), "identity_file": None, "servers": []})
    # what stands behind the server is not ours to read
    assert called("ssh", "web", "-v", "ps", "-p", "1")["argv"][1:] == ["-F", str(path), uuid, "-v", "ps", "-p", "1"]
    console = called("console", "web")["argv"]
    assert console[1:5] == ["-t", "-F", str(path), "hv1"] and "console --force -- instance-00000001" in console[5]


@on_sqlite
def test_what_is_done_is_done_by_playbooks(
    cloud: Cloud, novalite: t.Callable[..., str], called: t.Callable[..., dict[str, t.Any]], tmp_path: pathlib.Path
) -> None:
    uuid = active(cloud, "web")
    words = ("-i", "hosts", "-l", "hv1", "-f", "m1.tiny", "-n", "a", "-n", "b", "-e", "@more.yml", "-C", "-D", "-vv")
    launch = called("launch", "db", *words)
    playbook = ["-m", "ansible", "playbook"]
    assert launch["argv"][1:9] == [*playbook, "novalite.cloud.launch", "-i", "hosts", "--limit", "hv1"]
    assert launch["argv"][9] == "-e" and launch["argv"][11:] == ["-e", "@more.yml", "--check", "--diff", "-vv"]
    assert json.loads(launch["argv"][10]) == {"server": "db", "flavor": "m1.tiny", "networks": ["a", "b"]}
    assert launch["environment"]["ANSIBLE_PIPELINING"] == "True"

    assert f"Delete web ({uuid})" in novalite("delete", "web", code=1)  # nobody says yes
    (tmp_path / "ansible.cfg").touch()
    delete = called("delete", "-y", "web")
    assert delete["argv"][1:] == [*playbook, "novalite.cloud.terminate", "-e", json.dumps({"uuids": [uuid]})]
    assert "ANSIBLE_PIPELINING" not in delete["environment"]  # what the user's own says is not overruled
    log = called("console", "--lines", "5", "web")
    assert log["argv"][4:] == ["novalite.cloud.console", "-e", json.dumps({"uuids": [uuid], "lines": 5})]
    assert log["environment"]["ANSIBLE_STDOUT_CALLBACK"] == "novalite.cloud.console_text"
    assert called("log", "--lines", "5", "web")["argv"] == log["argv"]
    (tmp_path / "site.yml").touch()
    plan = called("plan", "site.yml")["argv"]
    assert plan == called("apply", "site.yml", "--check")["argv"] and "novalite.cloud.stack" in plan
    interface = called("attach-interface", "web", "-n", "storage")["argv"]
    variables = {"server": "web", "project": "demo", "network": "storage"}
    assert interface[4:] == ["novalite.cloud.interface_attach", "-e", json.dumps(variables)]
    cdrom = called("cdrom", "web", "--eject", "--drive", "1")["argv"]
    assert cdrom[4] == "novalite.cloud.cdrom"
    assert json.loads(cdrom[6]) == {"server": "web", "project": "demo", "eject": True, "drive": 1}
    assert "say one of --insert" in novalite("cdrom", "web", code=2)
    restore = called("ledger", "restore", "site.yml", "--force")["argv"]
    assert restore[4] == "novalite.cloud.ledger_restore"
    assert json.loads(restore[6]) == {"ledger_file": str(tmp_path / "site.yml"), "force": True}


@on_sqlite
@pytest.mark.usefixtures("cloud")
@pytest.mark.parametrize("path", ["/srv/my cloud/inv", "/srv/a:b/inv", "hv1,hv2,", "/srv/it's/inv", "relative inv"])
def test_an_inventory_of_the_environment_is_one_path(
    called: t.Callable[..., dict[str, t.Any]], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("NOVALITE_INVENTORY", path)
    by_environment = called("launch", "-e", "server=web")["argv"]
    monkeypatch.delenv("NOVALITE_INVENTORY")
    assert by_environment == called("launch", "-e", "server=web", "-i", path)["argv"]
    assert path in by_environment
