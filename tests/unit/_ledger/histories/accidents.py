# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What happens to users and machines, and what they do by mistake: nothing of it is a run of novalite's."""

from __future__ import annotations

import pathlib
import random
import shutil
import typing as t

from tests.unit._ledger.histories.machines import Machine
from tests.unit._ledger.histories.world import Controller, World

SIX_HOURS = 6 * 3600
MOST_MACHINES = 5


class Drawn(t.NamedTuple):
    """An act: how it is told, and what it does."""

    words: str
    do: t.Callable[[], None]


class Accidents:
    """The accidents and mistakes that are possible in a world, as `rng` draws them."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world, self.rng = world, rng
        self.controller = rng.choice(world.controllers)

    def _who(self) -> str:
        return f"controller {self.world.controllers.index(self.controller)}"

    def put_back(self) -> Drawn | None:
        """A copy of the file is put in the ledger's place by hand."""
        if not self.world.copies:
            return None
        file = self.rng.choice(self.world.copies)
        words = f"put {pathlib.Path(file).name} in the ledger's place at {self._who()}"
        return self._mistake(words, lambda: self.world.replace_ledger(self.controller, file))

    def lose_ledger(self) -> Drawn:
        words = f"delete the ledger of {self._who()}"
        return self._mistake(words, lambda: self.world.replace_ledger(self.controller, None))

    # --- Mistakes with inventories and controllers ---

    def swap(self) -> Drawn | None:
        """Two hosts, or three in turn, change their names (or addresses, or leases)."""
        inventory = self.controller.inventory
        hosts = self.rng.sample(sorted(inventory), min(len(inventory), self.rng.choice((2, 2, 3))))
        if len(hosts) < 2:
            return None

        def do() -> None:
            numbers = [inventory[host] for host in hosts]
            inventory.update(zip(hosts, [*numbers[1:], numbers[0]]))

        return self._mistake(f"{' and '.join(hosts)} change places at {self._who()}", do)

    def alias(self) -> Drawn | None:
        """One machine gets a second name."""
        host = self.rng.choice(sorted(self.controller.inventory))
        name = f"{host}.example"
        if name in self.controller.inventory or len(self.controller.inventory) > 3:
            return None
        inventory = self.controller.inventory
        words = f"{host} is {name} as well at {self._who()}"
        return self._mistake(words, lambda: inventory.update({name: inventory[host]}))

    def mend_inventory(self) -> Drawn | None:
        """All is written as it was in the beginning."""
        inventory = {"hv1": 0, "hv2": 1, "hv3": 2}
        if self.controller.inventory == inventory:
            return None

        def do() -> None:
            self.controller.inventory = inventory

        return Drawn(f"the inventory of {self._who()} is put right", do)

    def clone(self) -> Drawn | None:
        """A machine is restored from a copy of another one's disk: as a new host, or in that one's place."""
        return self._instead("a clone", lambda former: self.world.new_machine(former))

    def new_hardware(self) -> Drawn | None:
        """A name is given to a new machine."""
        return self._instead("new hardware", lambda former: self.world.new_machine())

    def _instead(self, what: str, make: t.Callable[[Machine], Machine]) -> Drawn | None:
        inventory = self.controller.inventory
        if len(self.world.machines) >= MOST_MACHINES:
            return None
        host = self.rng.choice(sorted(inventory))
        name = "hv9" if self.rng.random() < 0.3 else host
        ends = name == host and self.rng.random() < 0.5

        def do() -> None:
            former = self.world.machines[inventory[host]]
            self.world.machines.append(make(former))
            inventory[name] = len(self.world.machines) - 1
            if ends:
                self.world.crash(former)

        words = f"{what} is {name}, for {host}" + (", which is switched off" if ends else "")
        return self._mistake(f"{words}, at {self._who()}", do)

    def _mistake(self, words: str, do: t.Callable[[], object]) -> Drawn:
        """What has no consequence before the next run."""

        def mistake() -> None:
            do()
            self.world.mistaken = True

        return Drawn(words, mistake)

    def copy_controller(self) -> Drawn | None:
        """Somebody copies the controller's home, while it may be in use, and goes on with both."""
        if len(self.world.controllers) > 1:
            return None
        home = self.world.directory / "b"

        def do() -> None:
            shutil.copytree(self.controller.home, home)
            self.world.controllers.append(Controller(str(home), dict(self.controller.inventory)))

        return self._mistake("a copy of the controller works, too", do)

    def share_ledger(self) -> Drawn | None:
        """A second controller with the same ledger, and another clock."""
        if len(self.world.controllers) > 1:
            return None
        offset = self.rng.choice((0, 0, SIX_HOURS, -SIX_HOURS))
        second = Controller(self.controller.home, dict(self.controller.inventory), offset)
        words = f"a second controller works with the ledger, its clock {offset} s off"
        return self._mistake(words, lambda: self.world.controllers.append(second))

    def set_clock(self) -> Drawn:
        offset = self.rng.choice((0, SIX_HOURS, -SIX_HOURS))

        def do() -> None:
            self.controller.offset = offset

        return self._mistake(f"the clock of {self._who()} is {offset} s off", do)

    # --- Accidents ---

    def power_off(self) -> Drawn | None:
        return self._to_machine("loses its power", lambda each: each.on, self.world.crash)

    def power_on(self) -> Drawn | None:
        return self._to_machine("boots", lambda each: not each.on, lambda machine: setattr(machine, "on", True))

    def silence(self) -> Drawn | None:
        """No more than one at a time: copies of a ledger that never meet on any host know nothing of each other."""
        if any(not each.reachable for each in self.world.machines):
            return None
        return self._to_machine("is silent", lambda _each: True, lambda machine: setattr(machine, "silent", True))

    def answer(self) -> Drawn | None:
        answers = "answers again"
        return self._to_machine(answers, lambda each: each.silent, lambda machine: setattr(machine, "silent", False))

    def _to_machine(
        self, words: str, which: t.Callable[[Machine], bool], do: t.Callable[[Machine], None]
    ) -> Drawn | None:
        numbers = [number for number, machine in enumerate(self.world.machines) if which(machine)]
        if not numbers:
            return None
        number = self.rng.choice(numbers)
        return Drawn(f"machine {number} {words}", lambda: do(self.world.machines[number]))

    def crash_guest(self) -> Drawn | None:
        running = {self.world.guests[each.uuid].name: each for _number, each in self.world.domains() if each.runs}
        if not running:
            return None
        domain = running[self.rng.choice(sorted(running))]

        def do() -> None:
            domain.state, domain.reason = "shutoff", "crashed"
            self.world.crashed.add(domain.uuid)

        return Drawn(f"guest {self.world.guests[domain.uuid].name} crashes", do)

    def wait(self) -> Drawn:
        seconds = self.rng.choice((30, 700, 700, 5000))

        def do() -> None:
            self.world.now += seconds

        return Drawn(f"{seconds} s pass", do)
