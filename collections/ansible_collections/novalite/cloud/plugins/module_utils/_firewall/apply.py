# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring a host's packet filter to what was asked: sets of addresses, then rules, then what the rules needed before."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import random
import time
import typing as t

from .._errors import ConflictError, NovaliteError
from .._host.command import CommandError
from .._host.libvirt_connection import DEFAULT_URI
from .._host.locks import locked
from .._json import JsonObject
from .._network import bridged, users
from .._network.ownership import NO_LEDGER, Mark
from . import cache, conntrack, damage, devices, dispatch, fingerprint, merge, owner, passage, ports, ruleset, sets
from .arguments import Request
from .cache import DIRECTORY
from .look import Known, Look
from .policy import Content, group_of, set_name
from .present import Changes, Present, everything, others, roots
from .rules import FAMILIES
from .tables import Second, Tables

ATTEMPTS = 5
_NO_TARGETS = (
    "this host's kernel or iptables has no xt_bpf: IPv6 neighbour advertisements of its guests are not "
    "compared with their addresses; install it (kernel-modules-extra on EL), or give strangers networks of "
    "their own"
)
_FORWARD_DROPS = (  # what cuts guests off from outside
    "{} packets that no rule of this host accepts are dropped in FORWARD (Docker sets it so), what instances send "
    "among them: give the bridges of their networks (bridges), as playbooks/firewall.yml does"
)


@dataclasses.dataclass
class Outcome:
    """Result of a run, or of check mode. `restores` counts transactions, `warnings` are for the user."""

    before: JsonObject = dataclasses.field(default_factory=dict)
    after: JsonObject = dataclasses.field(default_factory=dict)
    restores: int = 0
    warnings: list[str] = dataclasses.field(default_factory=list)
    repaired: dict[str, list[str]] = dataclasses.field(default_factory=dict)  # table -> chains that others changed

    @property
    def changed(self) -> bool:
        return self.before != self.after


def apply(
    request: Request,
    *,
    check_mode: bool = False,
    backend: str = "auto",
    directory: str = DIRECTORY,
    mark: Mark = NO_LEDGER,
    uri: str = DEFAULT_URI,
) -> Outcome:
    """Ensure the request on this host. One `iptables-restore` per family, none where nothing differs. Bridges that have
    users are not given up, whoever leaves them.

    Raises NovaliteError (ConflictError on a host with another ledger's chains); what this call changed in one family is
    taken back when the other one fails.
    """
    tables = Tables(backend)
    outcome = Outcome()
    with contextlib.ExitStack() as locks:
        if request.state == "absent" and request.bridges:
            used = locks.enter_context(users.alone(request.bridges, uri, check_mode))
            request = dataclasses.replace(request, bridges=tuple(name for name in request.bridges if name not in used))
        if not check_mode:  # reading needs no lock: a check must not queue behind a run
            locks.enter_context(locked("firewall"))
        other = owner.is_others(mark)
        if other is not None and request.state == "absent":
            outcome.warnings.append(f"the chains on this host are another ledger's ({other}) and were left alone")
            return outcome
        if other is not None or (request.instances and request.state == "present" and not check_mode):
            owner.take(mark)
        if not check_mode:
            if request.state == "absent":
                bridged.hide(request.bridges, mark)
            if any(instance.devices or instance.open_devices for instance in request.instances):
                bridged.load()  # or the rules that compare devices load it, with its switches on
        _Run(tables, request, outcome, check_mode, directory).converge()
        if request.state == "present" and request.instances:
            bridged.show(request.bridges, outcome.before, outcome.after, check_mode, mark)
    return outcome


