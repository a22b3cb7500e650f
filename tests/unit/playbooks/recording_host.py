# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hypervisors that an sshd's forced command is: they record where guests run, and start none.

Each has an address of its own, by which it knows its name: `addresses`, JSON, beside this file. `world` has, by guest,
the hosts on which it runs; `history` gets a line for each change of that, and `rebooted` one for each reboot, with the
guests that it met. When `kill` names a step and this host, the controller's processes end by SIGKILL: all that carry
its `mark` in their environment, "before" the step, while it goes on ("during"), or "after" it, unanswered.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
import signal
import sys
import time
import typing as t

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
import stand_in_ssh  # type: ignore[import-not-found]  # noqa: E402  # it lies beside this file where that is run

World = dict[str, list[str]]
REBOOT = "systemctl reboot"
SECONDS = 0.2  # that a migration takes
simple = stand_in_ssh.answer


@contextlib.contextmanager
def world() -> t.Iterator[World]:
    """Give what runs where, to nobody else at once; changes are kept, and go into the history."""
    with (HERE / "world").open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = file.read()
        guests: World = json.loads(before)
        yield guests
        after = json.dumps(guests)
        if after != before:
            file.seek(0)
            file.truncate()
            file.write(after)
            file.flush()
            stand_in_ssh.append("history", guests)


def killed(host: str, step: str, moment: str) -> bool:
    """Kill the controller if it is to die at this moment; tell so."""
    path = HERE / "kill"
    if not path.exists():
        return False
    order = json.loads(path.read_text())
    if (order["host"], order["step"], order["moment"]) != (host, step, moment):
        return False
    path.unlink(missing_ok=True)
    for process in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if order["mark"].encode() in process.read_bytes():
                os.kill(int(process.parent.name), signal.SIGKILL)
    return True


def migrate(host: str, args: dict[str, t.Any]) -> dict[str, t.Any]:
    """Move guests that run here; one that does not, or that runs there already, is an error."""
    time.sleep(SECONDS)
    done = []
    with world() as guests:
        for move in args["moves"]:
            if host in guests[move["uuid"]] and move["to_host"] not in guests[move["uuid"]]:
                guests[move["uuid"]].remove(host)
                guests[move["uuid"]].append(move["to_host"])
                done.append(move["uuid"])
        here = [move["uuid"] for move in args["moves"] if host in guests[move["uuid"]]]
    answer = {"changed": True, "moves": [], "done": done, "here": here}
    return {**answer, "failed": True, "msg": "guests cannot move"} if len(done) < len(args["moves"]) else answer


def answer(host: str, module: str, args: dict[str, t.Any]) -> dict[str, t.Any]:
    """Take a step."""
    state = args.get("state")
    if killed(host, module, "before"):
        sys.exit(1)
    during = killed(host, module, "during")
    result = simple(host, module, args)
    if module == "live_migration":
        result = migrate(host, args)
    elif module == "domain_info":
        with world() as guests:
            names = [(domain, host in guests[domain["uuid"]]) for domain in args["domains"]]
        result["domains"] = [{**domain, "state": "running" if runs else "missing"} for domain, runs in names]
    elif module in ("domain", "domain_power"):
        with world() as guests:
            for domain in args["domains"]:
                runs = state in (None, "running", "rebooted")
                others = [name for name in guests[domain["uuid"]] if name != host]
                guests[domain["uuid"]] = [*others, host] if runs else others
    elif module == "disk_move" and state == "offered":
        result["public_keys"] = {move["id"]: f"ssh-ed25519 {move['id']}" for move in args["moves"]}
    elif module == "disk_move" and state == "accepted":
        result |= {"door": {"host_keys": [], "login": "root", "port": 22}, "libvirt_daemon": "libvirtd"}
    if during or killed(host, module, "after"):
        sys.exit(1)
    return result


def main() -> int:
    address = os.environ["SSH_CONNECTION"].split()[2]
    host = json.loads((HERE / "addresses").read_text())[address]
    command = os.environ["SSH_ORIGINAL_COMMAND"]
    if REBOOT in command:
        if killed(host, "reboot", "before"):
            return 1
        with world() as guests:
            here = [uuid for uuid, hosts in guests.items() if host in hosts]
            for uuid in here:
                guests[uuid].remove(host)  # they are off
        stand_in_ssh.append("rebooted", [host, here])
        return 1 if killed(host, "reboot", "after") else 0
    sys.argv = ["ssh", host, command]
    return stand_in_ssh.main()


if __name__ == "__main__":
    stand_in_ssh.answer = answer
    sys.exit(main())
