"""stack.*: an unchanged second run of stack.yml over an empty playbook, for the example document and for 200 servers.

The instances are recorded in a ledger of their own, as a launch would have left them: there are no hypervisors.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import operation_of, run_operation
from tests.bench.cloud import IMAGES, REPOSITORY, TINY_IMAGE

ROUNDS = 5
SIZES = {"stack.unchanged_s": 4, "stack.unchanged200_s": 200}  # servers
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2ZrEW7v7EmTZ1FPH3pwW9LmqzQUvVb8nXKPqvMZ3XN bench"

Document = dict[str, t.Any]


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    subprocess.run([str(TINY_IMAGE), str(IMAGES)], check=True, stdout=subprocess.DEVNULL)
    for name, servers in SIZES.items():
        if name.startswith(prefix):
            with tempfile.TemporaryDirectory(prefix="novalite-bench-") as home:
                yield _unchanged(name, pathlib.Path(home), servers)


def _unchanged(name: str, home: pathlib.Path, servers: int) -> dict[str, t.Any]:
    document = described(servers, IMAGES / "ami-tiny.qcow2")
    path = home / "cloud.yml"
    path.write_text(json.dumps({"stack": document}))  # which is YAML
    carry_out(document, home=str(home))
    taken, empty = [], []
    for _round in range(ROUNDS):
        taken.append(_playbook(home, "playbooks/stack.yml", "-e", f"stack={path}"))
        empty.append(_playbook(home, "tests/bench/empty.yml"))
    over, reference = statistics.median(taken) - statistics.median(empty), statistics.median(empty)
    return {
        "bench": name,
        "ours": round(over, 3),
        "reference": round(reference, 3),
        "ratio": round(over / reference, 3),
        "unit": "s",
    }


def _playbook(home: pathlib.Path, *arguments: str) -> float:
    """Wall time of a run, which must have changed nothing."""
    binaries = pathlib.Path(sys.executable).parent
    command = [str(binaries / "ansible-playbook"), "-i", "inventories/example", *arguments]
    env = {**os.environ, "NOVALITE_HOME": str(home), "ANSIBLE_FORCE_COLOR": "0"}
    started = time.perf_counter()
    done = subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True, check=False)
    taken = time.perf_counter() - started
    if done.returncode or ("localhost" in done.stdout and "changed=0" not in done.stdout):
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return taken


def described(servers: int, image: pathlib.Path) -> Document:
    """A stack of this many servers in one profile."""
    return {
        "name": "bench",
        "project": {"name": "bench", "quotas": {"instances": servers, "cores": servers, "ram": servers * 96}},
        "flavors": [{"name": "bench.nano", "vcpus": 1, "memory_mb": 96}],
        "images": [{"name": "bench", "source": str(image), "disk_format": "qcow2"}],
        "networks": [{"name": "bench", "cidr": "10.70.0.0/16"}],
        "keys": [{"name": "bench", "public_key": PUBLIC_KEY}],
        "security_groups": [{"name": "web", "rules": [{"protocol": "tcp", "port_min": port} for port in (22, 80)]}],
        "profiles": {
            "web": {
                "flavor": "bench.nano",
                "image": "bench",
                "key": "bench",
                "networks": ["bench"],
                "security_groups": ["web"],
                "metadata": {"role": "web"},
            }
        },
        "servers": [{"name": f"web-{number}", "profile": "web"} for number in range(servers)],
    }


def carry_out(document: Document, **options: t.Any) -> dict[str, t.Any]:
    """Do in the ledger all that stack.yml does there, as if every host had done its part; returns the plan.

    `options` are those of the step `stack_plan`: home or ledger_url, replace, prune.
    """
    where = {key: options.get(key) for key in ("home", "ledger_url")}
    params = {"document": document, "phase": "plan", "replace": False, **options}
    plan = _operate("stack_plan", params)
    if not plan["pending"]:
        return plan
    _operate("stack_plan", {**params, "phase": "records"})
    launch = _operate("stack_plan", {**params, "phase": "launch"})["launch"] if plan["has_secrets"] else plan["launch"]
    groups = plan["security_groups"]
    for entries, state in ((groups["join"], "present"), (groups["leave"], "absent")):
        memberships = {"project": plan["project"], "servers": entries, "state": state, "exclusive": False}
        _operate("server_security_groups", {**where, **memberships})
    if plan["terminate"]:
        _operate("server", {**where, "uuids": plan["terminate"], "state": "absent"})
        _operate("server_state", {**where, "outcomes": [{"uuids": plan["terminate"], "state": "deleted"}]})
    if launch:
        _operate("server", {**where, "project": plan["project"], "servers": launch})
        _start(**where)
    _operate("stack_plan", {**params, "phase": "removals"})
    return plan


def _operate(name: str, params: dict[str, t.Any]) -> dict[str, t.Any]:
    return run_operation(operation_of(name), params, check_mode=False)


def _start(home: str | None, ledger_url: str | None) -> None:
    """Every instance that is to be built runs now."""
    engine = open_ledger(home, ledger_url)
    instance = tables.instance
    with transaction(engine) as connection:
        connection.execute(
            sa.update(instance)
            .where(instance.c.vm_state == "building")
            .values(vm_state="active", task_state=None, power_state=1, host="hv1", launched_at=int(time.time()))
        )
    engine.dispose()
