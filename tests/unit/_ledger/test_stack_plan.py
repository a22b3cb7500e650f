# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documents against ledgers: what is planned, carried out, planned again, and whose work is removed."""

from __future__ import annotations

import copy
import os
import pathlib
import shutil
import subprocess
import sys
import typing as t

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading, transaction
from tests.bench.stack import carry_out
from tests.support.patience import GENEROUS
from tests.support.rows import add_host
from tests.unit._ledger.conftest import Run, on_sqlite

REPOSITORY = pathlib.Path(__file__).parents[3]
EXAMPLES = int(os.environ.get("NOVALITE_STACK_EXAMPLES", "6"))
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2ZrEW7v7EmTZ1FPH3pwW9LmqzQUvVb8nXKPqvMZ3XN me"

Document = dict[str, t.Any]


@pytest.fixture
def stack(tmp_path: pathlib.Path) -> Document:
    (tmp_path / "disk").write_bytes(bytes(512))
    return {
        "name": "shop",
        "project": {"name": "shop", "quotas": {"cores": 30}},
        "flavors": [{"name": "small", "vcpus": 1, "memory_mb": 96}, {"name": "large", "vcpus": 2, "memory_mb": 96}],
        "images": [{"name": "linux", "source": str(tmp_path / "disk"), "disk_format": "raw", "any_content": True}],
        "networks": [{"name": "front", "cidr": "10.60.0.0/24"}, {"name": "back", "cidr": "10.61.0.0/24"}],
        "keys": [{"name": "me", "public_key": KEY}],
        "security_groups": [
            {"name": "web", "rules": [{"protocol": "tcp", "port_min": 80}]},
            {"name": "db", "rules": [{"protocol": "tcp", "port_min": 5432, "remote_group": "web"}]},
        ],
        "server_groups": [{"name": "apart", "policy": "soft-anti-affinity"}],
        "profiles": {"base": {"flavor": "small", "image": "linux", "key": "me", "networks": ["front"]}},
        "servers": [
            {
                "name": "web",
                "profile": "base",
                "count": 2,
                "security_groups": ["web"],
                "metadata": {"role": "web"},
                "hints": {"group": "apart"},
                "user_data": "#!/bin/sh",
                "config_drive": True,
                "hostname": "front",
            },
            {
                "name": "db",
                "profile": "base",
                "security_groups": ["db"],
                "files": [{"path": "/a", "content": "b"}],
                "networks": [{"name": "back", "fixed_ip": "10.61.0.9"}],
                "admin_password": "geheim",
            },
        ],
    }


@pytest.fixture
def zone(ledger_url: str) -> None:
    """A compute host in the zone `nova`."""
    engine = open_ledger(url=ledger_url)
    with transaction(engine) as connection:
        add_host(connection, "hv1")
    engine.dispose()


def contents(ledger_url: str) -> dict[str, list[t.Any]]:
    """All of the ledger."""
    engine = open_ledger(url=ledger_url)
    with reading(engine) as connection:
        rows_by_table = {
            table.name: list(connection.execute(sa.select(table))) for table in tables.metadata.sorted_tables
        }
    engine.dispose()
    return rows_by_table


def actions(plan: t.Mapping[str, t.Any]) -> list[tuple[str, str, str]]:
    return [(item["action"], item["kind"], item["name"]) for item in plan["plan"]]


def test_carried_out_there_is_nothing_left_to_do(ledger_url: str, ledger: sa.Engine, stack: Document) -> None:
    first = carry_out(stack, ledger_url=ledger_url)
    assert {action for action, _kind, _name in actions(first)} == {"+"}
    assert [name for _action, kind, name in actions(first) if kind == "server"] == ["web-1", "web-2", "db"]
    before = contents(ledger_url)
    again = carry_out(stack, ledger_url=ledger_url)
    assert (again["pending"], again["plan"], again["launch"], again["terminate"]) == (0, [], [], [])
    assert contents(ledger_url) == before


