# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stories: a simulated cloud, what happens to it by a seed, and what must be true in the end."""

from __future__ import annotations

import random
import typing as t

from tests.unit._healing import code
from tests.unit._healing.watchers import Controller, Ledger
from tests.unit._healing.world import BOOT_S, Broken, Host, World

TROUBLE_S, CALM_S = 240, 400


class Story:
    """Cloud with its ledger and two controllers."""

    def __init__(
        self,
        hosts: t.Sequence[Host],
        guests: t.Iterable[t.Any],
        healing: code.Code = code.REAL,
        seed: int = 0,
        controllers: int = 2,
        **settings: t.Any,
    ) -> None:
        self.world = World(seed, hosts, healing)
        self.ledger = Ledger(self.world, healing.nouns.Settings(**settings), guests)
        for guest in self.ledger.guests.values():
            host = self.world.hosts[guest.host]
            host.guests.add(guest.uuid)
            host.running.add(guest.uuid)
            self.world.disks[guest.uuid] = guest.disk
            if guest.disk == "locked":
                self.world.locks[guest.uuid] = host.name
        for host in hosts:
            self.world.beat(host)
        self.controllers = [Controller(f"c{number}", self.world, self.ledger) for number in range(controllers)]
        for number, controller in enumerate(self.controllers):
            self.world.after(number * 3, controller.begin)

    def run(self, seconds: float) -> Story:
        self.world.run(self.world.now + seconds)
        return self

    def running(self, guest: str) -> list[str]:
        return [name for name, host in self.world.hosts.items() if host.alive and guest in host.running]

    def state(self, host: str) -> str:
        return str(self.ledger.rows[host].state)

    # - what people do

    def confirm_dead(self, name: str) -> None:
        """Say that a host is dead, as a person does who stands before it: of one that is off."""
        if not self.world.hosts[name].powered:
            self.world.say(f"a person confirms the death of {name}")
            self.ledger.wish(name, confirmed=self.world.healing.nouns.Word("ada", self.ledger.rows[name].heard))

    # - the end

    def check_end(self) -> None:
        """Check that each guest with `ha` runs on one host, or is listed with a reason that is true."""
        for guest in self.ledger.guests.values():
            if not guest.ha:
                continue
            where = self.running(guest.uuid)
            if len(where) > 1 or (where and where != [guest.host]):
                raise Broken(f"{guest.uuid} runs on {where}, and is recorded on {guest.host}")
            if not where and not guest.listed:
                raise Broken(f"{guest.uuid} neither runs nor is listed; {guest.host} is {self.state(guest.host)}")
            if not where and not self.is_true(guest):
                raise Broken(f"{guest.uuid} does not run on {guest.host}, and it is not so that {guest.listed!r}")

    def is_true(self, guest: t.Any) -> bool:
        """Tell whether the reason that is listed for a guest is one, in what has become of the cloud."""
        host, row = self.world.hosts[guest.host], self.ledger.rows[guest.host]
        wishes = self.ledger.wishes[guest.host]
        provable = "agent" in host.means and host.bmc in ("good", "slow")
        fell = sum(row.silent_since is not None for row in self.ledger.rows.values())
        reasons = {
            "has room": all(
                self.ledger.room(name) < guest.memory_mb
                for name, other in self.world.hosts.items()
                if self.state(name) == "up"
                and other.alive
                and not other.left
                and not self.ledger.wishes[name].maintenance
            ),
            "was shut down": row.stopping and not host.alive,  # and nobody saw it alive since
            "is in maintenance": wishes.maintenance,
            "is disarmed": not wishes.armed or not self.ledger.settings.armed,
            "is not proven": not provable and not host.alive,
            "can switch it off": not host.means and not host.alive,
            "nobody is fenced": fell > 1 and not host.alive,
            "no proof of its death": not host.alive and sum(other.alive for other in self.world.hosts.values()) < 3,
            "its disk is on": guest.disk == "local" and not guest.rebuild,
            "proves nothing": guest.disk != "locked" and row.proof is not None and row.proof.kind == "switch",
            "image is locked": any(other.bmc == "wrong" for other in self.world.hosts.values()),
        }
        return any(true and text in guest.listed for text, true in reasons.items())


