# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes of security groups whose jobs begin later than the next changes: hosts learn what holds, and nothing that the
API answered is taken back."""

from __future__ import annotations

import random
import types
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import claiming
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from api.jobs import runs
from api.jobs.kinds import KINDS
from tests.api.seeds import Api

COMPUTE, NETWORK = "/compute/v2.1", "/network/v2.0"
STEPS = 25
LIMITS = types.SimpleNamespace(runs=4, runs_per_host=4)


class Late:
    """A project's member with two servers on one host, whose jobs begin when carry_out() is called."""

    def __init__(self, api: Api) -> None:
        self.api, self.member = api, api.client_as("demo")
        self.servers = [api.instance("demo", name, host="hv1") for name in ("web", "db")]
        self.chains: dict[int, t.Any] = {}  # of each server's number, what its host was told last
        self.rules: dict[int, t.Any] = {}  # of each group

    def ask(self, method: str, path: str, body: t.Any = None, user: str = "") -> t.Any:
        client = self.api.client_as(user) if user else self.member
        answer = client.open(path, method=method, json=body)
        assert answer.status_code < 300, (path, answer.status, answer.get_data(as_text=True))
        return answer.get_json(silent=True)

    def group(self, name: str) -> str:
        body = {"security_group": {"name": name}}
        return str(self.ask("POST", f"{NETWORK}/security-groups", body)["security_group"]["id"])

    def rule(self, group: str, port: int) -> str:
        ports = {"port_range_min": port, "port_range_max": port}
        rule = {"security_group_id": group, "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", **ports}
        made = self.ask("POST", f"{NETWORK}/security-group-rules", {"security_group_rule": rule})
        return str(made["security_group_rule"]["id"])

    def act(self, server: str, action: str, group: str) -> None:
        self.ask("POST", f"{COMPUTE}/servers/{server}/action", {f"{action}SecurityGroup": {"name": group}})

    def rename(self, group: str, name: str) -> None:
        self.ask("PUT", f"{NETWORK}/security-groups/{group}", {"security_group": {"name": name}})

    def rename_project(self, name: str) -> None:
        path = f"/identity/v3/projects/{self.api.projects['demo']}"
        self.ask("PATCH", path, {"project": {"name": name}}, user="admin")

    def names(self) -> set[str]:
        listed = self.ask("GET", f"{NETWORK}/security-groups")["security_groups"]
        return {group["name"] for group in listed} - {"default"}

    def groups_of(self, server: str) -> set[str]:
        listed = self.ask("GET", f"{COMPUTE}/servers/{server}/os-security-groups")["security_groups"]
        return {group["id"] for group in listed}

    def carry_out(self) -> None:
        """Begin the jobs that wait as a worker does, and do what their playbook does on the controller."""
        while True:
            with transaction(self.api.engine) as connection:
                run_id = claiming.claim(connection, "w", KINDS, LIMITS)
                if run_id is None:
                    return
                plan = runs.plan_of(connection, run_id)
                assert plan.playbook == "security_groups.yml"
                lookups.project_by_name(connection, plan.variables["project"])
            before = self.api.dump()
            members = plan.variables.get("changed_members", [])
            answer = self.api.operate("group_plan", groups=plan.variables["changed_groups"], members=members)
            assert self.api.dump() == before
            self._keep(answer["hosts"])
            with transaction(self.api.engine) as connection:
                runs.end(connection, run_id, runs.Outcome(runs.SUCCESSFUL))

    def _keep(self, hosts: t.Mapping[str, t.Any]) -> None:
        for plan in hosts.values():
            self.chains.update({entry["id"]: entry for entry in plan["instances"]})
            self.rules.update({group["id"]: group.get("rules") for group in plan["security_groups"]})

    def check(self) -> None:
        """Assert that the host was told of each server, and of its groups, what the ledger says."""
        plan = self.api.operate("firewall_plan", hosts=["hv1"])["hosts"]["hv1"]
        said = {entry["id"]: entry for entry in plan["instances"]}
        rules = {group["id"]: group.get("rules") for group in plan["security_groups"]}
        for number, chains in self.chains.items():
            assert chains == said[number]
            for group in chains["security_groups"]:
                assert self.rules[group] == rules[group]


