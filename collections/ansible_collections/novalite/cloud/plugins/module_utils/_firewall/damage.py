# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Damage that others did to novalite's chains since the last run, and its repair. Pure.

`iptables -F` of an administrator, firewalld or a container engine leaves every guest open, and those whom a request
does not name are as open as before after it. What the last run left is known from its notes (cache.py), so any run
that reads the tables puts it back. Without notes, what is empty is closed.
"""

from __future__ import annotations

import typing as t

from . import devices, ruleset
from .policy import FALLBACK, INSTANCE, NEW, OUT_OF
from .present import Changes, Present, everything, roots, whos

_SHOWN = 8  # names in a warning


def names(intended: Present, present: Present, family: str) -> list[str]:
    """The chains, and the built-in ones that call them, that are not as `intended` any more, for the user."""
    whole, there = everything(intended, family), present.chains
    chain_names = [
        name
        for name in {**whole, **there}
        if name not in there or name not in whole or not ruleset.same(name, there[name], whole[name])
    ]
    if present.ruleset is not None:
        chain_names += [hook.name for hook in present.ruleset.misplaced_hooks(roots(intended))]
    return sorted(set(chain_names))


def against(present: Present, intended: Present, changes: Changes, family: str) -> None:
    """Make the changes, which are from what was intended, those from what is there."""
    whole = {} if changes.is_last else {**everything(intended, family), **changes.differing_chains}
    for name in changes.gone:
        whole.pop(name, None)
    changes.differing_chains = ruleset.differing(whole, present.chains)
    changes.gone = [name for name in present.chains if name not in whole]


def close(present: Present, changes: Changes, family: str) -> list[str]:
    """Have what is empty end in DROP, of instances that nobody told of. Returns the names of their chains, and of those
    that nothing leads to: their addresses are not known."""
    closed = {
        INSTANCE: f"-j {FALLBACK[family]}",
        NEW: f"-j {FALLBACK[family]}",
        OUT_OF: "-j DROP",
        devices.TARGETS: "-j DROP",
    }
    reached = whos(present.inbound) | set(present.devices.get(devices.TO.root, {}).values())
    chain_names = []
    for name, rules in present.chains.items():
        prefix = next((prefix for prefix in closed if name.startswith(prefix)), None)
        if prefix is None or name in changes.differing_chains:
            continue
        if not rules and name not in changes.gone:
            changes.differing_chains[name] = (closed[prefix],)
            chain_names.append(name)
        elif prefix == INSTANCE and name[len(prefix) :] not in reached:
            chain_names.append(name)
    return sorted(chain_names)


def warnings(repaired: t.Mapping[str, t.Sequence[str]], lost: t.Mapping[str, t.Sequence[str]]) -> list[str]:
    """List warnings for the user. `repaired` and `lost`: the chains by table, those put back and those only closed."""
    texts = []
    if repaired:
        texts.append(
            f"somebody else changed novalite's chains since its last run ({_listed(repaired)}): they are put "
            "back as they were"
        )
    if lost:
        texts.append(
            f"somebody else emptied novalite's chains, and what was in them is not known here "
            f"({_listed(lost)}): their instances are closed as far as anything leads to them; run "
            "playbooks/firewall.yml"
        )
    return texts


def _listed(chains: t.Mapping[str, t.Sequence[str]]) -> str:
    return "; ".join(
        f"{table}: {', '.join(names[:_SHOWN])}{' and others' * (len(names) > _SHOWN)}"
        for table, names in chains.items()
    )
