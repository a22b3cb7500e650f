# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbooks over a ledger and two hosts, which are network namespaces: what is touched, and what is then there."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.packets.bed import run
from tests.packets.runner import entered
from tests.support.cloud import Cloud
from tests.unit._ledger.servers.conftest import seed
from tests.unit._ledger.servers.test_firewalls import change
from tests.unit._ledger.servers.test_group_members import launch
from tests.unit.playbooks.warm import WARM

pytestmark = pytest.mark.root

ROOT = pathlib.Path(__file__).parents[2]
HOSTS = ("hv1", "hv2")
INTERPRETER = """#!/bin/sh
# This host's Python: in its network namespace, with locks, notes and an identity of its own.
exec ip netns exec {namespace} sh -c 'mount --bind {own}/lock /run/novalite-locks \\
  && mount --bind {own}/trips /run/novalite-trips && mount --bind {own}/run /run/novalite \\
  && for id in /etc/machine-id /sys/class/dmi/id/product_uuid; do [ ! -e $id ] || mount --bind {own}/id $id; done \\
  && exec /usr/bin/python3 "$@"' sh "$@"
"""


class Site:
    """A ledger with db on hv1 and web on hv2, and the playbooks run over it."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.namespaces = {host: f"nvp{os.getpid()}-{host}" for host in HOSTS}
        hosts = {}
        for place in ("/run/novalite", "/run/novalite-locks", "/run/novalite-trips"):
            os.makedirs(place, exist_ok=True)
        for host, namespace in self.namespaces.items():
            run("ip", "netns", "add", namespace)
            for name in ("lock", "trips", "run", "state"):
                (path / host / name).mkdir(parents=True)
            (path / host / "id").write_text(f"{uuid.uuid4().hex}\n")
            interpreter = path / host / "python"
            interpreter.write_text(INTERPRETER.format(namespace=namespace, own=path / host))
            interpreter.chmod(0o755)
            hosts[host] = {"ansible_connection": "local", "ansible_python_interpreter": str(interpreter)}
            hosts[host]["compute_node_state_dir"] = str(path / host / "state")
        (path / "hosts.json").write_text(json.dumps({"compute": {"hosts": hosts}}))
        home = path / "home"
        home.mkdir()
        self.cloud = Cloud(f"sqlite:///{home}/ledger.sqlite")
        seed(self.cloud)
        change(
            self.cloud,
            web=[{"protocol": "tcp", "port_min": 22}],
            db=[{"protocol": "tcp", "port_min": 3306, "remote_group": "web"}],
        )
        for name, host in (("db", "hv1"), ("web", "hv2")):
            launch(self.cloud, name, host, name)

    def close(self) -> None:
        self.cloud.engine.dispose()
        for namespace in self.namespaces.values():
            subprocess.run(["ip", "netns", "del", namespace], check=False, capture_output=True)

    def play(self, playbook: str, *options: str, rc: int = 0, **variables: t.Any) -> str:
        extra_vars = json.dumps({"novalite_home": str(self.path / "home"), **variables})
        words = ["-i", str(self.path / "hosts.json"), f"playbooks/{playbook}", "-e", extra_vars, *options]
        done = WARM.run(words, ROOT, {**os.environ, "ANSIBLE_FORCE_COLOR": "0"})
        assert done.returncode == rc, done.stdout + done.stderr
        return done.stdout

    def rules(self, host: str) -> str:
        with entered(self.namespaces[host]):
            return run("iptables-save") + run("ip6tables-save") + run("ipset", "save")


def changes(output: str) -> dict[str, int]:
    """Host -> changed tasks, of every host that was spoken to."""
    recap_rows = re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", output, re.MULTILINE)
    return {host: int(count) for host, count in recap_rows if host != "localhost"}


@pytest.fixture
def site(tmp_path: pathlib.Path) -> t.Iterator[Site]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    made = Site(tmp_path)
    yield made
    made.close()


def test_playbooks(site: Site) -> None:
    site.cloud.write(sa.update(tables.network).values(snat=True))
    # the rules, the bridge and the router, which a host has lost after a reboot
    assert changes(site.play("firewall.yml")) == {"hv1": 3, "hv2": 3}
    (own,) = [instance for instance in site.cloud.info() if instance["name"] == "db"]
    assert f"-A nova-snat -s {own['nics'][0]['network']['cidr']} " in site.rules("hv1")
    assert "--dport 3306 -m set --match-set nova-g-" in site.rules("hv1")
    assert changes(site.play("firewall.yml")) == {"hv1": 0, "hv2": 0}

    # drift: shown, then repaired, where it is
    with entered(site.namespaces["hv1"]):
        run("iptables", "-D", "FORWARD", "-j", "nova-local")
        broken = run("iptables-save", "-t", "filter").count("nova-local")
    shown = site.play("firewall.yml", "--check", "--diff")
    assert changes(shown) == {"hv1": 1, "hv2": 0}
    assert "-I FORWARD 1 -j nova-local" in shown
    with entered(site.namespaces["hv1"]):
        assert run("iptables-save", "-t", "filter").count("nova-local") == broken
    assert changes(site.play("firewall.yml")) == {"hv1": 1, "hv2": 0}
    assert "-A FORWARD -j nova-local" in site.rules("hv1")

    # a rule: only the host that carries the group is spoken to
    security_groups = [{"name": "db", "rules": [{"protocol": "tcp", "port_min": 5432, "remote_group": "web"}]}]
    assert changes(site.play("security_groups.yml", "--check", security_groups=security_groups)) == {"hv1": 1}
    assert "--dport 5432" not in site.rules("hv1")
    assert changes(site.play("security_groups.yml", security_groups=security_groups)) == {"hv1": 1}
    assert "--dport 5432" in site.rules("hv1") and "--dport 3306" not in site.rules("hv1")
    assert changes(site.play("security_groups.yml", security_groups=security_groups)) == {"hv1": 0}

    # a member: the host that it is on, and the one whose rules ask for it
    web = [{"name": "db", "security_groups": ["web"]}]
    address = own["nics"][0]["ip"]
    assert f" {address}\n" not in site.rules("hv1").partition("create")[2]
    assert changes(site.play("security_groups.yml", join=web)) == {"hv1": 1}
    assert f" {address}\n" in site.rules("hv1").partition("create")[2]
    gone = site.play("security_groups.yml", leave=web, join=[{"name": "web", "security_groups": ["default"]}])
    assert changes(gone) == {"hv1": 1, "hv2": 1}
    assert f" {address}\n" not in site.rules("hv1").partition("create")[2]
    assert changes(site.play("firewall.yml")) == {"hv1": 0, "hv2": 0}

    # the first egress rule, and the last one's end: every instance of the group, on every host
    site.play("security_groups.yml", join=web)
    https = {"direction": "egress", "protocol": "tcp", "port_min": 443}
    for rules, restricted in (([https], True), ([], False)):
        (group,) = [{"name": "web", "rules": rules}]
        assert changes(site.play("security_groups.yml", security_groups=[group])) == {"hv1": 1, "hv2": 1}
        assert [("-j nova-dev" in site.rules(host)) for host in HOSTS] == [restricted] * 2
        assert changes(site.play("firewall.yml")) == {"hv1": 0, "hv2": 0}

    # and what the ledger says about it
    there: dict[str, t.Any] = {"from": "web", "to": "db", "port": 5432}
    back: dict[str, t.Any] = {"from": "db", "to": "web", "port": 80}
    said = site.play("reachability.yml", **there)
    assert "allowed, web may send anything, let in by group db: tcp 5432 from group web" in said
    assert "not allowed" in site.play("reachability.yml", **back)

    # and the chains themselves, which must say the same
    site.cloud.write(sa.update(tables.instance).values(vm_state="active", task_state=None))
    ends: dict[str, t.Any] = {"source": "web", "destination": "db", "trace": True}
    walked = site.play("reachability.yml", **ends, destination_port=5432)
    assert re.search(r"hv1 +filter nova-sg-\d+: .*--dport 5432 .*-j ACCEPT +\(0 packets, 0 bytes\)", walked)
    assert "nova-ipv4-fallback: -j DROP" in site.play("reachability.yml", **ends, destination_port=5433)
    with entered(site.namespaces["hv1"]):
        run("iptables", "-I", "nova-ipv4-fallback", "1", "-j", "ACCEPT")
    contradicted = site.play("reachability.yml", **ends, destination_port=5433, rc=2)
    assert "the ledger does not allow it, and the chains of hv2, hv1 do" in contradicted
    site.play("firewall.yml")

    if shutil.which("dot"):
        site.play("security_group_graph.yml", file=str(site.path / "groups.svg"))
        assert "tcp 5432" in (site.path / "groups.svg").read_text()