def test_a_plan_changes_nothing(run: Run, ledger_url: str, stack: Document) -> None:
    before = contents(ledger_url)
    assert run("stack_plan", document=stack)["pending"] == 13
    assert contents(ledger_url) == before
    carry_out(stack, ledger_url=ledger_url)
    before = contents(ledger_url)
    stack["servers"] = []
    stack["prune"] = True
    assert run("stack_plan", document=stack)["summary"]["-"] == 3
    assert contents(ledger_url) == before


@on_sqlite
def test_an_edit_changes_what_was_edited(run: Run, ledger_url: str, stack: Document) -> None:
    carry_out(stack, ledger_url=ledger_url)
    stack["project"]["quotas"]["cores"] = 40
    stack["security_groups"][0]["rules"][0]["port_min"] = 443
    stack["servers"][0]["metadata"]["role"] = "front"
    stack["servers"][1]["security_groups"] = ["db", "web"]
    plan = run("stack_plan", document=stack)
    assert actions(plan) == [
        ("~", "project", "shop"),
        ("~", "security_group", "web"),
        ("~", "server", "web-1"),
        ("~", "server", "web-2"),
        ("~", "server", "db"),
    ]
    assert plan["plan"][0]["changes"] == [{"field": "quotas.cores", "before": 30, "after": 40}]
    assert plan["plan"][2]["changes"] == [{"field": "metadata.role", "before": "web", "after": "front"}]
    assert plan["security_groups"]["join"] == [{"name": "db", "security_groups": ["web"]}]
    assert [group["name"] for group in plan["security_groups"]["security_groups"]] == ["web"]
    carry_out(stack, ledger_url=ledger_url)
    assert run("stack_plan", document=stack)["pending"] == 0


@on_sqlite
@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize(
    ("server", "change"),
    [
        (0, {"flavor": "large"}),
        (0, {"image": "other"}),
        (0, {"networks": ["back"]}),
        (0, {"key": "you"}),
        (0, {"hostname": "behind"}),
        (0, {"user_data": "#!/bin/bash"}),
        (0, {"config_drive": False}),
        (0, {"availability_zone": "nova"}),
        (0, {"hints": {"group": "together"}}),
        (1, {"networks": [{"name": "back", "fixed_ip": "10.61.0.10"}]}),
        (1, {"files": [{"path": "/a", "content": "c"}]}),
    ],
)
def test_what_needs_a_new_instance_waits_for_consent(
    run: Run, ledger_url: str, stack: Document, server: int, change: Document
) -> None:
    stack["images"].append({**stack["images"][0], "name": "other"})
    stack["keys"].append({"name": "you", "public_key": KEY})
    stack["server_groups"].append({"name": "together", "policy": "soft-affinity"})
    carry_out(stack, ledger_url=ledger_url)
    stack["servers"][server].update(change)
    names = ["web-1", "web-2"] if server == 0 else ["db"]
    plan = run("stack_plan", document=stack)
    assert actions(plan) == [("-/+", "server", name) for name in names]
    assert (plan["refused"], plan["launch"], plan["terminate"]) == (names, [], [])
    before = contents(ledger_url)
    with pytest.raises(NovaliteError, match=r"deleted and launched anew.*replace=true"):
        run("stack_plan", document=stack, phase="records")
    assert contents(ledger_url) == before
    assert carry_out(stack, ledger_url=ledger_url, replace=True)["refused"] == []
    assert run("stack_plan", document=stack)["pending"] == 0


@on_sqlite
def test_only_what_is_said_is_compared(run: Run, ledger_url: str, stack: Document) -> None:
    carry_out(stack, ledger_url=ledger_url)
    for server in stack["servers"]:
        for field in [*server]:
            if field not in ("name", "count"):
                del server[field]
    for section in ("flavors", "images", "networks", "keys", "security_groups", "server_groups"):
        stack[section] = [{"name": item["name"]} for item in stack[section]]
    assert run("stack_plan", document=stack)["pending"] == 0


@on_sqlite
def test_a_stack_of_the_operators_own_has_no_limits(run: Run, ledger_url: str, stack: Document) -> None:
    stack["project"]["quotas"] = "unlimited"
    assert ("+", "project", "shop") in actions(run("stack_plan", document=stack))
    stack["servers"][0]["count"] = 12  # a public cloud's project has 10
    carry_out(stack, ledger_url=ledger_url)
    assert run("stack_plan", document=stack)["pending"] == 0


