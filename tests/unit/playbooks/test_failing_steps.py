# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Failures of every module and step of hosts: a screen gets the cause and the path of a file, and the file all else."""

from __future__ import annotations

import importlib
import json
import pathlib
import re
import shutil
import typing as t

import pytest
import yaml

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.plugin_utils import _failure_files
from ansible_collections.novalite.cloud.plugins.plugin_utils._host_code import (
    NAME,
    modules_of_hosts,
    place_of,
    steps_of_hosts,
)
from tests.unit.playbooks.answering import Hosts

MOST = 2000  # characters that a failure may take on a screen
CAUSE = "No space left on device: '/var/lib/x4711'"
WORDS = f"qemu-img convert failed with 1: {'it wrote a lot before that; ' * 200}{CAUSE}"
KEY = "ssh-rsa AAAA" + "x" * 700
STORE = {"novalite_backup_store": "/srv/backups"}
HEADS = {  # of what each screen says of a task
    "default": r"TASK \[(.+)\] \*+\n",
    "novalite.cloud.progress": r"\[ *[\d.]+\] hv1: (.+), [\d.]+ s, ignored\n",
}
BLANKS: dict[str, t.Any] = {"list": [], "dict": {}, "int": 1, "float": 1.0, "bool": True}
# where a value of the right type is not enough
ARGUMENTS: dict[str, JsonObject] = {
    "image_cache": {"images": []},
    "metadata_proxy": {
        "networks": [{"network": "private", "bridge": "br100", "namespace": None}],
        "url": "http://192.0.2.1",
    },
}


def arguments(name: str) -> JsonObject:
    """Options that the module or step takes: those that it must have."""
    spec = importlib.import_module(f"{NAME}.{place_of(name)}").ARGUMENT_SPEC
    required = {option: row for option, row in spec.items() if row.get("required")}
    made = {
        option: row["choices"][0] if row.get("choices") else BLANKS.get(row.get("type", "str"), "x")
        for option, row in required.items()
    }
    return {**made, **ARGUMENTS.get(name, {})}


def tasks(ways: t.Collection[str]) -> list[JsonObject]:
    """A task for each module and step of hosts by itself ("alone"), and among others on a trip ("trip")."""
    made: list[JsonObject] = []
    for name in sorted(modules_of_hosts() | steps_of_hosts()):
        if name in ("host_step", "host_steps"):
            continue
        args = arguments(name)
        step = {"step": name, "args": args} if name in steps_of_hosts() else args
        module = "host_step" if name in steps_of_hosts() else name
        alone = {"name": name, f"novalite.cloud.{module}": step, "ignore_errors": True}
        steps = [{"name": "The step", "module": name, "args": args}]
        trip = {"name": f"trip {name}", "novalite.cloud.host_steps": {"steps": steps}, "ignore_errors": True}
        made += [task for way, task in (("alone", alone), ("trip", trip)) if way in ways]
    return made


def hosts_over(seeded: pathlib.Path, path: pathlib.Path) -> Hosts:
    """Two hosts that answer, and a ledger with a catalogue."""
    hosts = Hosts(path)
    shutil.rmtree(hosts.home)
    shutil.copytree(seeded, hosts.home)
    (path / "dead").write_text("")
    return hosts


# each way on one screen and each screen once; the other half of both takes as long again
WAYS = [("default", "alone"), ("novalite.cloud.progress", "trip")]
OTHERS = [("default", "trip"), ("novalite.cloud.progress", "alone")]


