# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What users do: runs of playbooks. Each act is drawn with all that belongs to it; accidents are drawn as well."""

from __future__ import annotations

import pathlib
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from tests.unit._ledger.histories import moves
from tests.unit._ledger.histories.accidents import Accidents, Drawn
from tests.unit._ledger.histories.runs import Cut, Run, Unreachable
from tests.unit._ledger.histories.things import StepFailed

Work = t.Callable[[Run], object]


class Acts(Accidents):
    """The acts that are possible in a world, as `rng` draws them."""

    def draw(self) -> Drawn:
        """Draw an act; who is told what to do next mostly does it."""
        names, weights = zip(*{**WEIGHTS, **self._advice()}.items())
        while True:
            (name,) = self.rng.choices(names, weights)
            drawn = getattr(self, name)()
            if drawn is not None:
                return t.cast(Drawn, drawn)

    def _advice(self) -> dict[str, int]:
        words_of_run = " ".join(self.world.output)
        acts = {"ledger_rebuild.yml": "rebuild", "in the inventory": "mend_inventory", "does not answer": "answer"}
        after = {"reconcile": 90, "launch": 20, "migrate": 20, "evacuate": 20} if self.world.mistaken else {}
        return {**after, **{act: 40 for words, act in acts.items() if words in words_of_run}}

    # --- Runs ---

    def _run(self, words: str, work: Work, disturbed: bool = True) -> Drawn:
        """A run of this controller; perhaps it is killed, or another one comes in between."""
        cut = self.rng.randint(2, 16) if disturbed and self.rng.random() < 0.15 else None
        beside, at = None, self.rng.randint(2, 12)
        if disturbed and self.rng.random() < 0.12:
            beside = Acts(self.world, self.rng)._beside()
        words = f"{words} by {self._who()}"
        words += f", cut off at step {cut}" if cut else ""
        words += f", at step {at}: {beside.words}" if beside else ""

        def do() -> None:
            before = set(self.world.guests)
            self.world.output, self.world.mistaken = [], False
            try:
                work(Run(self.world, self.controller, cut, beside and beside.do, at))
            except Cut:
                self.world.not_told(before)
            except (NovaliteError, StepFailed, Unreachable) as error:
                self.world.output.append(str(error))

        return Drawn(words, do)

    def _beside(self) -> Drawn:
        choices = (self.reconcile, self.launch, self.terminate, self.power_off, self.silence, self.stop)
        while True:
            choice = self.rng.choice(choices)
            drawn = choice(disturbed=False) if choice in choices[:3] or choice == self.stop else choice()
            if drawn is not None:
                return drawn

    def _guest(self, among: t.Collection[str] | None = None) -> tuple[str, list[str]] | None:
        """A guest's name, and all that its user may mean by it."""
        names = sorted(self.world.guests[uuid].name for uuid in self.world.established("terminate"))
        names = [name for name in names if among is None or name in among]
        if not names:
            return None
        name = self.rng.choice(names)
        return name, [uuid for uuid, guest in self.world.guests.items() if guest.name == name]

    def launch(self, disturbed: bool = True) -> Drawn | None:
        if len(self.world.established("terminate")) > 7:
            return None
        first = len(self.world.guests) + 1
        names = [f"g{first + each}" for each in range(self.rng.choice((1, 1, 2)))]
        broken = self.rng.choice(self.world.machines) if self.rng.random() < 0.15 else None
        step = self.rng.choice(("disk", "bridge", "firewall", "domain"))

        def work(run: Run) -> None:
            if broken is not None:
                broken.breaks_at = step
            try:
                run.launch(names)
            finally:
                for machine in self.world.machines:
                    machine.breaks_at = None

        words = f"launch {', '.join(names)}" + (f", {step} fails somewhere" if broken else "")
        return self._run(words, work, disturbed)

    def terminate(self, disturbed: bool = True) -> Drawn | None:
        return self._of_guest("terminate", lambda run, name: run.terminate(servers=[{"name": name}]), disturbed)

    def stop(self, disturbed: bool = True) -> Drawn | None:
        return self._of_guest("stop", lambda run, name: run.power("stop", name), disturbed)

    def start(self) -> Drawn | None:
        return self._of_guest("start", lambda run, name: run.power("start", name))

    def reboot(self) -> Drawn | None:
        return self._of_guest("reboot", lambda run, name: run.power("reboot", name))

    def migrate(self) -> Drawn | None:
        return self._of_guest("migrate", lambda run, name: self._cold(run, "migrate", name))

    def _cold(self, run: Run, action: str, name: str, **asked: t.Any) -> None:
        self.world.waiting.add(name)
        moves.cold(run, action, servers=[{"name": name}], **asked)

    def resize(self) -> Drawn | None:
        flavor = self.rng.choice(("m1.tiny", "m1.nano"))
        where = self.rng.choice(("allowed", "never", "only"))
        asked: t.Any = {"flavor": flavor, "same_host": where}
        return self._of_guest("resize", lambda run, name: self._cold(run, "resize", name, **asked))

    def live_migrate(self) -> Drawn | None:
        return self._of_guest("live-migrate", lambda run, name: moves.live(run, servers=[{"name": name}]))

    def confirm(self) -> Drawn | None:
        return self._of_guest("confirm", moves.confirm, among=self.world.waiting)

    def revert(self) -> Drawn | None:
        return self._of_guest("revertResize", moves.revert, among=self.world.waiting)

    def _of_guest(
        self,
        word: str,
        work: t.Callable[[Run, str], object],
        disturbed: bool = True,
        among: t.Collection[str] | None = None,
    ) -> Drawn | None:
        chosen = self._guest(among)
        if chosen is None:
            return None
        name, uuids = chosen

        def named(run: Run) -> None:
            self.world.name(word, uuids)
            work(run, name)

        return self._run(f"{word} {name}", named, disturbed)

    def evacuate(self) -> Drawn | None:
        """All of a host that does not answer."""
        inventory = self.controller.inventory
        dead = [host for host, number in inventory.items() if not self.world.machines[number].reachable]
        if not dead:
            return None
        host = self.rng.choice(dead)
        machine = self.world.machines[inventory[host]]

        def work(run: Run) -> None:
            self.world.now += 120  # it has been silent for a while
            self.world.name("evacuate", {*machine.domains, *machine.disks} & self.world.guests.keys())
            moves.evacuate(run, from_host=host)

        return self._run(f"evacuate {host}", work)

    def reconcile(self, disturbed: bool = True) -> Drawn:
        hosts = sorted(self.controller.inventory)
        limit = self.rng.sample(hosts, 1) if self.rng.random() < 0.15 else None
        accept = self.rng.sample(hosts, 1) if self.rng.random() < 0.1 else []
        words = "reconcile" + (f" --limit {limit[0]}" if limit else "") + (f" -e accept={accept[0]}" if accept else "")

        def work(run: Run) -> None:
            rows = run.reconcile(limit, accept)
            self.world.output += [f"{row['host']}: {row['failed']}" for row in rows if "failed" in row]

        return self._run(words, work, disturbed)

    def compute_nodes(self) -> Drawn:
        """Of a host with another machine the user may say that it was replaced."""
        replaced = [host for host, number in self.controller.inventory.items() if number > 2]
        if self.rng.random() < 0.5:
            replaced = []
        words = "compute_nodes" + (f" -e replaced={','.join(replaced)}" if replaced else "")
        return self._run(words, lambda run: run.compute_nodes(replaced))

    # --- Copies of the ledger ---

    def _file(self) -> str:
        return str(self.world.directory / f"copy-{len(self.world.copies)}")

    def back_up(self) -> Drawn:
        file = self._file()

        def work(run: Run) -> None:
            run.copy_ledger(file)
            self.world.copies.append(file)

        return self._run("back up the ledger", work, disturbed=False)

    def restore(self) -> Drawn | None:
        if not self.world.copies:
            return None
        file = self.rng.choice(self.world.copies)
        return self._run(f"restore {pathlib.Path(file).name}", lambda run: run.restore_ledger(file), disturbed=False)

    def rebuild(self) -> Drawn:
        """Make the ledger again; of hosts that do not answer the user may say that they are gone for good."""
        partial = self.rng.random() < 0.2

        def work(run: Run) -> None:
            if partial:
                for number in self.controller.inventory.values():
                    if not self.world.machines[number].reachable:
                        self.world.give_up(self.world.machines[number])
            run.rebuild_ledger(partial)

        return self._run("rebuild the ledger" + (", partial" if partial else ""), work)

    # --- Hosts' names ---

    def rename(self) -> Drawn | None:
        """A host gets another name; perhaps the ledger is told."""
        host = self.rng.choice(sorted(self.controller.inventory))
        name, inventory = f"new-{host}", self.controller.inventory
        if name in inventory or host.startswith("new-"):
            return None
        words = f"{host} is called {name}"
        renamed = self._mistake(f"{words} at {self._who()}", lambda: inventory.update({name: inventory.pop(host)}))
        if self.rng.random() < 0.4:
            return renamed

        def work(run: Run) -> None:
            renamed.do()
            run.rename(host, name)

        return self._run(f"{words}, and renamed", work)


WEIGHTS = {
    "launch": 8,
    "terminate": 6,
    "stop": 3,
    "start": 2,
    "reboot": 1,
    "migrate": 5,
    "resize": 5,
    "live_migrate": 5,
    "confirm": 4,
    "revert": 4,
    "evacuate": 6,
    "reconcile": 26,
    "compute_nodes": 3,
    "back_up": 3,
    "restore": 3,
    "put_back": 4,
    "lose_ledger": 1,
    "rebuild": 5,
    "swap": 4,
    "alias": 2,
    "rename": 2,
    "mend_inventory": 3,
    "clone": 2,
    "new_hardware": 2,
    "copy_controller": 2,
    "share_ledger": 2,
    "set_clock": 2,
    "power_off": 3,
    "power_on": 4,
    "silence": 3,
    "answer": 3,
    "crash_guest": 2,
    "wait": 4,
}
