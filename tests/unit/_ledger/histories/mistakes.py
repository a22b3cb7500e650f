# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mistakes of operators about which machine, which guest or which ledger it is, each made in one way: every guest runs
on with all that it stands on, and the run says what is wrong. The scenario `mistaken` makes them on hypervisors."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from tests.unit._ledger.histories import moves
from tests.unit._ledger.histories.driver import Histories
from tests.unit._ledger.histories.machines import Machine
from tests.unit._ledger.histories.runs import Run, Unreachable
from tests.unit._ledger.histories.things import StepFailed, install
from tests.unit._ledger.histories.world import Controller

Work = t.Callable[[Run], object]


class Case:
    """A cloud with four guests on three hosts, a copy of its ledger from then, and what its operator does."""

    def __init__(self, played: Histories) -> None:
        self.world = played.begin("mistakes")
        self.controller = self.world.controllers[0]
        (self.old,) = self.world.copies

    @property
    def inventory(self) -> dict[str, int]:
        return self.controller.inventory

    def host_of(self, name: str) -> str:
        """The host that has the guest."""
        (number,) = [number for number, domain in self.world.domains() if self.world.guests[domain.uuid].name == name]
        return next(host for host, machine in self.inventory.items() if machine == number)

    def machine(self, host: str) -> Machine:
        return self.world.machines[self.inventory[host]]

    def runs(self, name: str) -> bool:
        return any(domain.runs and domain.uuid in self.uuids(name) for _number, domain in self.world.domains())

    def uuids(self, name: str) -> list[str]:
        return [uuid for uuid, guest in self.world.guests.items() if guest.name == name]

    def run(
        self, work: Work, word: str = "", name: str = "", controller: Controller | None = None, **beside: t.Any
    ) -> None:
        """A playbook, with the `word` that its user says of a guest; what it ends with is remembered, and judged."""
        before = self.world.before()
        if word:
            self.world.name(word, self.uuids(name))
        run = Run(self.world, controller or self.controller, **beside)
        try:
            rows = work(run)
        except (NovaliteError, StepFailed, Unreachable) as error:
            self.world.output.append(str(error))
        else:
            lines = [row.get("failed") or row["repair"] for row in rows or ()] if isinstance(rows, list) else []
            self.world.output += [str(line) for line in lines]
        assert run.undisturbed
        self.world.judge(before)

    def launch(self, *names: str, **beside: t.Any) -> None:
        self.run(lambda run: [run.launch(names), None][1], **beside)

    def reconcile(self, limit: t.Sequence[str] | None = None, **beside: t.Any) -> None:
        self.run(lambda run: run.reconcile(limit), **beside)

    def live_migrate(self, name: str, host: str | None = None) -> None:
        asked = {"name": name, **({"host": host} if host else {})}
        self.run(lambda run: moves.live(run, servers=[asked]), "live-migrate", name)

    def put_back(self) -> None:
        self.world.replace_ledger(self.controller, self.old)

    def restore(self) -> None:
        self.run(lambda run: run.restore_ledger(self.old))


Mistake = t.Callable[[Case], None]


def two_hosts_swapped(it: Case) -> None:
    it.inventory.update(hv1=1, hv2=0)
    it.reconcile()


def three_hosts_rotated(it: Case) -> None:
    it.inventory.update(hv1=1, hv2=2, hv3=0)
    it.reconcile()


def one_of_two_swapped_hosts_only(it: Case) -> None:
    it.inventory.update(hv1=1, hv2=0)
    it.reconcile(["hv1"])


def a_second_name_for_a_machine(it: Case) -> None:
    it.inventory["hv1.example"] = 0
    it.run(lambda run: run.compute_nodes())
    it.reconcile()


def a_new_name_that_nobody_was_told(it: Case) -> None:
    it.inventory["node1"] = it.inventory.pop("hv1")
    it.reconcile()


def a_clone_in_the_place_of_a_host(it: Case) -> None:
    it.world.machines.append(it.world.new_machine(it.world.machines[0]))
    it.inventory["hv1"] = 3
    it.reconcile()


def a_clone_beside_its_host(it: Case) -> None:
    it.world.machines.append(it.world.new_machine(it.world.machines[0]))
    it.inventory["hv4"] = 3
    it.run(lambda run: run.compute_nodes())
    it.reconcile()


def a_name_for_new_hardware(it: Case) -> None:
    it.world.machines.append(it.world.new_machine())
    it.inventory["hv1"] = 3
    it.reconcile()


def a_ledger_of_before_a_move(it: Case) -> None:
    it.live_migrate("g1")
    it.put_back()
    it.reconcile()


