# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small model of `iptables-restore --noflush`: what a text does to a host's tables, and where iptables would fail."""

from __future__ import annotations

import pathlib
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._firewall import arguments, cache, merge, policy, ruleset
from ansible_collections.novalite.cloud.plugins.module_utils._firewall.present import Present, of_ruleset, roots

BUILT_IN = {
    "raw": ("PREROUTING", "OUTPUT"),
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
    "security": ("INPUT", "FORWARD", "OUTPUT"),
}
FAMILIES = ("IPv4", "IPv6")

Tables = dict[str, dict[str, tuple[str, ...]]]


def restored(tables: Tables, text: str) -> Tables:
    """After it no jump leads nowhere."""
    after = {table: {name: list(rules) for name, rules in chains.items()} for table, chains in tables.items()}
    chains: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("*"):
            chains = after.setdefault(line[1:], {})
            for name in BUILT_IN[line[1:]]:
                chains.setdefault(name, [])
        elif line.startswith(":"):
            chains[line[1:].split(" ")[0]] = []
        elif line[:2] == "-A":
            _verb, name, rule = line.split(" ", 2)
            chains[name].append(rule)
        elif line[:2] == "-I":
            _verb, name, place, rule = line.split(" ", 3)
            chains[name].insert(int(place) - 1, rule)
        elif line[:2] == "-D":
            _verb, name, rule = line.split(" ", 2)
            chains[name].remove(rule)
        elif line[:2] == "-X":
            name = line.split(" ")[1]
            assert not chains[name], f"{name} is not empty"
            assert not any(name == ruleset.target(rule) for rules in chains.values() for rule in rules), line
            del chains[name]
        else:
            assert line == "COMMIT"
            for name, rules in chains.items():
                for rule in rules:
                    jump = str(ruleset.target(rule))
                    assert jump in chains or not jump.startswith("nova-"), f"{rule} in {name} leads nowhere"
    return {table: {name: tuple(rules) for name, rules in of_table.items()} for table, of_table in after.items()}


class Host:
    """One family of a host. With a `directory`, what a request leaves is kept there and the next one trusts it."""

    def __init__(
        self, tables: Tables | None = None, family: str = "IPv4", directory: pathlib.Path | None = None
    ) -> None:
        self.tables: Tables = tables or {}
        self.family, self.directory = family, directory
        self.trusted = 0
        self.text = ""  # what was restored last

    @property
    def filter(self) -> dict[str, tuple[str, ...]]:
        return self.tables.get("filter", {})

    def rules(self, table: str, chain: str) -> tuple[str, ...]:
        return self.tables[table][chain]

    def owned(self) -> policy.Chains:
        return ruleset.Ruleset(self.tables).owned()

    def meant(self) -> policy.Chains:
        """Without the order of rules that mean the same in any."""
        return {
            name: tuple(sorted(rules)) if ruleset.dispatches(name) else rules for name, rules in self.owned().items()
        }

    def present(self) -> Present:
        return of_ruleset(ruleset.Ruleset(self.tables))

    def _known(self) -> Present:
        kept = cache.load(str(self.directory)) if self.directory else None
        return kept.families[self.family] if kept else self.present()

    def addresses(self) -> dict[str, dict[str, str]]:
        return self.present().inbound

    def apply(self, request: arguments.Request) -> merge.Changes:
        known = self._known()
        changes = merge.merge(known, request, self.family)
        if known.ruleset is None and (changes.roots != roots(known) or changes.is_last):
            known = self.present()
            changes = merge.merge(known, request, self.family)
        self.trusted += known.ruleset is None
        edits = {}
        for name, rules in changes.differing_chains.items():
            lines = ruleset.edits(name, changes.rules_before(known, name), rules)
            if lines is not None:
                edits[name] = lines
        hooks = []
        if known.ruleset is not None:
            ruleset.refuse_foreign_users(known.ruleset, changes.gone)
            for hook in known.ruleset.misplaced_hooks(changes.roots):
                hooks += ruleset.hook_lines(known.ruleset, hook, hook.root in changes.roots)
        self.text = ruleset.restore_text(changes.differing_chains, changes.gone, hooks, edits)
        self.tables = restored(self.tables, self.text)
        if self.directory:
            update = cache.Update(str(self.directory))
            for family in FAMILIES:
                update.family(family, known, changes)
            update.commit({"namespace": [], "generation": None, "legacy": {}}, {})
        again = merge.merge(self.present(), request, self.family)
        assert (again.differing_chains, again.gone) == ({}, []), "a second run changes something"
        assert not ruleset.Ruleset(self.tables).misplaced_hooks(again.roots)
        return changes


def request(
    *instances: dict[str, t.Any],
    groups: t.Sequence[dict[str, t.Any]],
    zones: t.Mapping[str, int] | None = None,
    **values: t.Any,
) -> arguments.Request:
    return arguments.Request(
        tuple(arguments.parse_instances(instances)), tuple(arguments.parse_groups(groups)), zones=zones or {}, **values
    )