class _Run:
    def __init__(self, tables: Tables, request: Request, outcome: Outcome, check_mode: bool, directory: str) -> None:
        self.tables, self.request, self.outcome = tables, request, outcome
        self.check_mode, self.directory = check_mode, directory
        self.second = Second(tables.backend)
        self.look = Look(tables, self.second, request, check_mode, directory)
        self.first: Known | None = None  # as it was found, to go back to
        self.written: list[str] = []  # families
        self.left: list[str] = []  # warnings about what is not taken away

    def converge(self) -> None:
        """Try, and when another program was faster or iptables failed, look again, up to ATTEMPTS times."""
        pause = 0.05
        thorough = self.check_mode or self.request.is_everything
        for attempt in range(1, ATTEMPTS + 1):
            try:
                known = self.look.known(thorough)
                self._leave_others(known)
                changes = self._merge(known)
                if changes is None:  # what was kept does not do for this change
                    known = self.look.known(thorough=True, keep=False)
                    changes = t.cast("dict[str, Changes]", self._merge(known))
                self.first = self.first or known
                self._report(known, changes)
                if not self.check_mode:
                    self._write(known, changes)
                return
            except CommandError as error:
                if self.check_mode or attempt == ATTEMPTS or error.rc == 127:
                    self._undo()
                    raise NovaliteError(f"the firewall rules were refused {attempt} times: {error}") from error
            except BaseException:
                self._undo()
                raise
            time.sleep(pause * (0.5 + random.random()))
            pause *= 2
            thorough = True

    # -- what shall be there

    def _merge(self, known: Known) -> dict[str, Changes] | None:
        """None when the tables themselves have to be looked at for it."""
        changed: dict[str, Changes] = {}
        self._ask_for_targets(known.presents["IPv6"])
        for family in FAMILIES:
            present = known.presents[family]
            intended = known.intended.get(family)
            changes = merge.merge(intended or present, self.request, family)
            if intended is not None:
                damage.against(present, intended, changes, family)
            elif known.trusted and (
                changes.roots != roots(present)
                or (not present.is_empty and changes.is_last)
                or not set(known.facts["foreign"]).isdisjoint(changes.gone)
            ):
                return None
            if present.ruleset is not None:
                ruleset.refuse_foreign_users(present.ruleset, changes.gone)
            changed[family] = changes
        return changed

    def _leave_others(self, known: Known) -> None:
        """Take from a request to remove what is another instance's of the same number. Raises ConflictError for one to
        ensure: that one's chains would be replaced."""
        strangers: dict[int, str] = {}
        for present in known.presents.values():
            strangers |= others(present, self.request.instances)
        if strangers and self.request.state == "present":
            number, whose = min(strangers.items())
            raise ConflictError(
                f"the chains nova-inst-{number} on this host are {whose}, which has the same number: this ledger is "
                "older than its hosts, or that instance is a leftover; run playbooks/ledger_rebuild.yml, then "
                "reconcile.yml"
            )
        staying = tuple(instance for instance in self.request.instances if instance.id not in strangers)
        self.request = dataclasses.replace(self.request, instances=staying)
        self.left += [
            f"the chains nova-inst-{number} are {whose} and were left alone" for number, whose in strangers.items()
        ]

    def _ask_for_targets(self, present: Present) -> None:
        """Decide, once for a host, whether its kernel can compare ND targets: it can where it already does."""
        if self.request.state != "present" or not any(instance.devices for instance in self.request.instances):
            return
        who = next(iter(present.devices.get(devices.ND.root, {}).values()), None)
        able = who is not None and devices.compare(present.chains.get(devices.TARGETS + who, ()))
        self.request = dataclasses.replace(self.request, targets=able or self.tables.compares_bytes())

    def _report(self, known: Known, changes_by_family: t.Mapping[str, Changes]) -> None:
        lost = {
            family: damage.close(known.presents[family], changes, family)
            for family, changes in changes_by_family.items()
            if not known.trusted and not self.request.is_everything and family not in known.intended
        }
        self.outcome.repaired = {
            family: damage.names(intended, known.presents[family], family)
            for family, intended in known.intended.items()
        }
        if known.intended_ports is not None:
            self.outcome.repaired["ports"] = sorted(known.intended_ports.chains)
        self.outcome.warnings[:] = [
            *self.left,
            *([] if self.request.targets else [_NO_TARGETS]),
            *damage.warnings(self.outcome.repaired, {family: names for family, names in lost.items() if names}),
            *(
                _FORWARD_DROPS.format(family)
                for family, changes in changes_by_family.items()
                if "FORWARD" in known.presents[family].dropping
                and not changes.is_last
                and passage.SENT not in changes.roots
            ),
            *(
                f"the address {dispatch.to_cidr(key, family)} is an allowed address pair of too many instances of one "
                "host, and is closed: leave some out"
                for family, changes in changes_by_family.items()
                for key in sorted(changes.crowded)
            ),
        ]
        for family, changes in changes_by_family.items():
            present = known.presents[family]
            held = {name: changes.rules_before(present, name) for name in (*changes.differing_chains, *changes.gone)}
            before = ruleset.shown({name: rules for name, rules in held.items() if rules is not None})
            after = ruleset.shown(changes.differing_chains)
            if present.ruleset is not None:
                for hook in present.ruleset.misplaced_hooks(changes.roots):
                    # The place is part of what is compared: a hook behind a foreign ACCEPT protects nothing.
                    places = present.ruleset.hook_places(hook)
                    before.setdefault(hook.name, [])
                    before[hook.name] += [f"-I {hook.chain} {place + 1} {hook.rule}" for place in places]
                    after.setdefault(hook.name, [])
                    after[hook.name] += [present.ruleset.hook_to_be(hook)] if hook.root in changes.roots else []
            if (before or after) and family not in self.outcome.before:
                self.outcome.before[family], self.outcome.after[family] = before, after
        ensuring = self.request.state == "present"
        self.port_chains = ports.chains_after(
            known.intended_ports or known.ports,
            {instance.id: instance.ports for instance in self.request.instances if ensuring and instance.ports},
            {instance.id for instance in self.request.instances},
            self.request.is_everything,
        )
        was, shall = ports.difference(known.ports, self.port_chains)
        if was or shall:
            self.outcome.before["ports"], self.outcome.after["ports"] = was, shall
        if self.second.rulesets:
            self.outcome.before[f"iptables-{self.second.backend}"] = self.second.chains()
            self.outcome.after[f"iptables-{self.second.backend}"] = {}
        self.sets = self._sets(known, changes_by_family)
        if self.sets.was or self.sets.shall:
            self.outcome.before["sets"], self.outcome.after["sets"] = self.sets.was, self.sets.shall

    def _sets(self, known: Known, changes_by_family: t.Mapping[str, Changes]) -> sets.Plan:
        if not self.request.sets:
            return sets.Plan()
        needed = {family: changes.sets for family, changes in changes_by_family.items()}
        groups = {group.id: group for group in self.request.groups if self.request.state == "present"}
        members_of: dict[str, Content] = {}
        for family, parts in needed.items():
            zones = self._zones(known, changes_by_family[family], family)
            scopes: dict[int | None, str] = {None: dispatch.EVERYWHERE}
            scopes.update((zone, scope) for scope, zone in zones.items())
            for part in parts:
                number, zone = group_of(part)
                is_told = number in groups and zone in scopes
                members_of[part] = groups[number].content(scopes[zone]) if is_told else Content()
        # What is there and is not spoken of needs no look.
        looked_at = {
            family: [part for part in parts if members_of[part] or part not in known.presents[family].sets]
            for family, parts in needed.items()
        }
        staying = {set_name(part, family) for family, parts in needed.items() for part in parts}
        there: set[str] | None = None
        if known.trusted:
            there = {set_name(part, family) for family, present in known.presents.items() for part in present.sets}
        elif any(present.chains for present in known.presents.values()) or any(needed.values()):
            there = sets.names()
        return sets.plan(looked_at, members_of, sorted((there or set()) - staying))

    def _zones(self, known: Known, changes: Changes, family: str) -> dict[str, int]:
        """The conntrack zone of each isolated bridge that is known of, before or afterwards."""
        return {**known.presents[family].zones, **changes.zones, **self.request.zones}

    # -- the way there

    def _write(self, known: Known, changes_by_family: t.Mapping[str, Changes]) -> None:
        texts = {
            family: self._text(known.presents[family], changes, family) for family, changes in changes_by_family.items()
        }
        texts = {family: text for family, text in texts.items() if text}
        bridged_texts = ports.delta(known.ports, self.port_chains)
        sets.restore(self.sets.before)
        if texts or bridged_texts:
            cache.forget(self.directory)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            # While iptables works this process has nothing to do.
            idle = known.kept and not texts and not bridged_texts
            update = None if idle else pool.submit(self._update, known, changes_by_family)
            for family, text in texts.items():
                self.written.append(family)
                self.tables.write(family, text)
                self.outcome.restores += 1
            ports.restore(bridged_texts)
        if self.second.rulesets:
            self.second.clear()  # which changes what the fingerprint is of: the next run looks for itself
            update = None
        if update is not None:
            commits = sum(text.count("\nCOMMIT\n") for text in texts.values())
            self._keep(update.result(), known, commits, len(bridged_texts))
        sets.restore(self.sets.after)
        self.outcome.warnings += conntrack.forget(self._changed_hands(known, changes_by_family))

    def _text(self, present: Present, changes: Changes, family: str) -> str:
        hooks = [] if present.ruleset is None else ruleset.lines_of_hooks(present.ruleset, changes.roots)
        edits = {
            name: lines
            for name, rules in changes.differing_chains.items()
            if (lines := ruleset.edits(name, changes.rules_before(present, name), rules)) is not None
        }
        return ruleset.restore_text(changes.differing_chains, changes.gone, hooks, edits)

    def _update(self, known: Known, changes_by_family: t.Mapping[str, Changes]) -> cache.Update:
        update = cache.Update(self.directory)
        for family, changes in changes_by_family.items():
            update.family(family, known.presents[family], changes)
        return update

    def _keep(self, update: cache.Update, known: Known, commits: int, bridged_commits: int) -> None:
        facts = {**known.facts, "ports": self.port_chains}
        now = known.fingerprint
        if commits or bridged_commits:
            now = fingerprint.take()
            if now["generation"] is not None and known.fingerprint["generation"] is not None:
                ours = known.fingerprint["generation"] + bridged_commits
                ours += commits if self.tables.backend == "nft" else 0
                if now["generation"] != ours:
                    return  # somebody else wrote in between
        if commits:
            facts["digest"] = None
        update.commit(now, facts)

    def _changed_hands(self, known: Known, changes_by_family: t.Mapping[str, Changes]) -> set[conntrack.Owned]:
        owned: set[conntrack.Owned] = set()
        for family, changes in changes_by_family.items():
            zones = self._zones(known, changes, family)
            changing = set(changes.moved | changes.arrived)
            if self.request.state == "absent":
                # Also when their chains went in an earlier run: it may have been cut off before it came to this.
                changing |= {
                    (scope, dispatch.to_hex(cidr))
                    for instance in self.request.instances
                    for scope, cidr in instance.of(family)
                    if dispatch.to_hex(cidr) not in changes.inbound.get(scope, {})
                }
            for scope, key in changing:
                zone = zones.get(scope, 0)
                if scope == dispatch.EVERYWHERE or zone:
                    owned.add(conntrack.Owned(dispatch.to_cidr(key, family).partition("/")[0], zone))
        return owned

    def _undo(self) -> None:
        """Back to what was found, in the families that were written to."""
        if self.first is None:
            return
        for family in reversed(dict.fromkeys(self.written)):
            with contextlib.suppress(NovaliteError):
                present = self.first.presents[family]
                chains = everything(present, family)
                text = ruleset.delta(self.tables.read(family), chains, roots(present))
                if text:
                    self.tables.write(family, text)