def a_restored_ledger_of_before_a_new_name(it: Case) -> None:
    it.inventory["node1"] = it.inventory.pop("hv1")
    it.run(lambda run: run.rename("hv1", "node1"))
    it.launch("g5")
    it.restore()
    it.run(lambda run: run.rebuild_ledger(partial=True))
    it.launch("g6")
    output, it.world.output = it.world.output, []
    it.run(lambda run: run.rename("hv1", "node1"))
    it.run(lambda run: run.rebuild_ledger())
    it.reconcile()
    it.launch("g6")
    assert it.world.output == [] and it.host_of("g5") and it.host_of("g6")
    it.world.output = output


def a_restored_ledger_and_a_launch(it: Case) -> None:
    it.launch("g5")
    it.restore()
    it.launch("g6")


def a_ledger_put_back_and_a_launch(it: Case) -> None:
    it.launch("g5")
    it.put_back()
    it.launch("g6")


def a_restored_ledger_and_a_termination(it: Case) -> None:
    it.live_migrate("g1")
    it.restore()
    it.run(lambda run: run.terminate(servers=[{"name": "g2"}]))


def a_restored_ledger_and_a_resize(it: Case) -> None:
    it.live_migrate("g1")
    it.restore()
    it.run(lambda run: moves.cold(run, "resize", servers=[{"name": "g2"}], flavor="m1.tiny"))


def a_ledger_put_back_and_a_migration_to_where_the_guest_is(it: Case) -> None:
    it.live_migrate("g1")
    host = it.host_of("g1")
    it.put_back()
    it.live_migrate("g1", host)


def a_ledger_put_back_and_an_evacuation(it: Case) -> None:
    host = it.host_of("g1")
    it.live_migrate("g1")
    it.put_back()
    it.world.crash(it.world.machines[it.inventory[host]])
    it.world.now += 120
    it.run(lambda run: moves.evacuate(run, servers=[{"name": "g1"}]))


def a_ledger_deleted_under_a_launch(it: Case) -> None:
    it.launch("g5", beside=lambda: it.world.replace_ledger(it.controller, None), at="launch_record")
    it.reconcile()


def a_ledger_copied_under_a_launch(it: Case) -> None:
    ledger, file = os.path.join(it.controller.home, "ledger.sqlite"), str(it.world.directory / "under-a-launch")
    it.launch("g5", beside=lambda: shutil.copy(ledger, file), at="answer")
    it.world.replace_ledger(it.controller, file)
    it.launch("g6")


def two_ledgers_of_one_cloud(it: Case) -> None:
    home = str(it.world.directory / "b")
    shutil.copytree(it.controller.home, home)
    other = Controller(home, dict(it.inventory))
    it.launch("g5")
    it.launch("g6", controller=other)
    it.reconcile(controller=other)


def the_inventory_of_another_cloud(it: Case) -> None:
    home = it.world.directory / "b"
    shutil.copytree(it.world.template, home)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(home / "ledger.known")
    it.reconcile(controller=Controller(str(home), dict(it.inventory)))


def a_clock_six_hours_ahead(it: Case) -> None:
    other = Controller(it.controller.home, dict(it.inventory), 6 * 3600)
    it.launch("g5", beside=lambda: it.reconcile(controller=other), at="launch_record")
    it.reconcile()
    assert it.host_of("g5")


def a_clock_set_back(it: Case) -> None:
    it.controller.offset = -6 * 3600
    it.launch("g5")
    it.reconcile()
    assert it.host_of("g5")


def evacuated(it: Case) -> Machine:
    """Evacuate g1 from its host, which is off; returns that, which is on again."""
    machine = it.machine(it.host_of("g1"))
    it.world.crash(machine)
    it.world.now += 120
    it.run(lambda run: moves.evacuate(run, servers=[{"name": "g1"}]), "evacuate", "g1")
    machine.on = True
    return machine


def a_host_that_is_back_after_an_evacuation(it: Case) -> None:
    machine = evacuated(it)
    it.reconcile()
    assert it.uuids("g1")[0] in dict(machine.bin) and it.runs("g1")


def a_host_that_is_back_while_the_other_one_is_silent(it: Case) -> None:
    machine = evacuated(it)
    there = next(other for other in it.world.machines if other is not machine and it.uuids("g1")[0] in other.domains)
    there.silent = True
    it.reconcile()
    assert it.uuids("g1")[0] in machine.disks


def a_host_that_is_back_after_the_other_one_lost_the_guest(it: Case) -> None:
    machine = evacuated(it)
    (uuid,) = it.uuids("g1")
    there = next(other for other in it.world.machines if other is not machine and uuid in other.domains)
    it.world.name("rm", [uuid])
    del there.domains[uuid], there.disks[uuid]
    it.reconcile()
    assert uuid in machine.disks


def a_ledger_put_back_and_hosts_without_marks(it: Case) -> None:
    it.live_migrate("g1")
    it.put_back()
    for machine in it.world.machines:
        shutil.rmtree(os.path.join(machine.root, "state"))
    it.reconcile()


