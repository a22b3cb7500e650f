# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Simulated machines: hosts, their networks, fence devices and storage, with what is true of them.

It is the truth that a watcher cannot see. What must never be raises Broken, at the moment at which it happens.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import random
import typing as t

from tests.unit._healing import code

LOCK_S, BOOT_S = 90, 40
FRESH_S = 25


class Broken(AssertionError):
    """An invariant does not hold."""


@dataclasses.dataclass
class Host:
    """Hypervisor. `kept` is the token in its /run; `deadline` its dead-man's switch, in ticks of its own clock."""

    name: str
    memory_mb: int
    bmc: str = "good"  # gone, slow, deaf: says that it did, and tells the truth of the power, wrong: speaks of another
    means: tuple[str, ...] = ("agent",)
    powered: bool = True
    frozen: bool = False
    froze_in: int = 0  # the boot in which it last froze
    stopping: bool = False
    libvirt: bool = True
    boot: int = 1
    kept: t.Any = None
    guests: set[str] = dataclasses.field(default_factory=set)
    running: set[str] = dataclasses.field(default_factory=set)
    lost_locks: set[str] = dataclasses.field(default_factory=set)
    switch_works: bool = True
    switch_s: float = 60
    deadline: float | None = None
    ticks_before: float = 0
    ticking_since: float | None = 0
    apart_since: float | None = None  # from its storage
    answered_at: float = -1000
    silent_since: float | None = None  # as recorded, and for as long as it does not answer
    beat_at: float = 0
    left: str = ""  # "shutdown" after one that was seen, "" otherwise

    def ticks(self, now: float) -> float:
        return self.ticks_before + (0 if self.ticking_since is None else now - self.ticking_since)

    @property
    def alive(self) -> bool:
        return self.powered and not self.frozen