@pytest.mark.parametrize(
    ("screen", "way"), [*WAYS, *(pytest.param(*row, marks=pytest.mark.thorough) for row in OTHERS)]
)
def test_a_failure_of_each_step_is_its_cause(
    seeded: pathlib.Path, tmp_path: pathlib.Path, screen: str, way: str
) -> None:
    hosts = hosts_over(seeded, tmp_path)
    # what a host with some guests returns beside the cause, as the record of a guest with its key
    rows = [{"uuid": str(number), "error": WORDS, "record": json.dumps({"key": KEY})} for number in range(20)]
    rest = {"domains": rows, "found": {"chains": [KEY] * 20}, "volumes": rows, "compute_host": {"facts": KEY}}
    names = sorted(modules_of_hosts() | steps_of_hosts())
    failed = {"failed": True, "msg": WORDS, **rest}
    (tmp_path / "failing").write_text(json.dumps({"hv1": dict.fromkeys(names, failed)}))
    (hosts.home / "backup.secret").write_text(bytes(32).hex())  # for those that only read the store
    (hosts.home / "backup.secret").chmod(0o600)
    play = tasks([way])
    (hosts.elsewhere / "play.yml").write_text(
        yaml.safe_dump([{"hosts": "hv1", "gather_facts": False, "vars": STORE, "tasks": play}], sort_keys=False)
    )
    done = hosts.run("-i", "hosts.ini", "play.yml", ANSIBLE_STDOUT_CALLBACK=screen)
    output = done.stdout + done.stderr
    _before, *parts = re.split(HEADS[screen], output.partition("PLAY RECAP")[0])
    said = dict(zip(parts[::2], parts[1::2]))
    assert list(said) == [task["name"] for task in play]
    wrong = {name: text for name, text in said.items() if CAUSE not in text or len(text) > MOST}
    assert not wrong
    assert KEY not in output
    paths = [pathlib.Path(path) for path in re.findall(rf"{hosts.home}/failures/[^\s\"]+", output)]
    assert len(paths) == len(play)
    kept = [path.read_text() for path in paths[-_failure_files.KEPT :]]
    assert all(WORDS in json.loads(text)["msg"] and KEY in text for text in kept)


def test_of_several_guests_each_has_its_own_outcome_and_cause(seeded: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The playbook reads what is on no screen."""
    hosts = hosts_over(seeded, tmp_path)
    servers = [{"name": name, "flavor": "m1.nano", "image": "tiny", "hints": {"host": "hv1"}} for name in ("web", "db")]
    launched = hosts.play("launch.yml", "-e", json.dumps({"servers": servers}))
    assert launched.returncode == 0, launched.stdout
    trips = [steps for _host, _check, steps in map(json.loads, hosts.taken.read_text().splitlines())]
    domains = [step["args"]["domains"] for steps in trips for step in steps if step["module"] == "domain"][-1]
    off = {"instance-00000001": {"state": "shutoff", "error": None}}
    rows = [{**row, "action": "none", **off.get(row["name"], {"state": "running", "error": WORDS})} for row in domains]
    failed = {"failed": True, "msg": WORDS, "domains": rows}
    (tmp_path / "failing").write_text(json.dumps({"hv1": {"domain_power": failed}}))
    done = hosts.play("stop.yml", "-e", json.dumps({"servers": ["web", "db"]}))
    output = done.stdout + done.stderr
    assert done.returncode == 2 and CAUSE in output, output
    assert [server[:3] for server in hosts.servers()] == [("web", "stopped", None), ("db", "active", None)]
    assert WORDS not in output


@pytest.mark.parametrize("error", ["", "Look for the disks of before the move: its disk is not there"])
def test_guests_stay_on_for_a_host_that_cannot_take_them(
    seeded: pathlib.Path, tmp_path: pathlib.Path, error: str
) -> None:
    hosts = hosts_over(seeded, tmp_path)
    plan = {"destinations": ["hv1"], "starts": {"leaving": [], "staying": []}}
    stop: JsonObject = {"ansible.builtin.include_role": {"name": "novalite.cloud.move", "tasks_from": "stop.yml"}}
    common: JsonObject = {"gather_facts": False}
    plays = [
        {"hosts": "hv1", **common, "tasks": [{"ansible.builtin.set_fact": {"move_error": error}}]},
        {"hosts": "hv2", **common, "tasks": [{**stop, "vars": {"move_plan": plan, "move_step": "stop"}}]},
    ]
    (hosts.elsewhere / "play.yml").write_text(yaml.safe_dump(plays, sort_keys=False))
    done = hosts.run("-i", "hosts.ini", "play.yml")
    assert (done.returncode, f"hv1: {error}" in done.stdout) == ((2, True) if error else (0, False)), done.stdout
