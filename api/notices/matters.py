# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Matters that need somebody's attention, the gravest first: the rules, for pages and for notices."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.backup_ages import Ages
from ansible_collections.novalite.cloud.plugins.module_utils._model.listed_hosts import Host
from ansible_collections.novalite.cloud.plugins.module_utils._rules.server_status import silence

HOST, SERVER, LEDGER, HEALING, BALANCE = "host", "server", "ledger", "healing", "balance"
UNCONFINED = "unconfined"
NO_REASON = "no reason is recorded"


class Matter(t.NamedTuple):
    """Something that is wrong: with what (a host by its name, a server by its UUID), what people call it, the word for
    how it is, and the sentence."""

    kind: str
    id: str
    about: str
    state: str
    problem: str

    @property
    def key(self) -> str:
        """Return what stays the same while the matter lasts, whatever its sentence says."""
        return f"{self.kind} {self.id} {self.state}"


def of_hosts(hosts: t.Sequence[Host]) -> list[Matter]:
    """Return the matters of hosts: down, disabled, different from the ledger, without confinement."""
    down = [_host(host, "down", host["down_reason"] or NO_REASON) for host in hosts if not host["up"]]
    closed = [
        _host(host, "disabled", host["disabled_reason"] or "it gets no new instances")
        for host in hosts
        if host["up"] and not host["enabled"]
    ]
    differing = [
        _host(host, "differs", f"{host['differences']} differences from the ledger: reconcile")
        for host in hosts
        if host["differences"]
    ]
    unconfined = [
        _host(host, UNCONFINED, "guests are confined neither by AppArmor nor by SELinux")
        for host in hosts
        if host["facts"].get("security_driver") == "none"
    ]
    return [*down, *closed, *differing, *unconfined]


def of_servers(troubled: t.Sequence[JsonMapping]) -> list[Matter]:
    """Return the matters of servers, as status.troubled() has them: those whose run died, then those in error."""
    silent = [
        _server(server, server["task_state"] or server["vm_state"], f"{silence(server['silent_for'])}: its run died")
        for server in troubled
        if server["silent_for"] is not None
    ]
    failed = [
        _server(server, "error", one_line((server["fault"] or {}).get("message")))
        for server in troubled
        if server["silent_for"] is None
    ]
    return [*silent, *failed]


def of_backups(late: t.Sequence[Ages]) -> list[Matter]:
    """Return the matters of servers whose backups are late by their policies, as backup_ages.late() has them."""
    return [Matter(SERVER, each.uuid, each.name, "backups", each.late or "") for each in late]


def of_healing(status: JsonMapping) -> list[Matter]:
    """Return the matters of healing, as operations.healing.status() has it: disarmed, a balance that is suggested (each
    plan is another matter), hosts that are silent or were not healed to the end, servers that do not run. Without a
    watch there are none."""
    if status["controller"] is None:
        return []
    disarmed = [host["host"] for host in status["hosts"] if not host["armed"]]
    matters = []
    if not status["armed"] or disarmed:
        whom = ", ".join(disarmed) if status["armed"] else "all hosts"
        matters.append(Matter(HEALING, HEALING, "healing", "disarmed", f"of {whom}: a dead host stays dead"))
    if (plan := status["balance"]) is not None:
        matters.append(Matter(BALANCE, plan["plan"], "the balance of the hosts", "suggested", plan["text"]))
    if not status["watching"]:
        matters.append(Matter(HEALING, HEALING, "the watch", "stopped", "nobody looks at the hosts"))
    matters += [
        Matter(HOST, host["host"], host["host"], host["state"], host["note"] or "it does not answer")
        for host in status["hosts"]
        if host["state"] not in (None, "up", "empty")
    ]
    matters += [
        Matter(SERVER, server["uuid"], server["name"], "not healed", one_line(server["ha_reason"]))
        for server in status["servers"]
    ]
    return matters


def one_line(text: str | None) -> str:
    """Return the first line of `text` that says something."""
    return next((line.strip() for line in (text or "").splitlines() if line.strip()), NO_REASON)


def _host(host: Host, state: str, problem: str) -> Matter:
    return Matter(HOST, host["name"], host["name"], state, problem)


def _server(server: JsonMapping, state: str, problem: str) -> Matter:
    return Matter(SERVER, server["uuid"], server["display_name"] or server["name"], state, problem)
