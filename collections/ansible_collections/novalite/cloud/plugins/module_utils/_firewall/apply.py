# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Bring a host's iptables to what was asked: the only file of this room that runs commands."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import random
import time
import typing as t

from .._command import CommandError, run
from .._errors import NovaliteError
from .._host import in_threads, locked
from . import bridged, merge, ruleset
from .policy import FAMILIES, Chains

ATTEMPTS = 5
_WAIT = "20"  # seconds for the xtables lock of other programs; without -w iptables gives up at once
_COMMAND = {"IPv4": "iptables", "IPv6": "ip6tables"}
_CONNTRACK = {"IPv4": "ipv4", "IPv6": "ipv6"}


@dataclasses.dataclass
class Outcome:
    """What was (in check mode: would be) done. `restores` counts transactions, `warnings` are for the user."""

    before: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    after: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    restores: int = 0
    warnings: list[str] = dataclasses.field(default_factory=list)

    @property
    def changed(self) -> bool:
        return self.before != self.after


class Tables:
    """iptables and ip6tables of one backend: `auto` (what the host's iptables command is), `nft` or `legacy`."""

    def __init__(self, backend: str = "auto") -> None:
        self._infix = "" if backend == "auto" else f"-{backend}"

    def read(self, family: str) -> tuple[ruleset.Ruleset, str]:
        """The filter table and the backend (`nft` or `legacy`) that answered."""
        text = run([f"{_COMMAND[family]}{self._infix}-save", "-t", "filter"]).stdout
        generated = text.partition("\n")[0]
        # 1.8.2 called itself xtables-save; legacy has neither mark. An empty nft answer has no header at all.
        nft = "nf_tables" in generated or "xtables-save" in generated or not generated.startswith("#")
        return ruleset.parse(text), "nft" if nft else "legacy"

    def write(self, family: str, text: str) -> None:
        run([f"{_COMMAND[family]}{self._infix}-restore", "--noflush", "--wait", _WAIT], stdin=text)


def apply(request: merge.Request, *, check_mode: bool = False, backend: str = "auto") -> Outcome:
    """Ensure the request on this host. One `iptables-restore` per family, none where nothing differs.

    Raises NovaliteError; what this call changed in one family is taken back when the other one fails.
    """
    tables = Tables(backend)
    outcome = Outcome()
    # Reading needs no lock: a check must not queue behind a run.
    with contextlib.nullcontext() if check_mode else locked("firewall"):
        _before_rules(request, outcome, check_mode)
        gone = set()  # type: set[str]
        undo = []  # type: list[tuple[str, Chains]]
        try:
            for family in FAMILIES:
                gone |= _apply_family(tables, family, request, outcome, check_mode, undo)
        except BaseException:
            for family, chains in reversed(undo):
                with contextlib.suppress(NovaliteError):
                    _converge(tables, family, functools.partial(_just, chains))
            raise
        if request.state == "absent":
            # Also when their chains went in an earlier run: it may have been cut off before it came to this.
            for family in FAMILIES:
                gone.update(*(instance.of(family) for instance in request.instances))
        if gone and not check_mode:
            outcome.warnings += forget_flows(gone - _still_used(tables))
    return outcome


def forget_flows(addresses: t.Collection[str]) -> list[str]:
    """Delete the tracked connections from and to addresses (`10.0.0.5/32`) that are no instance's any more.

    Otherwise the next owner of an address inherits ESTABLISHED flows. Returns warnings.
    """
    jobs = [(family, option, address.partition("/")[0])
            for address in sorted(addresses)
            for family in ("IPv6" if ":" in address else "IPv4",)
            # Both ends as the instance's side sees them, so that translated (floating) flows are found too.
            for option in ("--orig-src", "--reply-src")]

    def delete(job: tuple[str, str, str]) -> str | None:
        family, option, address = job
        try:
            run(["conntrack", "-D", "-f", _CONNTRACK[family], option, address], ok=(0, 1))
        except CommandError as error:
            return str(error)
        return None

    problems = sorted({problem for problem in in_threads(delete, jobs, workers=4) if problem})
    if problems:
        return [f"open connections of removed instances could not be cut: {problems[0]}"]
    return []


