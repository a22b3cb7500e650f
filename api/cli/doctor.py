# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings about this controller and its hosts, each with its remedy, from the ledger and this machine alone: no host
is asked, so what a host has of its own is for `novalite reconcile` to say."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._rules.server_status import silence

from .inventory import Inventory
from .tables import Record

UNSEEN = 86_400  # seconds after which it is worth a word that nothing was heard of a host
SCARCE = 0.9  # of a pool's addresses that are in use


@dataclasses.dataclass(frozen=True)
class Health:
    """State of a controller and its cloud. `home` is the command's, None where a URL leads to the ledger. `no_ledger`
    says that there is none, and what helps; `behind`, why it may not be trusted. `hosts` and `networks` are those of
    the ledger, `troubled` the servers that failed or of which nothing is heard, `uncopied` those of which the last copy
    on a second host failed. `now` is by its clock."""

    now: int = 0
    has_libvirt_collection: bool = True
    inventory: Inventory | None = None
    home: str | None = None
    no_ledger: tuple[str, str] | None = None
    behind: str | None = None
    hosts: t.Sequence[Record] = ()
    networks: t.Sequence[Record] = ()
    troubled: t.Sequence[Record] = ()
    uncopied: t.Sequence[Record] = ()


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
    if health.no_ledger:
        yield Finding("ledger", *health.no_ledger)
    if health.behind:
        yield Finding("ledger", health.behind, "novalite.cloud.ledger_rebuild asks all hosts")
    if not health.has_libvirt_collection:
        remedy = "ansible-galaxy collection install community.libvirt"
        yield Finding("controller", "the collection community.libvirt is missing", remedy)
    if health.inventory and not health.inventory.hosts:
        remedy = "name it with -i, NOVALITE_INVENTORY or novalite config set inventory, and put hosts into that group"
        yield Finding("inventory", "it has no host in the group 'compute'", remedy)
    if health.inventory and health.inventory.home and health.home and health.inventory.home != health.home:
        problem = f"playbooks use {health.inventory.home} (the inventory's novalite_home), this command {health.home}"
        yield Finding("home", problem, f"novalite config set home {health.inventory.home}, if that is the right one")
    if not (health.hosts or health.no_ledger):
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
        if ahead := host["facts"].get("clock_ahead"):
            problem = f"its clock is {abs(ahead)} s {'ahead of' if ahead > 0 else 'behind'} this controller's"
            remedy = "run chrony, or another NTP client, on both; then novalite.cloud.compute_nodes looks again"
            yield Finding(about, problem, remedy)
        if other := host["facts"].get("other_ledger"):
            remedy = "no launch chooses it: take it out of the inventory, or have them moved away or deleted"
            yield Finding(about, f"it carries guests of another ledger ({other})", remedy)
        if host["facts"].get("security_driver") == "none":
            problem = "its libvirt confines no guest: neither AppArmor nor SELinux"
            yield Finding(about, problem, "see docs/confinement.md")


def _of_networks(health: Health) -> t.Iterator[Finding]:
    public = {network["name"]: network["is_default"] for network in health.networks if not network["owner"]}
    if len(public) > 1 and not any(public.values()):
        problem = f"{', '.join(sorted(public))}: none is the default, so a launch that names no network is refused"
        yield Finding("networks", problem, "give one is_default: true (docs/networks.md), or name one: launch -n")
    for network in health.networks:
        addresses = network["addresses"]
        usable = addresses["total"] - addresses["reserved"]
        if addresses["free"] < (1 - SCARCE) * usable:
            problem = f"{addresses['free']} of {usable} addresses are free"
            yield Finding(f"network {network['name']}", problem, "give it a further range, or make another network")


def _of_servers(health: Health) -> t.Iterator[Finding]:
    for server in health.troubled:
        about = f"server {server['name']} ({server['uuid']})"
        if server["silent_for"] is not None:
            doing = server["task_state"] or server["vm_state"]
            yield Finding(about, f"{doing}, {silence(server['silent_for'])}", "novalite reconcile")
        else:
            problem = (server["fault"] or {}).get("message") or "in ERROR, without a fault"
            yield Finding(about, problem, f"novalite show {server['uuid']}; then launch it again, or novalite delete")
    for server in health.uncopied:
        remedy = "novalite replica list; then novalite replica run, or replica set --host with another one"
        yield Finding(f"server {server['name']} ({server['uuid']})", f"not copied: {server['fault']}", remedy)