@on_sqlite
def test_a_stack_removes_what_it_made_and_nothing_else(run: Run, ledger_url: str, stack: Document) -> None:
    run("project", projects=[{"name": "shop"}])
    run("flavor", flavors=[{"name": "small", "vcpus": 1, "memory_mb": 96}])
    run("security_group", project="shop", security_groups=[{"name": "theirs"}])
    carry_out(stack, ledger_url=ledger_url)
    theirs = {"name": "theirs", "flavor": "small", "image": "linux", "networks": ["back"]}
    run("server", project="shop", servers=[theirs])
    other = {"name": "other", "project": "shop", "flavors": [{"name": "tiny", "vcpus": 1, "memory_mb": 64}]}
    carry_out(other, ledger_url=ledger_url)
    empty = {"name": "shop", "project": "shop"}
    kept = run("stack_plan", document=empty)
    assert kept["pending"] == 0 and sorted(kept["unnamed"]) == ["db", "web-1", "web-2"]
    with pytest.raises(NovaliteError, match="network 'back' is in use by the instance 'theirs'"):
        run("stack_plan", document={**empty, "prune": True})
    run("server", project="shop", servers=[{"name": "theirs"}], state="absent")
    run(
        "server_state",
        outcomes=[
            {
                "uuids": [row.uuid for row in contents(ledger_url)["instance"] if row.name == "theirs"],
                "state": "deleted",
            }
        ],
    )
    plan = carry_out(empty, ledger_url=ledger_url, prune=True)
    assert {action for action, _kind, _name in actions(plan)} == {"-"}
    left = contents(ledger_url)
    assert [row.name for row in left["flavor"]] == ["small", "tiny"]
    assert sorted(row.name for row in left["security_group"]) == ["default", "theirs"]
    assert [left[kind] for kind in ("network", "image", "keypair", "server_group")] == [[], [], [], []]
    assert [row.name for row in left["instance"] if not row.deleted] == []
    assert run("stack_plan", document=empty, prune=True)["pending"] == 0


@on_sqlite
def test_a_record_made_anew_by_somebody_is_not_the_stacks(run: Run, ledger_url: str) -> None:
    document = {"name": "a", "project": "demo", "flavors": [{"name": "small", "vcpus": 1, "memory_mb": 96}]}
    carry_out(document, ledger_url=ledger_url)
    run("flavor", flavors=[{"name": "small"}], state="absent")
    run("flavor", flavors=[{"name": "small", "vcpus": 1, "memory_mb": 96}])
    assert run("stack_plan", document={"name": "a", "project": "demo"}, prune=True)["pending"] == 0


@on_sqlite
def test_what_is_marked_as_absent_goes(run: Run, ledger_url: str, stack: Document) -> None:
    carry_out(stack, ledger_url=ledger_url)
    stack["servers"][1] = {"name": "db", "state": "absent"}
    stack["networks"][1] = {"name": "back", "state": "absent"}
    stack["security_groups"][1] = {"name": "db", "state": "absent"}
    plan = carry_out(stack, ledger_url=ledger_url)
    assert actions(plan) == [("-", "server", "db"), ("-", "security_group", "db"), ("-", "network", "back")]
    assert run("stack_plan", document=stack)["pending"] == 0