def _before_rules(request: merge.Request, outcome: Outcome, check_mode: bool) -> None:
    if request.state != "present" or not request.instances:
        return
    wrong = bridged.missing(check_mode)
    if wrong:
        outcome.before["sysctl"] = wrong
        outcome.after["sysctl"] = dict.fromkeys(wrong, "1")
        if not check_mode:
            bridged.ensure(wrong)


def _apply_family(
    tables: Tables,
    family: str,
    request: merge.Request,
    outcome: Outcome,
    check_mode: bool,
    undo: list[tuple[str, Chains]],
) -> set[str]:
    """One family; returns the addresses that nova-local no longer knows."""
    needed = request.state == "present" and any(instance.of(family) for instance in request.instances)
    try:
        current, backend = tables.read(family)
    except CommandError:
        if needed:
            raise
        return set()  # a host without ip6tables, and nothing of ours in it
    outcome.warnings += _look_around(tables, family, current, backend)
    wanted = merge.merged(current, request, family)
    before, after = ruleset.difference(current, wanted)
    if before == after:
        return set()
    outcome.before[family], outcome.after[family] = before, after
    if not check_mode:
        # Known before the attempt: an attempt that fails half-way is taken back too.
        undo.append((family, current.owned()))
        outcome.restores += _converge(tables, family, lambda now: merge.merged(now, request, family), current)
    left = {rule.split(" ")[1] for rule in wanted.get(merge.LOCAL, ())}
    return set(current.instances()) - left


def _converge(
    tables: Tables,
    family: str,
    want: t.Callable[[ruleset.Ruleset], Chains],
    current: ruleset.Ruleset | None = None,
) -> int:
    """Restore the difference; when another program was faster, read and compare again, up to ATTEMPTS times."""
    pause = 0.05
    for attempt in range(1, ATTEMPTS + 1):
        if current is None:
            current, _backend = tables.read(family)
        text = ruleset.delta(current, want(current))
        if not text:
            return attempt - 1
        try:
            tables.write(family, text)
            return attempt
        except CommandError as error:
            if attempt == ATTEMPTS or error.rc == 127:
                raise NovaliteError(f"the {family} firewall rules were refused {attempt} times: {error}") from error
        time.sleep(pause * (0.5 + random.random()))
        pause *= 2
        current = None
    raise AssertionError("unreachable")


def _just(chains: Chains, _current: ruleset.Ruleset) -> Chains:
    return chains


def _look_around(tables: Tables, family: str, current: ruleset.Ruleset, backend: str) -> list[str]:
    """Refuse a host where both backends carry our chains; warn of what cuts guests off from outside."""
    warnings = []
    second_backend = "legacy" if backend == "nft" else "nft"
    # Legacy tables exist only when listed here; asking iptables-legacy itself would create them.
    with contextlib.suppress(CommandError, OSError):
        listed = True
        if backend == "nft":
            name = "ip_tables_names" if family == "IPv4" else "ip6_tables_names"
            with open(f"/proc/net/{name}", encoding="ascii") as handle:
                listed = "filter" in handle.read().split()
        second = Tables(second_backend).read(family)[0] if listed else None
        if second and second.owned():
            raise NovaliteError(
                f"novalite's chains are in iptables-{second_backend} too, and packets traverse both: remove them there "
                f"(state: absent with backend: {second_backend}) or switch the host's iptables alternative back"
            )
    if current.policies.get("FORWARD") == "DROP":
        docker = " (Docker sets it)" if any(name.startswith("DOCKER") for name in current.chains) else ""
        warnings.append(
            f"the {family} policy of FORWARD is DROP{docker}: what instances send to other networks is dropped "
            "unless a rule of this host accepts it"
        )
    return warnings


def _still_used(tables: Tables) -> set[str]:
    used = set()  # type: set[str]
    for family in FAMILIES:
        with contextlib.suppress(CommandError):
            used |= set(tables.read(family)[0].instances())
    return used