def a_restored_ledger_and_hosts_without_records(it: Case) -> None:
    it.launch("g5")
    for machine in it.world.machines:
        for disk in machine.disks.values():
            disk.record = None
    it.restore()
    it.run(lambda run: run.rebuild_ledger())
    it.launch("g6")
    assert it.runs("g5") and it.runs("g6")


def a_clone_that_is_a_host_of_its_own(it: Case) -> None:
    host = it.host_of("g1")
    clone = it.world.new_machine(it.machine(host))
    install(pathlib.Path(clone.root), "4" * 32, "44444444-0000-4000-8000-000000000000")
    shutil.rmtree(os.path.join(clone.root, "state"))
    it.world.machines.append(clone)
    it.inventory["hv4"] = 3
    it.run(lambda run: run.compute_nodes())
    it.reconcile()
    assert it.uuids("g1")[0] in clone.disks
    it.run(lambda run: run.reconcile(accept=["hv4"]))
    it.reconcile()


def a_reconcile_in_the_middle_of_a_stop(it: Case) -> None:
    beside = Run(it.world, it.controller)
    it.run(lambda run: run.power("stop", "g1"), "stop", "g1", beside=beside.reconcile, at="answer")
    assert not it.runs("g1")


def a_destination_that_falls_silent_in_a_move(it: Case) -> None:
    there = next(host for host in sorted(it.inventory) if host != it.host_of("g1"))
    silent = it.machine(there)

    def work(run: Run) -> object:
        return moves.cold(run, "migrate", servers=[{"name": "g1", "host": there}])

    it.run(work, "migrate", "g1", beside=lambda: setattr(silent, "silent", True), at=12)
    silent.silent = False
    it.reconcile()
    assert it.runs("g1")


@dataclasses.dataclass(frozen=True)
class Row:
    """A mistake, and what the run `says` of it (a regular expression); nothing where all is well."""

    make: Mistake
    says: str


OTHER = r"this machine is hv\d of this ledger, and hv\d is expected here"
BEHIND = r"the ledger is behind its hosts .*ledger_rebuild.yml"
NEWER = r"the ledger did not leave the mark that this host has"
ROWS = (
    Row(two_hosts_swapped, OTHER),
    Row(three_hosts_rotated, OTHER),
    Row(one_of_two_swapped_hosts_only, OTHER),
    Row(a_second_name_for_a_machine, "this machine is hv1 of this ledger, and hv1.example is expected here"),
    Row(a_new_name_that_nobody_was_told, "if hv1 has a new name, run compute_node_rename.yml"),
    Row(a_clone_in_the_place_of_a_host, "this is not the machine that the ledger has as hv1"),
    Row(a_clone_beside_its_host, "this machine has the mark of hv1 of this ledger, and hv4 is expected here"),
    Row(a_name_for_new_hardware, "this is not the machine that the ledger has as hv1"),
    Row(a_ledger_of_before_a_move, NEWER),
    Row(a_restored_ledger_of_before_a_new_name, "hosts that answer are not gone, .*if hv1 has a new name"),
    Row(a_restored_ledger_and_a_launch, BEHIND),
    Row(a_ledger_put_back_and_a_launch, NEWER),
    Row(a_restored_ledger_and_a_termination, BEHIND),
    Row(a_restored_ledger_and_a_resize, BEHIND),
    Row(a_ledger_put_back_and_a_migration_to_where_the_guest_is, NEWER),
    Row(a_ledger_put_back_and_an_evacuation, NEWER),
    Row(a_ledger_deleted_under_a_launch, "is gone or empty"),
    Row(a_ledger_copied_under_a_launch, NEWER),
    Row(two_ledgers_of_one_cloud, NEWER),
    Row(the_inventory_of_another_cloud, ""),
    Row(a_clock_six_hours_ahead, ""),
    Row(a_clock_set_back, ""),
    Row(a_host_that_is_back_after_an_evacuation, ""),
    Row(a_host_that_is_back_while_the_other_one_is_silent, "does not answer"),
    Row(a_host_that_is_back_after_the_other_one_lost_the_guest, ""),
    Row(a_ledger_put_back_and_hosts_without_marks, "runs on"),
    Row(a_restored_ledger_and_hosts_without_records, ""),
    Row(a_clone_that_is_a_host_of_its_own, "runs on"),
    Row(a_reconcile_in_the_middle_of_a_stop, ""),
    Row(a_destination_that_falls_silent_in_a_move, ""),
)


def make(row: Row, played: Histories) -> None:
    """Make the mistake. Raises AssertionError where a guest does not run on, or the run does not say what is wrong."""
    case = Case(played)
    running = {domain.uuid for _number, domain in case.world.domains() if domain.runs}
    row.make(case)
    still = {domain.uuid for _number, domain in case.world.domains() if domain.runs}
    stopped = {uuid for uuid, guest in case.world.guests.items() if "stop" in guest.words}
    assert running <= still | stopped | case.world.crashed_ever
    output = "\n".join(case.world.output)
    assert re.search(row.says, output), output
