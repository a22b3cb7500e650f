# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Simulated ledger and controllers, which carry out what the real decision says."""

from __future__ import annotations

import dataclasses
import typing as t

from tests.unit._healing.world import FRESH_S, Broken, World

ROUND_S, SOON_S, TIMEOUT_S, STANDBY_S = 10, 2, 4, 2
Lock = tuple[str, int]  # of a controller in one of its lives
PEERS = 2


class Ledger:
    """Rows with guarded writes. Its clock may be set wrong by `skew`."""

    def __init__(self, world: World, settings: t.Any, guests: t.Iterable[t.Any]) -> None:
        nouns = world.healing.nouns
        self.world, self.settings, self.skew = world, settings, 0.0
        self.lease: t.Any = None
        self.lock: Lock | None = None  # that the lease says its owner holds
        self.locks: set[Lock] = set()  # those that are held
        self.rows = {name: nouns.HostRow(name) for name in world.hosts}
        self.wishes = {name: nouns.Wishes(means=host.means) for name, host in world.hosts.items()}
        self.guests = {guest.uuid: guest for guest in guests}

    @property
    def now(self) -> float:
        return self.world.now + self.skew + 1_000_000

    def wish(self, host: str, **wishes: t.Any) -> None:
        self.wishes[host] = dataclasses.replace(self.wishes[host], **wishes)

    def owner_is_gone(self) -> bool:
        return self.lock is not None and self.lock not in self.locks

    def hold(self, owner: str, action: t.Any, lock: Lock) -> None:
        if self.lease == action.before and (
            self.lease is None
            or self.lease.owner != owner
            or self.lease.expires > self.now
            or action.after.term > self.lease.term
        ):
            lease = self.lease
            if lease is not None and action.after.term != lease.term and lease.expires > self.now:
                if not self.owner_is_gone():
                    raise Broken(f"{owner} takes the lease of {lease.owner}, which lives")
                self.world.say(f"{owner} takes the lease of {lease.owner}")
            self.lease, self.lock = action.after, lock if lock in self.locks else None

    def note_switches(self) -> None:
        """Do what a round does before its looks bring hosts the seconds of their dead-man's switches."""
        for name, row in self.rows.items():
            host = self.world.hosts[name]
            if "switch" in host.means:
                self.rows[name] = dataclasses.replace(row, switch_s=max(row.switch_s, host.switch_s))

    def holds(self, owner: str, term: int) -> bool:
        lease = self.lease
        return lease is not None and (lease.owner, lease.term) == (owner, term) and lease.expires > self.now

    def permits(self, owner: str, act: t.Any) -> bool:
        """Ask the real guard, in what is one transaction: nothing happens between it and the write."""
        guest = self.guests.get(act.guest.uuid) if hasattr(act, "guest") else None
        healing = self.world.healing
        recorded = healing.actions.Recorded(
            self.lease, self.rows[act.host], self.wishes[act.host], self.settings.armed, guest
        )
        refusal = healing.actions.refusal(act, recorded, healing.nouns.Clock(self.now, owner))
        if refusal:
            self.world.say(f"{owner} must not: {refusal}")
            return False
        row = self.rows[act.host]
        if not self.holds(owner, act.term):
            raise Broken(f"{owner} acts upon {act.host} without the lease")
        if (row.state, row.epoch) != (act.state, act.epoch):
            raise Broken(f"{owner} acts upon {act.host} as if it were {act.state} of epoch {act.epoch}")
        if not (self.settings.armed and self.wishes[act.host].armed) and type(act).__name__ in (
            "Off",
            "Place",
            "Start",
        ):
            raise Broken(f"{owner} acts upon {act.host}, which is disarmed")
        return True

    def write(self, owner: str, act: t.Any) -> bool:
        if not self.permits(owner, act):
            return False
        before, self.rows[act.host] = self.rows[act.host], act.after
        host = self.world.hosts[act.host]
        fell = self.world.now if host.silent_since is None else host.silent_since
        host.silent_since = fell if act.after.missed else None
        if act.event:
            self.world.say(
                f"{owner}: {act.host} {before.state} -> {act.after.state} (epoch {act.after.epoch}): {act.why}"
            )
            thawed = host.froze_in == host.boot and act.after.proof is not None and act.after.proof.kind == "switch"
            lives = host.alive and str(host.boot) == before.boot_id and host.bmc != "wrong" and not thawed
            if act.after.state == "fenced" and lives:
                raise Broken(f"{act.host} counts as dead, and lives: {act.why}")
            if (
                before.state == "suspect"
                and act.after.state in ("fencing", "fenced")
                and act.after.epoch <= before.epoch
            ):
                raise Broken(f"no epoch begins with the fencing of {act.host}")
            if act.after.state == "up" and host.guests.intersection(before.moved):
                raise Broken(f"{act.host} is up with guests that were moved")
        return True

    def room(self, host: str) -> int:
        """Free memory by what is recorded, as claims are."""
        held = sum(guest.memory_mb for guest in self.guests.values() if guest.host == host)
        return self.world.hosts[host].memory_mb - held

    def place(self, owner: str, act: t.Any) -> None:
        if not self.permits(owner, act):
            return
        row, guest = self.rows[act.host], self.guests[act.guest.uuid]
        if row.proof is None or row.proof.epoch != row.epoch:
            raise Broken(f"{guest.uuid} leaves {act.host} without a proof of epoch {row.epoch}")
        takers = [host for host in act.takers if self.room(host) >= guest.memory_mb]
        if not takers:
            self.guests[guest.uuid] = dataclasses.replace(guest, listed="no host has room")
            return
        taker = max(takers, key=lambda host: (self.room(host), host))
        self.world.say(f"{owner}: {guest.uuid} goes from {act.host} to {taker}")
        self.guests[guest.uuid] = dataclasses.replace(guest, host=taker, moving=True, listed="")
        self.rows[act.host] = dataclasses.replace(row, moved=(*row.moved, guest.uuid))