@on_sqlite
def test_what_the_ledger_would_refuse_is_refused_with_its_line(
    run: Run, ledger_url: str, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "cloud.yml"
    before = contents(ledger_url)
    for text, message in (
        (
            "networks:\n  - {name: a, cidr: 10.0.0.0/24}\n  - {name: b, cidr: 10.0.0.0/25}\n",
            "cloud.yml:3:5: network 'b'.*overlaps",
        ),
        (
            "networks:\n  - {name: a, cidr: 10.0.0.0/24}\nservers:\n  - {name: web, flavor: big, image: none}\n",
            "cloud.yml:4:25: unknown flavor 'big'",
        ),
        ("servers:\n  - {name: web_1}\n", "cloud.yml:2:5: server name 'web_1' is not a host name"),
        ("project: {name: demo, quotas: {corse: 1}}\n", "cloud.yml:1:10: .*corse"),
        (
            "flavors: [{name: s, vcpus: 9, memory_mb: 1}]\nservers:\n  - {name: web, flavor: s, count: 9}\n",
            "cloud.yml:3:5: server 'web-1' .*names no image",
        ),
        (
            "security_groups:\n  - {name: a, rules: [{protocol: tcp, port_min: 9, port_max: 8}]}\n",
            "cloud.yml:2:5: security group 'a': rule: port_min 9 is larger",
        ),
    ):
        path.write_text(text)
        with pytest.raises(NovaliteError, match=message):
            run("stack_plan", path=str(path))
    assert contents(ledger_url) == before


names = st.sampled_from(["a", "b", "c"])
servers = st.lists(
    st.fixed_dictionaries(
        {"name": names},
        optional={
            "count": st.integers(0, 3),
            "state": st.sampled_from(["present", "absent"]),
            "flavor": st.sampled_from(["small", "large"]),
            "metadata": st.dictionaries(names, names, max_size=2),
            "security_groups": st.lists(st.sampled_from(["web", "db"]), unique=True, max_size=2),
        },
    ),
    max_size=3,
    unique_by=lambda server: server["name"],
)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents=st.lists(st.tuples(servers, st.booleans()), min_size=2, max_size=3))
def test_any_document_carried_out_leaves_nothing_to_do(
    home: pathlib.Path, tmp_path: pathlib.Path, stack: Document, documents: list[tuple[list[Document], bool]]
) -> None:
    mine = tmp_path / "mine"
    shutil.rmtree(mine, ignore_errors=True)
    shutil.copytree(home, mine)
    for servers, prune in documents:
        document = copy.deepcopy({**stack, "servers": servers, "prune": prune})
        document["profiles"]["base"]["flavor"] = "small"
        for server in document["servers"]:
            server["profile"] = "base"
        carry_out(document, home=str(mine), replace=True)
        again = carry_out(document, home=str(mine))
        assert actions(again) == []
        url = f"sqlite:///{mine}/ledger.sqlite"
        running = {row.name for row in contents(url)["instance"] if not row.deleted}
        desired_names = {
            server["name"] for server in servers if server.get("state") != "absent" and server.get("count", 1) == 1
        }
        assert desired_names <= running
        if prune:
            assert len(running) == sum(server.get("count", 1) for server in servers if server.get("state") != "absent")


def test_the_playbook_plans_and_answers_by_its_exit_code(tmp_path: pathlib.Path) -> None:
    """The real ansible-playbook, in check mode, over a ledger that is not there yet."""
    (tmp_path / "disk").write_bytes(bytes(510) + b"\x55\xaa")
    path = tmp_path / "cloud.yml"
    path.write_text("stack:\n  project: demo\n  images:\n    - {name: linux, source: '{{ disk }}', disk_format: raw}\n")
    command = [
        str(pathlib.Path(sys.executable).parent / "ansible-playbook"),
        "-i",
        "inventories/example",
        "playbooks/stack.yml",
        "-e",
        f"disk={tmp_path}/disk novalite_extra_variables=disk",
        "--check",
        "--diff",
        "-e",
        "detailed_exitcode=true",
    ]
    env = {**os.environ, "NOVALITE_HOME": str(tmp_path / "home"), "ANSIBLE_FORCE_COLOR": "0"}

    def played(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *words], cwd=REPOSITORY, env=env, capture_output=True, text=True, check=False, timeout=GENEROUS
        )

    done = played("-e", f"stack={path}", "-e", f"output={tmp_path}/plan.json")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "  +    image    linux  source " in done.stdout and "Plan: 2 to add." in done.stdout
    assert '"pending": 2' in (tmp_path / "plan.json").read_text()
    assert not (tmp_path / "home").exists()
    path.write_text("stack:\n  flavours: []\n")
    done = played("-e", f"@{path}")
    assert done.returncode == 4
    assert f"{path}:2:3: the document: 'flavours' is not an option here" in done.stderr
