# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nouns of healing: what is known of hosts and guests in a round of watching, and what is recorded of them.

All times are seconds of the ledger's clock, unless their names say ticks: those are of the controller's monotonic one.
"""

from __future__ import annotations

import dataclasses
import typing as t

from . import states

AGENT, SWITCH, PERSON = "agent", "switch", "person"  # who proves a death
# disks: on one host, the same with a copy on another, files with locks on shared storage, shared LUNs
LOCAL, COPIED, LOCKED, BLOCK = "local", "copied", "locked", "block"
OFF, ON, UNKNOWN = "off", "on", "unknown"  # what a fence device says


@dataclasses.dataclass(frozen=True)
class Settings:
    """Numbers of the watch. `share` of the hosts may fall silent within `window_s`; `armed` is false for the cloud."""

    armed: bool = True
    missed: int = 3  # looks in turn without an answer
    fresh_s: float = 15  # facts and orders that are older are worth nothing
    window_s: float = 60
    window_looks: int = 6  # which is about the same, by no clock
    share: float = 0.2
    peers: int = 2
    heartbeat_s: float = 25  # two are missed, which are 10 s apart
    lease_s: float = 30
    attempt_every_s: float = 15
    margin_s: float = 15


@dataclasses.dataclass(frozen=True)
class Lease:
    """Right of one controller to act until `expires`; each change of the owner raises `term`."""

    owner: str
    expires: float
    term: int

    def is_held(self, clock: Clock) -> bool:
        """Tell whether it is that of the controller which asks, and has not expired."""
        return self.owner == clock.controller and self.expires > clock.now


@dataclasses.dataclass(frozen=True)
class Clock:
    """Time of the ledger, and the name of the controller that asks."""

    now: float
    controller: str


@dataclasses.dataclass(frozen=True)
class Proof:
    """Proof of the death of a host, of the epoch that began with its fencing."""

    kind: str
    epoch: int
    at: float
    words: str


@dataclasses.dataclass(frozen=True)
class Word:
    """Person's word that a host is dead. Each answer makes it void: it holds as long as `heard` is that of the row."""

    by: str
    heard: int


@dataclasses.dataclass(frozen=True)
class Wishes:
    """Wishes of people for a host; the watcher reads them alone. `means` are those of AGENT and SWITCH that it has."""

    armed: bool = True
    maintenance: bool = False
    means: tuple[str, ...] = ()
    confirmed: Word | None = None


@dataclasses.dataclass(frozen=True)
class Reading:
    """Reading of a host's own clock: seconds since the boot `boot_id`."""

    boot_id: str
    seconds: float


@dataclasses.dataclass(frozen=True)
class HostRow:
    """Health of a host as the ledger has it. `moved` are guests that were given to other hosts since it last was up."""

    host: str
    state: str = states.UP
    epoch: int = 0
    since: float = 0
    missed: int = 0
    missed_in_term: int = 0
    silent_since: float | None = None
    looked_at: float = 0  # of the look that was counted last
    answered_at: float = 0
    heard: int = 0  # how often it answered
    boot_id: str = ""
    stopping: bool = False  # the last answer told of a shutdown
    switch_armed: bool = False  # the last answer told of an armed dead-man's switch
    switch_s: float = 0  # seconds after the last answer, after which that switch has done its work, whatever came there
    reading: Reading | None = None  # of the last answer: from then on the next looks have the switch count
    attempts: int = 0
    attempted_at: float = 0
    proof: Proof | None = None
    moved: tuple[str, ...] = ()
    note: str = ""  # what was said of it last


@dataclasses.dataclass(frozen=True)
class Look:
    """Look at a host by ssh. `guests` are all that it has, `running` those whose QEMU runs.

    `silent_ticks` is how long the controller has had no answer from it, by its monotonic clock.
    """

    host: str
    at: float
    answered: bool
    boot_id: str = ""
    libvirt: bool = True
    stopping: bool = False
    switch_s: float = 0  # seconds until its dead-man's switch powers it off, 0 where that is not armed
    guests: frozenset[str] = frozenset()
    running: frozenset[str] = frozenset()
    silent_ticks: float = 0
    reading: Reading | None = None


@dataclasses.dataclass(frozen=True)
class PeerWord:
    """Answer of `peer`, whether it got anything from `host` by ICMP or port 22."""

    host: str
    peer: str
    at: float
    reached: bool


@dataclasses.dataclass(frozen=True)
class Heartbeat:
    """Age of a host's heartbeat file on shared storage, read `at`, both by the storage's clock."""

    host: str
    at: float
    age_s: float


@dataclasses.dataclass(frozen=True)
class FenceAnswer:
    """Answer of a fence agent: `off` was done, and what `status` said, which was asked after it."""

    host: str
    epoch: int
    at: float
    off: bool
    status: str


@dataclasses.dataclass(frozen=True)
class Guest:
    """Guest that shall run. `moving` says that its place on `host` is recorded, and that it was not started there yet.

    `listed` is the reason that is shown for its not running.
    """

    uuid: str
    host: str
    ha: bool = True
    priority: int = 0
    memory_mb: int = 0
    disk: str = LOCAL
    rebuild: bool = False
    moving: bool = False
    listed: str = ""


@dataclasses.dataclass(frozen=True)
class Facts:
    """Findings of one round of watching. `owner_gone`: the lease says that the processes of its owner hold a lock in
    the database, and that is free."""

    lease: Lease | None
    looks: t.Mapping[str, Look]
    wishes: t.Mapping[str, Wishes]
    guests: tuple[Guest, ...] = ()
    words: tuple[PeerWord, ...] = ()
    heartbeats: t.Mapping[str, Heartbeat] = dataclasses.field(default_factory=dict)
    fences: t.Mapping[str, FenceAnswer] = dataclasses.field(default_factory=dict)
    owner_gone: bool = False


@dataclasses.dataclass(frozen=True)
class Token:
    """Age of a trip that starts or removes guests: a host refuses one that is older than it has heard of."""

    epoch: int
    term: int
