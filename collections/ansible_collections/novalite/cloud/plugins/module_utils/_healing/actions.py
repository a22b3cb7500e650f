# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Actions of the watcher, and the guard that each passes in the ledger's transaction, just before it is carried out."""

from __future__ import annotations

import dataclasses
import typing as t

from . import states
from .nouns import Clock, Guest, HostRow, Lease, Token, Wishes


@dataclasses.dataclass(frozen=True)
class Hold:
    """Take the lease, or hold it longer: a guarded write that replaces `before`."""

    before: Lease | None
    after: Lease


@dataclasses.dataclass(frozen=True)
class Tell:
    """Say something to people; `loud` for what they must act upon."""

    host: str
    text: str
    loud: bool = False


@dataclasses.dataclass(frozen=True)
class List:
    """Record the reason for which a guest does not run; "" takes it back."""

    uuid: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Arrive:
    """Record that a guest runs where it was moved to."""

    uuid: str


@dataclasses.dataclass(frozen=True)
class Act:
    """Action upon a host that its row must allow still: its state and epoch, the lease of `term`, before `until`."""

    host: str
    state: str
    epoch: int
    term: int
    until: float

    @property
    def token(self) -> Token:
        """The token of the trip."""
        return Token(self.epoch, self.term)


@dataclasses.dataclass(frozen=True)
class Write(Act):
    """Replace the row of a host. `event` is the edge's, "" when only knowledge of it changes; `why` the evidence."""

    after: HostRow
    event: str = ""
    why: str = ""


@dataclasses.dataclass(frozen=True)
class Off(Act):
    """Have a fence agent switch a host off, and ask for its status after that."""


@dataclasses.dataclass(frozen=True)
class Place(Act):
    """Claim a place for a guest of the dead `host` on the first of `takers` with room, and record that it moved."""

    guest: Guest
    takers: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Start(Act):
    """Start a guest on `host`, where it is recorded; built from its image where its disk is gone."""

    guest: Guest


@dataclasses.dataclass(frozen=True)
class GiveUp(Act):
    """Remove from `host` what it has of guests that were recorded as moved."""

    guests: tuple[str, ...]


Action = t.Union[Hold, Tell, List, Arrive, Write, Off, Place, Start, GiveUp]
RISKY = (Off, Place, Start)  # what a disarmed watcher does not do


@dataclasses.dataclass(frozen=True)
class Recorded:
    """State of the ledger when an act is to be carried out; `guest` is the one that is placed or started."""

    lease: Lease | None
    row: HostRow
    wishes: Wishes
    armed: bool
    guest: Guest | None = None


def refusal(act: Act, recorded: Recorded, clock: Clock) -> str:
    """Return why `act` must not be carried out by what the ledger says now; "" when it may."""
    lease, row, guest = recorded.lease, recorded.row, recorded.guest
    if lease is None or not lease.is_held(clock) or lease.term != act.term:
        return f"{clock.controller} does not hold the lease of term {act.term} any more"
    if clock.now > act.until:
        return f"the order for {act.host} is {clock.now - act.until:.0f} s too old"
    if (row.state, row.epoch) != (act.state, act.epoch):
        return f"{row.host} is {row.state} in epoch {row.epoch}, and was {act.state} in epoch {act.epoch}"
    risky = isinstance(act, RISKY) or (isinstance(act, Write) and act.event == "evidence of two kinds")
    if risky and not (recorded.armed and recorded.wishes.armed):
        return f"healing of {act.host} is disarmed"
    if isinstance(act, Place) and (row.state not in states.PROVEN or row.proof is None or row.proof.epoch != row.epoch):
        return f"the death of {act.host} is not proven for epoch {row.epoch}"
    if isinstance(act, (Place, Start)) and (guest is None or guest.host != act.host):
        return f"guest {act.guest.uuid} is not recorded on {act.host} any more"
    return ""


def accepted(kept: Token | None, token: Token) -> bool:
    """Tell whether a host that keeps `kept` lets a trip with `token` start or remove guests.

    A host that was not told since its boot refuses all: the sender may have slept through its death.
    """
    return kept is not None and token.epoch >= kept.epoch and token.term >= kept.term


def newest(kept: Token | None, token: Token) -> Token:
    """Return what a host keeps after a look that tells `token`."""
    return token if kept is None else Token(max(kept.epoch, token.epoch), max(kept.term, token.term))
