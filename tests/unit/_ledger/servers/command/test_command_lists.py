# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists of the command `novalite`: on a terminal of 80 columns, for programs, and what its options choose."""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import pty
import struct
import subprocess
import sys
import termios
import time
import typing as t
import uuid

import click
import click.testing
import pytest
import sqlalchemy as sa
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables as ledger_tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_images import server_snapshot
from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import natural
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rings import Samples
from ansible_collections.novalite.cloud.plugins.plugin_utils._playbooks import PLAYBOOKS
from api import cli
from api.cli import actions, ledger, nouns, tables
from tests.support.cloud import Cloud
from tests.support.patience import GENEROUS
from tests.unit._ledger.servers.command.test_command import WEB, active, insert_backup

ROOT = pathlib.Path(__file__).parents[5]
LONG = "a-server-with-a-name-that-its-owner-found-telling"
CAUSE = "the disk of hv1 is full: " + "no space left " * 20
FAULT = {"message": CAUSE, "code": 500, "created": 1}
SERVING = ("api", "worker", "metadata")  # whose help is another parser's
LISTS = [[name] for name in ("list", "hosts", "reserve", *nouns.NOUNS)] + [["events", "web"], ["ha", "status"]]
OF_ONE = [["show", "web"], ["why", "web"], ["show", LONG]]


