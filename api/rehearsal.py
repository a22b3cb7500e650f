# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rehearsal of a launch's tasks in the ledger, for all processes that are forked later: what SQLAlchemy compiles, and
whatever else is made at its first use, is there when somebody launches.

It is done over a ledger of its own in a temporary directory, with names that stand for nothing, and asks no host.
"""

from __future__ import annotations

import importlib
import os
import tempfile
import typing as t

COLLECTION = "ansible_collections.novalite.cloud.plugins"
FACTS = {
    "name": "host",
    "up": True,
    "vcpus": 4,
    "memory_mb": 4096,
    "disk_gb": 40,
    "arch": "x86_64",
    "machine": "pc",
    "domain_type": "qemu",
    "emulator": "/usr/bin/qemu-system-x86_64",
    "disk_cache": "none",
}
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPcCEGnhBBf9ysTNhO3L4ajAqB7KVm0yONdzSpeo+wr5 rehearsal"
SERVER = {"name": "server", "flavor": "flavor", "image": "image", "key": "key"}


def rehearse() -> None:
    """Launch a server in a ledger twice, and delete it each time. Raises NovaliteError, and OSError without room."""
    with tempfile.TemporaryDirectory(prefix="novalite-rehearsal-") as home:
        _seed(home)
        seen = {"seen_hosts": ["host"]}
        # of a host that is asked first, and of one of which the ledger has heard
        choices: tuple[dict[str, object], ...] = ({"compute_hosts": [FACTS]}, {"expected": {"host": {}}})
        for known in choices:
            asked = _run(home, "server", servers=[SERVER])
            plan = _run(home, "launch_plan", {**known, **seen}, instances=asked["to_build"])
            outcome = {"uuids": plan["hosts"]["host"]["build"]["uuids"], "host": "host"}
            built = {**outcome, "state": "active", "facts": FACTS}
            launch = _run(home, "launch_record", seen, launch=plan["launch"], outcomes=[built])["launch"]
            ways = {"path": os.path.join(home, "ssh_config"), "uuids": outcome["uuids"], "servers": launch["built"]}
            _run(home, "ssh_config", ways)
            gone = _run(home, "server", state="absent", servers=[{"name": "server"}])
            _run(home, "server_plan", leaving=gone["to_delete"])
            _run(home, "server_state", outcomes=[{**outcome, "state": "deleted"}])


def _seed(home: str) -> None:
    path = os.path.join(home, "image")
    with open(path, "wb") as image:
        image.truncate(1 << 20)
    _run(home, "project", projects=[{"name": "demo"}])
    _run(home, "flavor", flavors=[{"name": "flavor", "vcpus": 1, "memory_mb": 96, "root_gb": 1}])
    _run(home, "image", images=[{"name": "image", "source": path, "disk_format": "raw", "any_content": True}])
    _run(home, "network", networks=[{"name": "network", "cidr": "10.0.0.0/24", "bridge": "bridge"}])
    _run(home, "keypair", keypairs=[{"name": "key", "public_key": PUBLIC_KEY}])


def _run(home: str, name: str, more: t.Mapping[str, object] | None = None, /, **args: object) -> dict[str, t.Any]:
    """Run the operation of a controller module, or of a step in the ledger, as its task does; `more` is what only the
    task's action adds. Raises NovaliteError."""
    from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

    door = importlib.import_module(f"{COLLECTION}.module_utils._ledger_module")
    operation = door.operation_of(name)
    step = importlib.import_module(operation.__module__)
    if hasattr(step, "ARGUMENT_SPEC"):
        spec = door.spec_of_step(step)
    else:
        module = importlib.import_module(f"{COLLECTION}.modules.{name}")
        spec = door.spec_of(module.DOCUMENTATION, getattr(module, "NO_LOG", None))
    params = ArgumentSpecValidator(spec).validate({**args, "home": home}).validated_parameters
    return t.cast("dict[str, t.Any]", door.run_operation(operation, {**params, **(more or {})}, False))