def by_chance(seed: int, healing: code.Code = code.REAL) -> Story:
    """Make a cloud of a seed, and trouble for it."""
    chance = random.Random(seed)
    hosts = [Host(f"h{number}", 16) for number in range(chance.choice((1, 2, 3, 4, 5, 5, 6, 8, 12)))]
    for number, host in enumerate(hosts):
        host.switch_s = (60, 120)[number % 2]
        host.means = chance.choice((("agent",), ("agent",), ("agent",), ("agent", "switch"), ("switch",), ()))
        host.switch_works = chance.random() < 0.8
        host.bmc = chance.choices(("good", "gone", "slow", "deaf", "wrong"), (12, 1, 2, 1, 1))[0]
    guests = []
    for number in range(len(hosts) * 2):
        host = hosts[number % len(hosts)]
        disk = (
            "locked" if host.bmc == "wrong" or "switch" in host.means else chance.choice(("local", "locked", "block"))
        )
        if "switch" in host.means and host.bmc != "wrong":
            disk = chance.choice(("locked", "locked", "block", "local"))
        guests.append(
            healing.nouns.Guest(
                uuid=f"g{number}",
                host=host.name,
                ha=chance.random() < 0.85,
                priority=chance.randrange(3),
                memory_mb=chance.choice((1, 2, 4)),
                disk=disk,
                rebuild=chance.random() < 0.7,
            )
        )
    if any(host.bmc == "wrong" for host in hosts):  # a device that speaks of another host is outdone by locks alone
        guests = [guest for guest in guests if guest.disk == "locked"]
    sweep = (0, 0, 0, 20)[seed % 4]  # as of many hosts, which what is found and the lease outlast
    story = Story(hosts, guests, healing, seed, fresh_s=15 + sweep, lease_s=30 + sweep)
    story.world.sweep_s = sweep
    for trouble in chance.choices(TROUBLES, k=chance.choice((1, 1, 2, 3, 5, 8))):
        _strike(story, chance, trouble, chance.uniform(40, TROUBLE_S))
    story.world.after(TROUBLE_S + 60, lambda: _calm(story, chance))
    return story


def play(seed: int, healing: code.Code = code.REAL) -> Story:
    """Play the story of a seed to its end; Broken says what was wrong."""
    story = by_chance(seed, healing)
    try:
        story.run(TROUBLE_S + CALM_S + 10 * story.world.sweep_s)
        story.check_end()
    except Exception as error:
        if not isinstance(error, Broken):
            error = Broken(f"the decision fails: {error!r}")
        raise Broken("\n".join([f"seed {seed}: {error}", *story.world.journal])) from error
    return story


Trouble = t.Callable[[Story, random.Random], None]


def _strike(story: Story, chance: random.Random, trouble: Trouble, seconds: float) -> None:
    story.world.after(seconds, lambda: trouble(story, chance))


def _some(story: Story, chance: random.Random) -> str:
    return chance.choice(sorted(story.world.hosts))


def _dies(story: Story, chance: random.Random) -> None:
    name = _some(story, chance)
    story.world.die(name)
    if chance.random() < 0.4:
        back = chance.choice((12, 25, 60, 120))
        story.world.after(back, lambda: story.world.boot(name))
    elif chance.random() < 0.4:
        story.world.after(chance.uniform(30, 90), lambda: story.confirm_dead(name))


def _power_goes(story: Story, chance: random.Random) -> None:
    """Kill a host, and its fence device with it."""
    name = _some(story, chance)
    story.world.hosts[name].bmc = "gone"
    story.world.die(name, "dies with its fence device")
    if chance.random() < 0.5:
        story.world.after(chance.uniform(30, 120), lambda: story.confirm_dead(name))


def _switched(story: Story, chance: random.Random) -> str:
    """Choose a host with a dead-man's switch, if there is one."""
    names = [name for name, host in sorted(story.world.hosts.items()) if "switch" in host.means]
    return chance.choice(names) if names else _some(story, chance)


def _freezes(story: Story, chance: random.Random) -> None:
    name = _switched(story, chance) if chance.random() < 0.5 else _some(story, chance)
    story.world.freeze(name)
    story.world.after(chance.choice((15, 60, 150, 200)), lambda: story.world.thaw(name))


def _shuts_down(story: Story, chance: random.Random) -> None:
    name = _some(story, chance)
    boots = chance.random() < 0.5
    then = (lambda: story.world.after(BOOT_S, lambda: story.world.boot(name))) if boots else None
    story.world.shut_down(name, chance.uniform(20, 40), then)


def _cut(story: Story, chance: random.Random, *ways: tuple[str, str]) -> None:
    story.world.say(f"cut: {', '.join('>'.join(way) for way in ways[:6])}{' ...' * (len(ways) > 6)}")
    story.world.sever(*ways)

    def mended() -> None:
        story.world.say("a cut is mended")
        story.world.mend(*ways)

    story.world.after(chance.choice((15, 40, 100, 200)), mended)


def _is_cut_off(story: Story, chance: random.Random) -> None:
    """Cut a host off from some or all, in one direction or both."""
    name = _some(story, chance)
    places = [*(controller.name for controller in story.controllers), *story.world.hosts, "storage"]
    if chance.random() < 0.5:
        places = chance.sample(places, chance.randint(1, len(places)))
    ways = [(place, name) for place in places] + [(name, place) for place in places]
    kind = chance.choice(("both", "to", "from"))
    _cut(story, chance, *(way for way in ways if kind == "both" or way[kind == "to"] == name))