@pytest.fixture
def late(api: Api) -> Late:
    return Late(api)


def test_a_closed_port_is_closed_though_the_group_is_called_something_else_by_then(late: Late) -> None:
    group = late.group("web")
    rule = late.rule(group, 22)
    late.act(late.servers[0], "add", group)
    late.carry_out()
    late.ask("DELETE", f"{NETWORK}/security-group-rules/{rule}")
    late.rename(group, "other")
    late.carry_out()
    assert late.names() == {"other"}
    assert [rules for rules in late.rules.values() if rules is not None] == [[]]
    late.check()


def test_a_group_that_is_left_and_deleted_at_once_is_gone_from_the_host(late: Late) -> None:
    group = late.group("web")
    late.rule(group, 22)
    late.act(late.servers[0], "add", group)
    late.carry_out()
    late.act(late.servers[0], "remove", group)
    late.ask("DELETE", f"{NETWORK}/security-groups/{group}")
    late.carry_out()
    (chains,) = late.chains.values()
    assert chains["security_groups"] == []
    late.check()


def test_whoever_asks_for_the_contrary_before_the_job_begins_has_the_last_word(late: Late) -> None:
    group, server = late.group("web"), late.servers[0]
    late.act(server, "add", group)
    late.carry_out()
    late.act(server, "remove", group)
    late.act(server, "add", group)
    with transaction(late.api.engine) as connection:  # the second job is cancelled, fails, ...
        job = tables.tables_jobs.job
        last = connection.execute(
            sa.select(job.c.id).where(job.c.state == "queued").order_by(job.c.created_at.desc()).limit(1)
        ).scalar_one()
        connection.execute(sa.update(job).where(job.c.id == last).values(state="cancelled"))
    late.carry_out()
    assert late.groups_of(server) == {group}
    late.check()


def test_a_project_may_be_renamed_while_its_jobs_wait(late: Late) -> None:
    group = late.group("web")
    late.act(late.servers[0], "add", group)
    late.rename_project("renamed")
    late.ask("POST", "/identity/v3/projects", {"project": {"name": "demo"}}, user="admin")
    late.carry_out()
    late.check()
    assert len(late.chains) == 1


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_done_before_the_jobs_begin_hosts_end_with_what_the_ledger_says(late: Late, seed: int) -> None:
    chance = random.Random(seed)
    groups, rules = [late.group("first")], dict[str, str]()
    for step in range(STEPS):
        group, server = chance.choice(groups), chance.choice(late.servers)
        held = late.groups_of(server)
        what = chance.choice(
            ["member", "member", "member", "rule", "rule", "rename", "new", "delete", "project", "work"]
        )
        if what == "member":
            late.act(server, "remove" if group in held else "add", group)
        elif what == "rule" and group in rules:
            late.ask("DELETE", f"{NETWORK}/security-group-rules/{rules.pop(group)}")
        elif what == "rule":
            rules[group] = late.rule(group, 1000 + step)
        elif what == "rename":
            late.rename(group, f"group {step}")
        elif what == "new":
            groups.append(late.group(f"new {step}"))
        elif what == "delete" and len(groups) > 1 and not any(group in late.groups_of(of) for of in late.servers):
            late.ask("DELETE", f"{NETWORK}/security-groups/{group}")
            groups.remove(group)
            rules.pop(group, None)
        elif what == "project":
            late.rename_project(f"project{step}")
        elif what == "work":
            late.carry_out()
    shown = {server: late.groups_of(server) for server in late.servers}
    names = late.names()
    late.carry_out()
    assert ({server: late.groups_of(server) for server in late.servers}, late.names()) == (shown, names)
    late.check()