@pytest.fixture
def cloud_in_use(cloud: Cloud, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """A cloud with servers, one of which failed, volumes and hosts."""
    for name in ("NOVALITE_LEDGER_URL", "NOVALITE_PROJECT", "NOVALITE_INVENTORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NOVALITE_HOME", str(tmp_path))
    active(cloud, "web")
    active(cloud, "web-10", "hv2")
    active(cloud, "web-9", "hv2")
    cloud.server({**WEB, "name": LONG})
    c = ledger_tables.instance.c
    cloud.write(sa.update(ledger_tables.instance).where(c.name == LONG).values(vm_state="error", fault=FAULT))
    cloud.run("volume", volumes=[{"name": "data", "size": 1}])
    (server,) = cloud.rows(sa.select(c.uuid).where(c.name == "web"))
    snapshot = {"id": str(uuid.uuid4()), "instance_uuid": server.uuid, "name": "before", "volumes": []}
    cloud.insert(server_snapshot, **snapshot, status="available", host="hv1", created_at=1, updated_at=1)
    insert_backup(cloud, server.uuid)
    return cloud


def novalite(*words: str, code: int = 0) -> str:
    """Run the command in this process; returns what it prints."""
    done = click.testing.CliRunner().invoke(cli.main, list(words), catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.output


def on_terminal(commands: t.Sequence[t.Sequence[str]], columns: int) -> str:
    """Return what a terminal of so many columns gets from these commands, of one process."""
    program = (
        f"import json, sys; sys.path.insert(0, {str(ROOT)!r}); from api import cli\n"
        "for words in json.loads(sys.argv[1]): cli.main(words, standalone_mode=False)"
    )
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    argv = [sys.executable, "-c", program, json.dumps(commands)]
    with subprocess.Popen(argv, stdin=follower, stdout=follower, stderr=follower, env=environment) as process:
        os.close(follower)
        said = b""
        while True:
            try:
                data = os.read(leader, 65536)
            except OSError:  # how Linux says that the other end is closed
                break
            if not data:
                break
            said += data
        assert process.wait(GENEROUS) == 0, said.decode()
    os.close(leader)
    return said.decode()


@pytest.mark.parametrize("cloud", ["sqlite"], indirect=True)
def test_no_list_is_wider_than_the_terminal(cloud_in_use: Cloud) -> None:
    wide = [[*words, "-o", "wide"] for words in LISTS if words != ["list"]]  # which has eight columns and a UUID
    said = on_terminal([*LISTS, *wide, *OF_ONE], 80)
    assert not [line for line in said.splitlines() if len(line) > 80]
    assert tables.CUT in said and "web-10" in said and "data" in said
    shown = " ".join(on_terminal([["show", LONG]], 80).split())
    assert CAUSE.strip() in shown  # all of the fault of one server


def walk() -> list[list[str]]:
    """Commands that look: each command that says how its output is shown, in each way that people see it, and the help
    of all."""
    words: list[list[str]] = [["--help"], ["config", "show"]]
    for name, command in cli.all_commands().items():
        parameters = {parameter.name: parameter for parameter in command.params}
        groups = command.commands if isinstance(command, click.Group) else {}
        words += [[name, "--help"]] * (name not in SERVING) + [[name, sub, "--help"] for sub in groups]
        if "output" in parameters and name != "doctor":  # which ends with a status of its own
            looked = [name, *["web"] * ("server" in parameters), *["--once"] * ("once" in parameters)]
            words += [looked, [*looked, "-A"]] if "all_projects" in parameters else [looked]
    return words


@pytest.mark.parametrize("cloud", ["sqlite"], indirect=True)
def test_a_walk_stays_within_a_terminal(cloud_in_use: Cloud) -> None:
    c = ledger_tables.instance.c
    wide = "漢字の名前" * 8
    cloud_in_use.write(sa.update(ledger_tables.instance).where(c.name == LONG).values(name=wide))
    words = walk()
    looks = [line for line in words if "--help" not in line and line[0] != "config"]
    assert len(words) > 40 and len(looks) > 15
    said = on_terminal([*words, ["show", wide]], 80)
    assert not [line for line in said.splitlines() if tables.width_of(line) > 80]
    assert "漢字" in said
    for line in looks:
        json.loads(novalite(*line, "-o", "json"))


@pytest.mark.parametrize("cloud", ["sqlite"], indirect=True)
def test_each_list_is_for_programs_too(cloud_in_use: Cloud) -> None:
    for words in LISTS:
        records = json.loads(novalite(*words, "-o", "json"))
        assert records and yaml.safe_load(novalite(*words, "-o", "yaml")) == records
        names = novalite(*words, "-o", "name").splitlines()
        head, *lines = novalite(*words, "-o", "wide").splitlines()
        assert len(records) == len(names) == len(lines), words
        column = head.split()[0].lower()
        assert json.loads(novalite(*words, "-o", "json", "-c", column)) == [{column: name} for name in names]
    for words in OF_ONE:
        assert yaml.safe_load(novalite(*words, "-o", "yaml")) == json.loads(novalite(*words, "-o", "json"))


@pytest.mark.parametrize("cloud", ["sqlite"], indirect=True)
def test_top_knows_what_is_used_where_it_is_measured(cloud_in_use: Cloud, tmp_path: pathlib.Path) -> None:
    assert "used" not in novalite("top", "--once")
    rows = cloud_in_use.rows(sa.select(ledger_tables.instance.c.name, ledger_tables.instance.c.uuid))
    uuids = {row.name: row.uuid for row in rows}
    pace, now = {"web": 0.1, "web-9": 0.9}, time.time()
    for at in (0.0, 60.0):
        counted = {name: {"cpu": at * cores, "memory": 2**20} for name, cores in pace.items()}
        guests = [{"uuid": uuids[name], "run": "1", "clock": at, "values": counted[name]} for name in pace]
        answer = {"host": {"run": "1", "clock": at, "values": counted["web"]}, "guests": guests, "complaints": []}
        Samples(str(tmp_path)).record({"hv2": answer}, set(uuids.values()), now - 60 + at)
    lines = novalite("top", "--once", "--by", "used-cpu").splitlines()
    assert lines[0].split()[-4:] == ["CPU", "USED", "MIB", "USED"] and lines[1].split()[0] == "hv2"
    servers = json.loads(novalite("top", "--by", "used-cpu", "-o", "json"))["servers"]
    assert [server["name"] for server in servers[:2]] == ["web-9", "web"] and servers[2]["measured"] == {}
    assert servers[0]["measured"]["cpu"] == pytest.approx(0.9)


def test_lists_are_filtered_and_sorted(cloud_in_use: Cloud) -> None:
    assert novalite("list", "--sort", "name", "-o", "name").split() == [LONG, "web", "web-9", "web-10"]
    assert novalite("list", "--sort=-name", "-o", "name").split()[0] == "web-10"
    assert novalite("list", "--filter", "status=error", "-o", "name").split() == [LONG]
    both = ("--filter", "name=web-*", "--filter", "host=hv2", "--sort", "name")
    assert novalite("list", *both, "-o", "name").split() == ["web-9", "web-10"]
    assert "there is no column 'size': there are name, status" in novalite("list", "--sort", "size", code=2)
    assert "'error' is not a filter: write COLUMN=PATTERN" in novalite("list", "--filter", "error", code=2)
    assert CAUSE.strip() in novalite("list", "-o", "wide")  # whole, where no terminal is


@pytest.mark.parametrize("cloud", ["sqlite"], indirect=True)
def test_why_tells_what_the_scheduler_recorded(cloud_in_use: Cloud) -> None:
    to_build = cloud_in_use.server({**WEB, "name": "placed"})["to_build"]
    cloud_in_use.operate("scheduler", instances=to_build, service_down_time=10**10)
    assert "weight" in novalite("why", "placed")
    assert "nothing is recorded" in novalite("why", LONG)


@pytest.mark.parametrize("name", actions.ACTIONS)
def test_an_action_says_what_its_playbook_takes(name: str) -> None:
    playbook = PLAYBOOKS[name.replace("-", "_")]
    command = cli.all_commands()[name]
    own = {option.name for option in command.params} - {"servers", "project", "all_projects"}
    theirs = {"inventory", "limit", "extra_vars", "check", "diff", "verbose"}
    assert own - theirs <= playbook.variables.keys() and "uuids" in playbook.variables


@pytest.mark.parametrize("name", ledger.PLAYBOOKS)
def test_a_command_of_the_ledger_says_what_its_playbook_takes(name: str) -> None:
    own = {option.name for option in ledger.group.commands[name].params}
    theirs = {"inventory", "limit", "extra_vars", "check", "diff", "verbose"}
    assert own - theirs == PLAYBOOKS[f"ledger_{name}"].variables.keys()


def test_each_playbook_of_the_ledger_has_its_command() -> None:
    assert {f"ledger_{name}" for name in ledger.PLAYBOOKS} == {name for name in PLAYBOOKS if name.startswith("ledger_")}


@given(st.text("ab漢字 e\u0301", max_size=60), st.integers(6, 40))
def test_wide_characters_take_their_columns(text: str, room: int) -> None:
    wrapped = tables.wrapped(text, room)
    assert all(tables.width_of(line) <= room for line in wrapped)
    assert "".join("".join(wrapped).split()) == "".join(text.split())
    assert tables.width_of(tables.padded(text, room)) == room


@given(st.lists(st.integers(0, 300), min_size=1, max_size=12), st.integers(20, 200))
def test_widths_fit_or_are_as_narrow_as_may_be(widths: list[int], room: int) -> None:
    narrowed = tables.fitting(widths, room)
    total = sum(narrowed) + len(tables.GAP) * (len(widths) - 1)
    assert total <= room or max(narrowed) <= tables.NARROWEST
    assert all(new == old or tables.NARROWEST <= new < old for new, old in zip(narrowed, widths))


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_numbers_in_names_are_sorted_by_their_size(number: int, other: int) -> None:
    assert (natural(f"hv{number}") < natural(f"hv{other}")) == (number < other)


def test_the_chapter_names_each_command() -> None:
    chapter = (ROOT / "docs/cli.md").read_text()
    assert not [name for name in cli.all_commands() if f"`{name}" not in chapter and f"`novalite {name}" not in chapter]


def test_images_that_a_launch_can_name_are_listed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a ledger, too, and with what the operator added."""
    monkeypatch.setenv("NOVALITE_HOME", str(tmp_path))
    (tmp_path / "images.yml").write_text("debian: {images: {debian-14: {file: a/debian-14.qcow2}}}")
    images = {image["name"]: image for image in json.loads(novalite("images", "--catalog", "-o", "json"))}
    assert images["debian-14"]["source"].endswith("/a/debian-14.qcow2")
    assert images["ubuntu-24.04"]["login"] == "ubuntu"
    assert "debian-14" in on_terminal([["images", "--catalog"]], 80)
