# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings about this controller and its hosts, each with its remedy, from the ledger and this machine alone: no host
is asked, so what a host has of its own is for `novalite reconcile` to say."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import typing as t

from .tables import Record

UNSEEN = 86_400  # seconds after which it is worth a word that nothing was heard of a host
SCARCE = 0.9  # of a pool's addresses that are in use


@dataclasses.dataclass(frozen=True)
class Health:
    """State of a controller and its cloud. `behind` says why the ledger may not be trusted, `hosts` and `networks` are
    those of the ledger, `troubled` the servers that failed or of which nothing is heard. `now` is by its clock."""

    now: int = 0
    has_libvirt_collection: bool = True
    behind: str | None = None
    hosts: t.Sequence[Record] = ()
    networks: t.Sequence[Record] = ()
    troubled: t.Sequence[Record] = ()


@dataclasses.dataclass(frozen=True)
class Finding:
    """A thing that is wrong: with what, what it is, and what helps."""

    about: str
    problem: str
    remedy: str


def findings(health: Health) -> list[Finding]:
    """Return what is wrong, the gravest first."""
    return [*_of_controller(health), *_of_hosts(health), *_of_networks(health), *_of_servers(health)]


def has_libvirt_collection(paths: t.Iterable[str]) -> bool:
    """Tell whether Ansible finds community.libvirt below one of `paths`, or beside Python's packages."""
    if any(os.path.isdir(os.path.join(path, "ansible_collections/community/libvirt")) for path in paths):
        return True
    try:
        return importlib.util.find_spec("ansible_collections.community.libvirt") is not None
    except ModuleNotFoundError:
        return False


def _of_controller(health: Health) -> t.Iterator[Finding]:
    if health.behind:
        yield Finding("ledger", health.behind, "novalite.cloud.ledger_rebuild asks all hosts")
    if not health.has_libvirt_collection:
        remedy = "ansible-galaxy collection install community.libvirt"
        yield Finding("controller", "the collection community.libvirt is missing", remedy)
    if not health.hosts:
        remedy = "put hosts into the inventory's group 'compute', and run novalite.cloud.compute_nodes"
        yield Finding("hosts", "the ledger knows no compute host", remedy)


def _of_hosts(health: Health) -> t.Iterator[Finding]:
    for host in health.hosts:
        about, silence = f"host {host['name']}", health.now - (host["last_seen_at"] or 0)
        if not host["up"]:
            remedy = "see to it, then run novalite.cloud.compute_nodes; if it is dead, novalite.cloud.evacuate"
            yield Finding(about, f"down: {host['down_reason'] or 'no reason is recorded'}", remedy)
        elif silence > UNSEEN:
            heard = f"not heard of for {silence // 3600} hours" if host["last_seen_at"] else "never heard of"
            yield Finding(about, heard, "novalite reconcile, from a timer (docs/reconcile.md)")
        if host["differences"]:
            problem = f"{host['differences']} differences from the ledger when it was compared last"
            yield Finding(about, problem, "novalite reconcile")
        if host["facts"].get("security_driver") == "none":
            problem = "its libvirt confines no guest: neither AppArmor nor SELinux"
            yield Finding(about, problem, "see docs/confinement.md")


def _of_networks(health: Health) -> t.Iterator[Finding]:
    public = sorted(network["name"] for network in health.networks if not network["owner"])
    if len(public) > 1:
        problem = f"{', '.join(public)}: a launch that names no network is refused where it could mean several"
        yield Finding("networks", problem, "name one: novalite launch -n NETWORK")
    for network in health.networks:
        addresses = network["addresses"]
        usable = addresses["total"] - addresses["reserved"]
        if addresses["free"] < (1 - SCARCE) * usable:
            problem = f"{addresses['free']} of {usable} addresses are free"
            yield Finding(f"network {network['name']}", problem, "give it a further range, or make another network")


def _of_servers(health: Health) -> t.Iterator[Finding]:
    for server in health.troubled:
        about = f"server {server['name']} ({server['uuid']})"
        if server["task_state"]:
            silence = f"without a sign of life for {(health.now - server['updated_at']) // 60} minutes"
            yield Finding(about, f"{server['task_state']}, {silence}", "novalite reconcile")
        else:
            problem = (server["fault"] or {}).get("message") or "in ERROR, without a fault"
            yield Finding(about, problem, f"novalite show {server['uuid']}; then launch it again, or novalite delete")
