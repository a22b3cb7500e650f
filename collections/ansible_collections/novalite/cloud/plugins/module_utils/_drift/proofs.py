# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decisions on what hosts have of instances beside the ledger's word: what goes, by which proof, and what stays. Pure.

The ledger may be wrong: restored from a copy, or asked about a machine that it takes for another. So what runs, and a
disk that may be the only copy, goes only by two proofs: the ledger wrote down that the instance left this host, and the
host where it is now has it, as this run saw. Otherwise both are left, and a person is told.
"""

from __future__ import annotations

import dataclasses
import enum
import typing as t

from .._disk.layout import DISK, EPHEMERAL, KEPT
from .._model.look import Look

RETRIED, SHELVED = "retried", "shelved"  # of the reasons in the table `departure`
NAMED = 3  # hosts that a sentence names at most
_ALIVE = ("running", "paused", "suspended", "shutting down")  # states of a domain whose guest is in memory


class Proof(enum.Enum):
    """Grounds on which reconcile removes something of an instance from a host."""

    DELETED = "deleted_by_user"
    ELSEWHERE = "left_and_is_elsewhere"  # it left this host, and its own host was seen to have it
    BUILD_FAILED = "build_failed"  # the host failed to build it, nobody was told that it runs, and it is on no host
    SHELVED = "shelved_with_image"  # it left this host for an image, which is there
    KEPT = "kept_for_its_days"  # of the bin's days
    UNUSED = "used_by_no_guest_here"  # of chains, entries, bridges: no guest that is here, or belongs here, needs it


@dataclasses.dataclass(frozen=True)
class Sight:
    """Traces of an instance that were seen on a host."""

    runs: bool = False
    defined: bool = False
    disk: bool = False


@dataclasses.dataclass(frozen=True)
class Word:
    """Statement of the ledger about an instance."""

    uuid: str
    name: str
    host: str | None  # where it is, or is being built
    deleted: bool = False
    launched: bool = True  # it was once said to run
    own_disk: bool = True  # it has a root disk, and does not start from a volume
    image_kept: bool = False  # what it had on its disk is an image in the store
    departures: t.Mapping[str, str] = dataclasses.field(default_factory=dict)  # host that it left -> reason


@dataclasses.dataclass(frozen=True)
class Evidence:
    """Evidence about an instance from this run: `sights` by host, of the hosts that have something of it. A host that
    is neither among them nor `silent` (not asked, or without an answer) has nothing."""

    sights: t.Mapping[str, Sight] = dataclasses.field(default_factory=dict)
    silent: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Verdict:
    """`proof` by which a leftover goes, or None: it stays. `why` is for people, `ask` the host without whose answer no
    more can be said."""

    proof: Proof | None
    why: str
    ask: str | None = None


def sights_of(look: Look) -> dict[str, Sight]:
    """Return what a look at a host saw of instances, by UUID."""
    states = {domain["uuid"]: domain.get("state", "running") for domain in look["domains"]}
    files = look.get("files", {})
    return {
        uuid: Sight(
            runs=states.get(uuid) in _ALIVE,
            defined=uuid in states,
            disk=uuid in look["disks"] and _has_disk(files.get(uuid)),
        )
        for uuid in sorted({*states, *look["disks"]})
    }


def _has_disk(names: t.Sequence[str] | None) -> bool:
    """Tell whether a directory with these files (None: not known) holds what a guest wrote."""
    return names is None or any(name in (DISK, EPHEMERAL) or name.endswith(KEPT) for name in names)


def of_leftover(word: Word, host: str, here: Sight, evidence: Evidence) -> Verdict:
    """Judge what `host` was seen to have (`here`) of an instance that the ledger has elsewhere, nowhere, or deleted."""
    if word.deleted:
        return Verdict(Proof.DELETED, f"{word.name} is deleted")
    place = f"on {word.host}" if word.host else "on no host"
    what = "runs" if here.runs else "its disk is" if here.disk else "is defined"
    contested = f"{what} on {host}, the ledger has it {place}"
    reason = word.departures.get(host)
    if reason is None:
        return Verdict(None, contested)
    left = f"{word.name} left {host} ({reason})"
    if word.host is None:
        if reason == RETRIED and (word.image_kept or not word.launched):
            return Verdict(Proof.BUILD_FAILED, f"{left}: its build failed here")
        if reason == SHELVED and word.image_kept and not here.runs:
            return Verdict(Proof.SHELVED, f"{left}, and its image is there")
        return Verdict(None, contested)
    if word.host in evidence.silent:
        return Verdict(None, f"{contested}; not known: {word.host} was not asked", ask=word.host)
    there = evidence.sights.get(word.host, Sight())
    if there.runs and (there.disk or not word.own_disk):
        return Verdict(Proof.ELSEWHERE, f"{left} and runs on {word.host}")
    if not here.runs and (there.disk if word.own_disk else there.defined):
        return Verdict(Proof.ELSEWHERE, f"{left} and its disk is on {word.host}")
    return Verdict(None, contested)


def obstacle(word: Word, host: str, here: Sight, evidence: Evidence) -> str | None:
    """Return why nothing may be repaired, recorded or started of an instance on `host`, where the ledger has it; None
    when nothing is against it. What another host has of it may be the guest itself, and this one an old copy."""
    if here.runs:
        return None
    others = {name: sight for name, sight in sorted(evidence.sights.items()) if name != host}
    has_disk = here.disk or not word.own_disk
    for name, sight in others.items():
        if sight.runs:
            return f"runs on {name}, the ledger has it on {host}"
    for name, sight in others.items():
        is_leftover = name in word.departures and (has_disk or not sight.disk)
        if (sight.disk or sight.defined) and not is_leftover:
            what = "its disk is" if sight.disk else "is defined"
            return f"{what} on {name}, the ledger has it on {host}"
    return None if has_disk and here.defined else not_asked(evidence.silent)


def not_asked(silent: t.Collection[str]) -> str | None:
    """Return that these hosts may have what is missing on another one; None when there are none."""
    names = sorted(silent)
    if not names:
        return None
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"not known: {', '.join(names[:NAMED])}{more} {'were' if len(names) > 1 else 'was'} not asked"


def refusal(word: Word, host: str, here: Sight, evidence: Evidence) -> str | None:
    """Return why the ledger is not to follow the instance to `host`, which has it (`here`); None when it may."""
    others = {name: sight for name, sight in sorted(evidence.sights.items()) if name != host}
    if word.host is None:
        return "the ledger has it on no host, and took back what it had"
    if word.host in evidence.silent:
        return f"{word.host}, where the ledger has it, was not asked"
    running = [name for name, sight in others.items() if sight.runs]
    if running:
        return f"it runs on {' and '.join(running)}"
    if here.runs:
        return None
    if not here.disk:
        return "no disk of it is there"
    holding = [name for name, sight in others.items() if sight.disk]
    if holding:
        return f"it does not run there, and a disk of it is on {' and '.join(holding)}, too"
    if evidence.silent:
        return f"it does not run there, and another host may have a disk of it, too; {not_asked(evidence.silent)}"
    return None