class World:
    """Hosts and what is between them, and the time."""

    def __init__(self, seed: int, hosts: t.Iterable[Host], healing: code.Code) -> None:
        self.random = random.Random(seed)
        self.healing = healing
        self.hosts = {host.name: host for host in hosts}
        self.now = 0.0
        self.sweep_s = 0.0  # that looks at all hosts take, where all answer
        self.cut: set[tuple[str, str]] = set()  # one way each; "storage" is a place
        self.disks: dict[str, str] = {}
        self.locks: dict[str, str] = {}
        self.queue: list[tuple[float, int, t.Callable[[], None]]] = []
        self.number = itertools.count()
        self.journal: list[str] = []

    def say(self, text: str) -> None:
        self.journal.append(f"{self.now:7.1f} {text}")

    def after(self, seconds: float, happens: t.Callable[[], None]) -> None:
        heapq.heappush(self.queue, (self.now + seconds, next(self.number), happens))

    def run(self, until: float) -> None:
        while self.queue and self.queue[0][0] <= until:
            self.now, _number, happens = heapq.heappop(self.queue)
            happens()
        self.now = until

    # - networks

    def hears(self, source: str, target: str) -> bool:
        """Tell whether what `source` sends comes to `target`, and there is somebody."""
        there = self.hosts.get(target)
        return (source, target) not in self.cut and (there is None or there.alive)

    def talks(self, source: str, target: str) -> bool:
        return self.hears(source, target) and (target, source) not in self.cut

    def sever(self, *ways: tuple[str, str]) -> None:
        self.cut.update(ways)
        self.storage_changed()

    def mend(self, *ways: tuple[str, str]) -> None:
        self.cut.difference_update(ways)
        self.storage_changed()

    # - storage

    def storage_changed(self) -> None:
        for host in self.hosts.values():
            apart = not host.alive or ("storage", host.name) in self.cut or (host.name, "storage") in self.cut
            if not apart and host.apart_since is not None and self.now - host.apart_since >= LOCK_S:
                self.lapse(host, [guest for guest, holder in self.locks.items() if holder == host.name])
            host.apart_since = (self.now if host.apart_since is None else host.apart_since) if apart else None
        self.check_writers()

    def lapse(self, host: Host, guests: t.Iterable[str]) -> None:
        for guest in list(guests):
            del self.locks[guest]
            if guest in host.running:
                host.lost_locks.add(guest)

    def lock(self, host: Host, guest: str) -> bool:
        """Take the lock of a disk on shared files; another's lapses when its holder was apart for long enough."""
        holder = self.locks.get(guest)
        if host.apart_since is not None:
            return False
        if holder is not None and holder != host.name:
            apart = self.hosts[holder].apart_since
            if apart is None or self.now - apart < LOCK_S:
                return False
            self.lapse(self.hosts[holder], [guest])
        self.locks[guest] = host.name
        return True

    def beat(self, host: Host) -> None:
        if host.alive and host.apart_since is None:
            host.beat_at = self.now
        self.after(10, lambda: self.beat(host))

    def writers(self, guest: str) -> list[str]:
        return [
            host.name
            for host in self.hosts.values()
            if host.powered and guest in host.running and guest not in host.lost_locks
        ]

    def check_writers(self) -> None:
        for guest in self.disks:
            if len(writers := self.writers(guest)) > 1:
                raise Broken(f"{guest} is open for writing on {' and '.join(writers)}")

    # - what becomes of hosts

    def _tick(self, host: Host) -> None:
        host.ticks_before = host.ticks(self.now)
        host.ticking_since = self.now if host.alive else None

    def die(self, name: str, why: str = "dies") -> None:
        host = self.hosts[name]
        if not host.powered:
            return
        self.say(f"{name} {why}")
        host.powered, host.frozen, host.stopping, host.kept, host.deadline = False, False, False, None, None
        host.running.clear()
        host.lost_locks.clear()
        self._tick(host)
        self.storage_changed()

    def boot(self, name: str) -> None:
        host = self.hosts[name]
        if host.powered:
            return
        self.say(f"{name} boots")
        host.powered, host.libvirt, host.left, host.boot = True, True, "", host.boot + 1
        if self.random.random() < 0.3:  # its libvirt takes longer than its sshd
            host.libvirt = False
            self.after(30, lambda: setattr(host, "libvirt", True))
        self._tick(host)
        self.storage_changed()

    def freeze(self, name: str) -> None:
        if self.hosts[name].alive:
            self.say(f"{name} freezes")
            self.hosts[name].frozen = True
            self.hosts[name].froze_in = self.hosts[name].boot
            self._tick(self.hosts[name])
            self.storage_changed()

    def thaw(self, name: str) -> None:
        host = self.hosts[name]
        if host.powered and host.frozen:
            self.say(f"{name} thaws")
            host.frozen = False
            self._tick(host)
            self.storage_changed()
            self.check_switch(host)

    def shut_down(self, name: str, takes: float = 25, then: t.Callable[[], None] | None = None) -> None:
        """Shut a host down as a person would: for a while it answers, and says so. Its guests end with it."""
        host = self.hosts[name]
        if not host.alive or host.stopping:
            return
        self.say(f"{name} shuts down")
        host.stopping, host.left, boot = True, "shutdown", host.boot

        def ends() -> None:
            if host.powered and host.boot == boot:
                self.die(name, "is off")
                if then:
                    then()

        self.after(takes, ends)

    def rearm(self, host: Host, reading: t.Any) -> None:
        """Set the dead-man's switch by a reading of the host's own clock in this boot: a late order sets nothing."""
        if (
            "switch" not in host.means
            or reading is None
            or host.stopping
            or reading.boot_id != str(host.boot)
            or not host.switch_works
        ):
            return
        deadline = reading.seconds + host.switch_s
        if host.deadline is None and deadline - host.ticks(self.now) < 2 * host.switch_s / 3:
            return  # it is looked at too seldom
        host.deadline = max(host.deadline or 0, deadline)
        self.check_switch(host)

    def check_switch(self, host: Host) -> None:
        if host.deadline is None or not host.alive:
            return
        left = host.deadline - host.ticks(self.now)
        if left <= 0:
            self.die(host.name, "is reset by its switch")
            self.after(BOOT_S, lambda: self.boot(host.name))
        else:
            deadline = host.deadline
            self.after(left + 0.01, lambda: self.check_switch(host) if host.deadline == deadline else None)

    # - fence devices

    def off(self, name: str) -> bool:
        """Do what a fence agent is asked to, and return what it says."""
        host = self.hosts[name]
        if host.bmc == "gone":
            return False
        if host.bmc == "slow":
            self.after(self.random.uniform(5, 40), lambda: self.die(name, "is fenced, late"))
        elif host.bmc == "good":
            self.die(name, "is fenced")
        return True

    def status(self, name: str) -> str:
        host = self.hosts[name]
        if host.bmc == "gone":
            return "unknown"
        return "off" if host.bmc == "wrong" or not host.powered else "on"

    # - trips

    def start(self, sender: str, name: str, guest: t.Any, token: t.Any) -> str:
        """Start a guest by a trip, and return what keeps it from running, "" if it does."""
        host = self.hosts[name]
        if not self.talks(sender, name) or not host.libvirt:
            return f"{name} does not answer"
        fits = host.kept is not None and token.epoch >= host.kept.epoch and token.term >= host.kept.term
        if fits != self.healing.actions.accepted(host.kept, token):
            raise Broken(f"{name} takes {token} for {host.kept}")
        if not fits:
            self.say(f"{name} refuses {guest.uuid}: {token} is older than {host.kept}")
            return f"{name} refuses {token}"
        if guest.uuid in host.running:
            return ""
        if guest.disk == "locked" and not self.lock(host, guest.uuid):
            return "its image is locked"
        self.say(f"{name} starts {guest.uuid}")
        host.guests.add(guest.uuid)
        host.running.add(guest.uuid)
        host.lost_locks.discard(guest.uuid)
        self.check_writers()
        return ""

    def give_up(self, sender: str, name: str, guests: t.Iterable[str], token: t.Any) -> None:
        host = self.hosts[name]
        if self.talks(sender, name) and host.libvirt and self.healing.actions.accepted(host.kept, token):
            for guest in guests:
                self.say(f"{name} gives up {guest}")
                host.guests.discard(guest)
                host.running.discard(guest)
                host.lost_locks.discard(guest)
                if self.locks.get(guest) == name:
                    del self.locks[guest]
