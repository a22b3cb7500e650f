# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host that ssh's keep-alive finds dead in the middle of its work: that costs its own guests, and the run says so."""

from __future__ import annotations

import json
import pathlib
import shutil
import typing as t

from tests.unit.playbooks.answering import Hosts

NAMES = json.dumps({"servers": [{"name": "far"}, {"name": "near"}]})


def pinned(**hosts: str) -> str:
    servers = [
        {"name": name, "flavor": "m1.nano", "image": "tiny", "hints": {"host": host}} for name, host in hosts.items()
    ]
    return json.dumps({"servers": servers, "all_or_nothing": False})


def test_the_others_guests_are_served_and_the_run_fails(seeded: pathlib.Path, tmp_path: pathlib.Path) -> None:
    hosts = Hosts(tmp_path)
    shutil.rmtree(hosts.home)
    shutil.copytree(seeded, hosts.home)

    def played(playbook: str, variables: str) -> dict[str, tuple[t.Any, ...]]:
        """Play it on hosts that live, of which hv2 dies as soon as it is to change something."""
        (tmp_path / "dead").write_text("")
        done = hosts.play(playbook, "-e", variables)
        output = done.stdout + done.stderr
        assert (done.returncode != 0) == silent.exists(), output
        if silent.exists():
            assert "fatal: [hv2]: UNREACHABLE!" in output and "Timeout, server hv2 not responding" in output
            assert "hv1                        : ok=" in output and "failed=0" in output.partition("hv1    ")[2]
        return {server[0]: server[1:] for server in hosts.servers()}

    silent = tmp_path / "silent"
    played("launch.yml", pinned(far="hv2", near="hv1"))
    silent.write_text("hv2")
    servers = played("launch.yml", pinned(lost="hv2", more="hv1"))
    assert (servers["lost"][0], servers["more"][0]) == ("error", "active")
    servers = played("stop.yml", NAMES)
    assert (servers["far"][0], servers["near"][0]) == ("active", "stopped")
    servers = played("terminate.yml", NAMES)
    assert servers["far"][1] == "deleting" and servers["near"][0] == "deleted"
