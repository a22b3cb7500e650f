# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Matters that need somebody's attention, the gravest first: one line each, with the page that says more."""

from __future__ import annotations

import typing as t

from flask import url_for

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping
from ansible_collections.novalite.cloud.plugins.module_utils._model.listed_hosts import Host
from ansible_collections.novalite.cloud.plugins.module_utils._rules.server_status import silence

from .rendering import one_line

NAMED = 8  # servers and hosts that have a line of their own


class Matter(t.NamedTuple):
    """Something that is wrong: with what, how it is, and where more is said."""

    about: str
    state: str
    problem: str
    path: str


def of_hosts(hosts: t.Sequence[Host]) -> list[Matter]:
    """Return the matters of hosts. What holds for several is one line: it would hide all else."""
    matters = [
        Matter(host["name"], "down", host["down_reason"] or "no reason is recorded", _host(host))
        for host in hosts
        if not host["up"]
    ]
    matters += [
        Matter(host["name"], "disabled", host["disabled_reason"] or "it gets no new instances", _host(host))
        for host in hosts
        if host["up"] and not host["enabled"]
    ]
    matters += [
        Matter(host["name"], "differs", f"{host['differences']} differences from the ledger: reconcile", _host(host))
        for host in hosts
        if host["differences"]
    ]
    more = len(matters) - NAMED
    if more > 0:
        matters = [*matters[:NAMED], Matter(f"{more} more", "hosts", "", url_for("pages.list_hosts"))]
    open_hosts = [host["name"] for host in hosts if host["facts"].get("security_driver") == "none"]
    if open_hosts:
        about = open_hosts[0] if len(open_hosts) == 1 else f"{len(open_hosts)} of {len(hosts)} hosts"
        problem = "guests are confined neither by AppArmor nor by SELinux"
        matters.append(Matter(about, "unconfined", problem, url_for("pages.list_hosts")))
    return matters


def of_servers(troubled: t.Sequence[JsonMapping], errors: str) -> list[Matter]:
    """Return the matters of servers, as status.troubled() has them; `errors` leads to the list of those in error."""
    silent = [server for server in troubled if server["silent_for"] is not None]
    failed = [server for server in troubled if server["silent_for"] is None]
    matters = [
        Matter(
            _shown(server),
            server["task_state"] or server["vm_state"],
            f"{silence(server['silent_for'])}: its run died",
            _server(server),
        )
        for server in silent[:NAMED]
    ]
    if len(silent) > NAMED:
        matters.append(Matter(f"{len(silent) - NAMED} more", "silent", "", url_for("pages.list_instances")))
    matters += [
        Matter(_shown(server), "error", one_line((server["fault"] or {}).get("message")), _server(server))
        for server in failed[:NAMED]
    ]
    if len(failed) > NAMED:
        matters.append(Matter(f"{len(failed) - NAMED} more", "error", "", errors))
    return matters


def _shown(server: JsonMapping) -> str:
    return server["display_name"] or server["name"]


def _server(server: JsonMapping) -> str:
    return url_for("pages.show_instance", uuid=server["uuid"])


def _host(host: Host) -> str:
    return url_for("pages.show_host", name=host["name"])