class Controller:
    """Watcher; `run` is its life in steps, which say how long they wait: there it may be stalled or killed."""

    def __init__(self, name: str, world: World, ledger: Ledger) -> None:
        self.name, self.world, self.ledger = name, world, ledger
        self.lives = 0
        self.stalled_until = 0.0
        self.dead = True

    # - its process

    def begin(self) -> None:
        self.ledger.locks.discard(self.lock)
        self.dead, self.lives = False, self.lives + 1
        self.ledger.locks.add(self.lock)
        self.fences: dict[str, t.Any] = {}
        self.silent: dict[str, float] = {}
        self.answered: dict[str, bool] = {}
        self._step(self.run(), self.lives)

    def kill(self) -> None:
        self.world.say(f"{self.name} is killed")
        self.dead = True
        self.ledger.locks.discard(self.lock)

    @property
    def lock(self) -> Lock:
        return self.name, self.lives

    def lose_lock(self, seconds: float) -> None:
        """Have the database end the session that holds the lock; after a while there is another one."""
        self.world.say(f"{self.name} loses its lock for {seconds:.0f} s")
        lock = self.lock
        self.ledger.locks.discard(lock)
        self.world.after(seconds, lambda: self.ledger.locks.add(lock) if lock == self.lock and not self.dead else None)

    def stall(self, seconds: float) -> None:
        self.world.say(f"{self.name} stalls for {seconds:.0f} s")
        self.stalled_until = self.world.now + seconds

    def _step(self, life: t.Iterator[float], number: int) -> None:
        if self.dead or number != self.lives:
            return
        if self.world.now < self.stalled_until:
            self.world.after(self.stalled_until - self.world.now, lambda: self._step(life, number))
            return
        self.world.after(next(life), lambda: self._step(life, number))

    # - its work

    def run(self) -> t.Iterator[float]:
        healing, ledger, world = self.world.healing, self.ledger, self.world
        while True:
            rows, wishes, guests, lease = (
                dict(ledger.rows),
                dict(ledger.wishes),
                tuple(ledger.guests.values()),
                ledger.lease,
            )
            began, begun_at = world.now, ledger.now
            gone = ledger.owner_is_gone()
            if gone or lease is None or not ledger.holds(self.name, lease.term):
                facts = healing.nouns.Facts(lease, {}, wishes, guests, owner_gone=gone)
                for action in healing.decide.decide(
                    facts, rows, healing.nouns.Clock(ledger.now, self.name), ledger.settings
                ):
                    yield from self.do_hold(action)
                watches = ledger.lease is not None and ledger.holds(self.name, ledger.lease.term)
                yield 0.1 if watches else STANDBY_S if ledger.lock else ROUND_S + world.random.uniform(-1, 1)
                continue
            looks: dict[str, t.Any] = {}
            ledger.note_switches()
            rows = dict(ledger.rows)
            for name, row in rows.items():
                at = begun_at + world.now - began
                looks[name] = self.look(name, at, healing.actions.Token(row.epoch, lease.term), row.reading)
            awaited = [name for name in looks if rows[name].state not in healing.states.PROVEN]
            yield world.sweep_s + (1 if all(looks[name].answered for name in awaited) else TIMEOUT_S)
            words, beats = self.ask_peers(looks, begun_at + world.now - began), self.read_beats()
            yield 0.2
            self.words, self.beats = words, beats
            facts = healing.nouns.Facts(lease, looks, wishes, guests, tuple(words), beats, dict(self.fences))
            clock = healing.nouns.Clock(ledger.now, self.name)
            busy = False
            for action in healing.decide.decide(facts, rows, clock, ledger.settings):
                yield 0.01
                kind = type(action).__name__
                busy = busy or kind in ("Off", "Place", "Start", "GiveUp") or bool(getattr(action, "event", ""))
                yield from getattr(self, f"do_{kind.lower()}")(action)
            yield SOON_S if busy else ROUND_S + world.random.uniform(-1, 1)

    def look(self, name: str, at: float, token: t.Any, reading: t.Any) -> t.Any:
        """Look by ssh. What is sent may come there, and its answer not."""
        world, host = self.world, self.world.hosts[name]
        if world.hears(self.name, name):
            host.kept = world.healing.actions.newest(host.kept, token)
            world.rearm(host, reading)
        self.answered[name] = world.talks(self.name, name) and host.alive
        if not self.answered[name]:
            since = self.silent.setdefault(name, world.now)
            return world.healing.nouns.Look(name, at, False, silent_ticks=world.now - since)
        self.silent.pop(name, None)
        host.answered_at = world.now
        left = max(0.0, (host.deadline or 0) - host.ticks(world.now))
        guests, running = (
            (frozenset(host.guests), frozenset(host.running)) if host.libvirt else (frozenset(), frozenset())
        )
        return world.healing.nouns.Look(
            name,
            at,
            True,
            str(host.boot),
            host.libvirt,
            host.stopping,
            left,
            guests,
            running,
            reading=world.healing.nouns.Reading(str(host.boot), host.ticks(world.now)),
        )

    def ask_peers(self, looks: t.Mapping[str, t.Any], at: float) -> list[t.Any]:
        names = sorted(looks)
        words = []
        for name in (name for name in names if not looks[name].answered):
            place = names.index(name)
            peers = [peer for peer in names[place + 1 :] + names[:place] if looks[peer].answered][:PEERS]
            words += [
                self.world.healing.nouns.PeerWord(name, peer, at, self.world.talks(peer, name))
                for peer in peers
                if self.world.talks(self.name, peer)
            ]
        return words

    def read_beats(self) -> dict[str, t.Any]:
        if not self.world.talks(self.name, "storage"):
            return {}
        return {
            name: self.world.healing.nouns.Heartbeat(name, self.ledger.now, self.world.now - host.beat_at)
            for name, host in self.world.hosts.items()
        }

    # - what it is told to do

    def do_hold(self, action: t.Any) -> t.Iterator[float]:
        self.ledger.hold(self.name, action, self.lock)
        yield 0

    def do_tell(self, action: t.Any) -> t.Iterator[float]:
        self.world.say(f"{self.name} says: {action.text}")
        yield 0

    def do_list(self, action: t.Any) -> t.Iterator[float]:
        self.ledger.guests[action.uuid] = dataclasses.replace(self.ledger.guests[action.uuid], listed=action.reason)
        yield 0

    def do_arrive(self, action: t.Any) -> t.Iterator[float]:
        self.ledger.guests[action.uuid] = dataclasses.replace(self.ledger.guests[action.uuid], moving=False)
        yield 0

    def do_write(self, action: t.Any) -> t.Iterator[float]:
        self.ledger.write(self.name, action)
        yield 0

    def do_off(self, action: t.Any) -> t.Iterator[float]:
        if not self.ledger.permits(self.name, action):
            return
        host = self.world.hosts[action.host]
        self.world.say(f"{self.name} has {action.host} switched off")
        if self.world.now - host.answered_at <= FRESH_S:
            raise Broken(f"{action.host} is fenced, and answered {self.world.now - host.answered_at:.0f} s ago")
        self.check_life(action.host)
        self.check_silence(action.host)
        said = self.world.off(action.host)
        yield 3
        answer = self.world.healing.nouns.FenceAnswer
        self.fences[action.host] = answer(
            action.host, action.epoch, self.ledger.now, said, self.world.status(action.host)
        )

    def check_life(self, name: str) -> None:
        """Check that more than silence was found of a host that is fenced, and nothing that speaks for it."""
        unreached = {word.peer for word in self.words if word.host == name and not word.reached}
        beating = [other for other, beat in self.beats.items() if beat.age_s <= self.ledger.settings.heartbeat_s]
        if len(unreached) < PEERS and not beating:
            raise Broken(f"{name} is fenced for its silence alone")
        if any(word.reached for word in self.words if word.host == name):
            raise Broken(f"{name} is fenced, and a peer reaches it")
        beat = self.beats.get(name)
        if beat is not None and beat.age_s <= self.ledger.settings.heartbeat_s:
            raise Broken(f"{name} is fenced, and its heart beats")
        if self.ledger.rows[name].stopping:
            raise Broken(f"{name} is fenced, and was shut down")

    def check_silence(self, name: str) -> None:
        """Check by what was looked at that hosts do not fall together, or all at once, before one is fenced."""
        began = self.world.hosts[name].silent_since or 0
        wonders = {
            other.name
            for other in self.world.hosts.values()
            if not other.left
            and not self.ledger.rows[other.name].stopping
            and not self.ledger.wishes[other.name].maintenance
            and other.silent_since is not None
            if not self.answered.get(other.name)
            if abs(other.silent_since - began) <= self.ledger.settings.window_s - 2 * ROUND_S
        }
        if len(wonders) > max(1, 0.2 * len(self.world.hosts)):
            raise Broken(f"{name} is fenced while {', '.join(sorted(wonders))} fell silent with it")
        if not any(self.answered.values()):
            raise Broken(f"{name} is fenced by a controller that sees nobody")

    def do_place(self, action: t.Any) -> t.Iterator[float]:
        self.ledger.place(self.name, action)
        yield 0

    def do_start(self, action: t.Any) -> t.Iterator[float]:
        if not self.ledger.permits(self.name, action):
            return
        yield 0.5  # on its way, where it may be late
        why_not = self.world.start(self.name, action.host, action.guest, action.token)
        guest = self.ledger.guests[action.guest.uuid]
        if why_not and guest.host == action.host:
            self.ledger.guests[guest.uuid] = dataclasses.replace(guest, listed=why_not)

    def do_giveup(self, action: t.Any) -> t.Iterator[float]:
        if self.ledger.permits(self.name, action):
            yield 0.5
            self.world.give_up(self.name, action.host, action.guests, action.token)