def _controller_is_cut_off(story: Story, chance: random.Random) -> None:
    name = chance.choice(story.controllers).name
    hosts = sorted(story.world.hosts)
    if chance.random() < 0.5:
        hosts = chance.sample(hosts, chance.randint(1, len(hosts)))
    _cut(story, chance, *((name, host) for host in hosts))


def _cut_off_whole(story: Story, chance: random.Random, name: str) -> None:
    places = [*(controller.name for controller in story.controllers), *story.world.hosts, "storage"]
    _cut(story, chance, *((place, name) for place in places), *((name, place) for place in places))


def _clock_jumps_in_a_cut(story: Story, chance: random.Random) -> None:
    _cut_off_whole(story, chance, _switched(story, chance))
    story.world.after(chance.uniform(20, 60), lambda: _clock_jumps(story, chance))


def _comes_back_and_is_cut_off(story: Story, chance: random.Random) -> None:
    """Kill a host, have a person say so, boot it, and cut it off while it lives."""
    name = _some(story, chance)
    story.world.die(name)
    back = chance.uniform(40, 100)
    if chance.random() < 0.7:
        story.world.after(back - 5, lambda: story.confirm_dead(name))
    story.world.after(back, lambda: story.world.boot(name))
    story.world.after(back + chance.uniform(5, 40), lambda: _cut_off_whole(story, chance, name))


def _switch_reboots(story: Story, chance: random.Random) -> None:
    """Silence all hosts and controllers for each other."""
    places = [*(controller.name for controller in story.controllers), *story.world.hosts]
    _cut(story, chance, *((place, other) for place in places for other in places if place != other))


def _storage_goes(story: Story, chance: random.Random) -> None:
    _cut(story, chance, *(("storage", host) for host in story.world.hosts))


def _controller_is_killed(story: Story, chance: random.Random) -> None:
    controller = chance.choice(story.controllers)
    controller.kill()
    story.world.after(chance.uniform(1, 60), controller.begin)


def _controller_stalls(story: Story, chance: random.Random) -> None:
    chance.choice(story.controllers).stall(chance.choice((5, 20, 35, 60, 120)))


def _lock_ends(story: Story, chance: random.Random) -> None:
    """End the sessions by which controllers hold their locks: of one, or as a database does that restarts."""
    for controller in chance.choice((story.controllers, [chance.choice(story.controllers)])):
        controller.lose_lock(chance.choice((1, 10, 60)))
        if chance.random() < 0.3:
            controller.stall(chance.choice((5, 20)))


def _clock_jumps(story: Story, chance: random.Random) -> None:
    story.ledger.skew += chance.choice((-60, -20, 20, 60, 300))
    story.world.say(f"the ledger's clock is {story.ledger.skew:.0f} s wrong")


def _libvirt_dies(story: Story, chance: random.Random) -> None:
    host = story.world.hosts[_some(story, chance)]
    host.libvirt = False
    story.world.say(f"libvirt of {host.name} dies")


def _maintenance(story: Story, chance: random.Random) -> None:
    name = _some(story, chance)
    story.world.say(f"{name} goes into maintenance")
    story.ledger.wish(name, maintenance=True)
    story.world.after(chance.uniform(5, 40), lambda: story.world.die(name, "is taken out"))


def _disarm(story: Story, chance: random.Random) -> None:
    name = _some(story, chance)
    story.world.say(f"{name} is disarmed")
    story.ledger.wish(name, armed=False)
    if chance.random() < 0.7:
        story.world.after(chance.uniform(20, 100), lambda: story.ledger.wish(name, armed=True))


def _fails_late(story: Story, chance: random.Random) -> None:
    """Kill a host, and give the controllers bad moments while it is healed."""
    _dies(story, chance)
    for _ in range(chance.randint(1, 6)):
        trouble = chance.choice((_controller_is_killed, _controller_stalls, _controller_stalls, _dies, _lock_ends))
        _strike(story, chance, trouble, chance.uniform(20, 90))


TROUBLES: tuple[Trouble, ...] = (
    _dies,
    _dies,
    _power_goes,
    _freezes,
    _freezes,
    _shuts_down,
    _is_cut_off,
    _is_cut_off,
    _controller_is_cut_off,
    _clock_jumps_in_a_cut,
    _comes_back_and_is_cut_off,
    _comes_back_and_is_cut_off,
    _switch_reboots,
    _storage_goes,
    _controller_is_killed,
    _controller_stalls,
    _lock_ends,
    _clock_jumps,
    _libvirt_dies,
    _maintenance,
    _disarm,
    _fails_late,
    _fails_late,
)


def _calm(story: Story, chance: random.Random) -> None:
    """End the trouble: what was cut is mended, who was frozen thaws, some of the dead come back."""
    story.world.say("it is calm from now on")
    story.world.mend(*story.world.cut)
    for name, host in story.world.hosts.items():
        story.world.thaw(name)
        host.libvirt = True
        if not host.powered and chance.random() < 0.4:
            story.world.boot(name)
    for controller in story.controllers:
        if controller.dead:
            controller.begin()
