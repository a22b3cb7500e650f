# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ssh to hypervisors that are not there: each says of every step that it was taken, and takes none.

It stands where Ansible finds ssh. Beside this file, `addresses` has the names of hosts by address, `dead` lists hosts
that do not answer, `silent` those that die in a trip which is to change something, `failing` has results of modules
that fail, by host, `counted` what hosts have counted, `looks` what a look finds, and `taken` gets a line of JSON for
each trip: the host and its steps. With `slow`, JSON, each step takes as many `seconds`, tells of itself as a host
does, by the code below `collections`, and is noted in `started` with the time. What is no trip is run on this machine,
which is right for `ping` and for questions what a trip is at.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import sys
import time
import typing as t

HERE = pathlib.Path(__file__).parent
MARK = "NOVALITE-TRIP "
FACTS = {
    "up": True,
    "vcpus": 8,
    "memory_mb": 16384,
    "disk_gb": 100,
    "state_dir": "/var/lib/novalite",
    "hypervisor_type": "QEMU",
    "hypervisor_version": 7002022,
    "libvirt_version": 9000000,
    "arch": "x86_64",
    "domain_type": "qemu",
    "emulator": "/usr/bin/qemu-system-x86_64",
    "machine": "pc",
    "disk_cache": "none",
    "inject_backend": "nbd",
    "security_driver": "apparmor",
    "traits": [],
    "missing_commands": [],
}
LOOKS = {"compute_host", "counters", "domain_info", "epoch_token", "host_drift", "host_look", "orphans", "peer_look"}
LISTS = ("domains", "disks", "volumes", "missing_bases", "stale_devices", "filters", "dhcp_networks", "bridges")
FOUND: dict[str, t.Any] = {
    **dict.fromkeys(LISTS, ()),
    "files": {},
    "chains": [],
    "dhcp_owners": {},
    "bridge_owners": {},
}


def answer(host: str, module: str, args: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return what a module says that has done as it was told."""
    domains = args.get("domains")
    if module == "compute_host":
        return {"changed": False, "compute_host": {**FACTS, "name": host}}
    if module in ("host_drift", "orphans"):
        return {"changed": False, "found": {**FOUND, "looked_at": time.time()}}
    if module == "epoch_token":
        return {"changed": True, "kept": {"epoch": args["epoch"], "term": args["term"]}}
    if module == "host_look":
        looks = HERE / "looks"
        return {"changed": False, **(json.loads(looks.read_text())[host] if looks.exists() else {})}
    if module == "peer_look":
        dead = (HERE / "dead").read_text().split()
        words = [{"host": other["name"], "reached": other["name"] not in dead} for other in args["hosts"]]
        return {"changed": False, "words": words}
    if module == "counters":
        counted = HERE / "counted"
        of_hosts = json.loads(counted.read_text()) if counted.exists() else {}
        return {"changed": False, "counters": of_hosts.get(host)}
    if args.get("state") == "evicted":
        return {"changed": True, "evicted": [{"name": "0a1b", "bytes": 1}]}
    if module == "domain_info":
        return {"changed": False, "domains": [{**domain, "state": "running"} for domain in domains or []]}
    stored = {name: [{**item, "error": None} for item in args.get(name) or []] for name in ("volumes", "attachments")}
    return {"changed": True, "domains": domains or [], **stored}


def met(host: str, expected: dict[str, object] | None) -> dict[str, object] | None:
    """Return what each machine says of itself: it is the one that is expected, and took the mark."""
    if expected is None:
        return None
    identity = {"machine_id": hashlib.md5(host.encode(), usedforsecurity=False).hexdigest()}
    return {"identity": identity, "mark": None, "refused": None, "left": expected["leave"] is not None}


def failures(host: str) -> dict[str, dict[str, t.Any]]:
    """Results of the modules that fail on the host, by their names."""
    path = HERE / "failing"
    said = json.loads(path.read_text()).get(host, {}) if path.exists() else {}
    return dict(said)


def append(name: str, line: object) -> None:
    """Append a line of JSON to the file of this name."""
    with (HERE / name).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(line) + "\n")


@contextlib.contextmanager
def followed(host: str, request: dict[str, t.Any]) -> t.Iterator[t.Callable[[int, str], t.ContextManager[None]]]:
    """Give what is to be done around each step, by its number and name: what makes it slow, and tells of it."""
    if not (HERE / "slow").exists():
        yield lambda _number, _name: contextlib.nullcontext()
        return
    slow = json.loads((HERE / "slow").read_text())
    sys.path.insert(0, slow["collections"])
    from ansible_collections.novalite.cloud.plugins.module_utils._host import events, trip

    @contextlib.contextmanager
    def step(number: int, name: str) -> t.Iterator[None]:
        append("started", {"host": host, "step": name, "at": time.time()})
        events.begun(number)
        time.sleep(slow["seconds"])
        yield
        events.ended(changed=True, failed=False)

    follows = request["events"] and trip.may_begin(request["token"], again=False)
    with events.kept(trip.TOKENS, request["token"]) if follows else contextlib.nullcontext():
        yield step


def main() -> int:
    host, command = sys.argv[-2], sys.argv[-1]
    if (names := HERE / "addresses").exists():
        host = json.loads(names.read_text()).get(host, host)
    if host in (HERE / "dead").read_text().split():
        patience = [word.partition("=")[2] for word in sys.argv if word.startswith("ConnectTimeout=")]
        append("unanswered", [host, int(patience[-1])])
        sys.stderr.write(f"ssh: connect to host {host} port 22: No route to host\n")
        return 255
    if "novalite" not in command or "novalite-trips" in command:
        os.execvp("sh", ["sh", "-c", command])
    sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
    request = json.loads(sys.stdin.buffer.read())
    append("taken", [host, request["check_mode"], request["steps"]])
    time.sleep(float(os.environ.get("STAND_IN_SECONDS", "0")))
    silent = HERE / "silent"
    if silent.exists() and host in silent.read_text().split() and {step["module"] for step in request["steps"]} - LOOKS:
        (HERE / "dead").write_text(host)
        sys.stderr.write(f"Timeout, server {host} not responding.\n")  # as ssh's keep-alive ends it
        return 255
    done: list[dict[str, t.Any]] = []
    with followed(host, request) as around:
        for number, s in enumerate(request["steps"]):
            with around(number, s["name"]):
                result = {**answer(host, s["module"], s["args"]), **failures(host).get(s["module"], {})}
            done.append({"name": s["name"], "module": s["module"], "seconds": 0.0, "result": result})
            if result.get("failed") and not s["may_fail"]:
                break
    print(MARK + json.dumps({"host": met(host, request["expected"]), "steps": done}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
