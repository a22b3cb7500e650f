# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""All that a history is about: machines, controllers with their ledgers, and what the users have asked for.

The judge knows machines and users' words, and nothing of ledgers.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import os
import pathlib
import pickle
import random
import shutil
import sqlite3
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._host.mark import identity_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import FILE_NAME
from tests.unit._ledger.histories.machines import Machine
from tests.unit._ledger.histories.things import Domain, Plan, install

START = 1_700_000_000.0
Copy = tuple[int, int]  # content and version of a disk


@dataclasses.dataclass
class Controller:
    """A home with a ledger, an inventory (name -> number of the machine), and a clock."""

    home: str
    inventory: dict[str, int]
    offset: float = 0


@dataclasses.dataclass
class Guest:
    """An instance, as its user sees it. `established`: a run said that it runs, or says so if nobody kills it."""

    name: str
    established: bool = False
    words: set[str] = dataclasses.field(default_factory=set)  # what the user has asked for with it, ever
    released: set[int] = dataclasses.field(default_factory=set)  # contents that an evacuation may lose


@dataclasses.dataclass
class Before:
    """What was there when an act began."""

    running: dict[str, set[int]]  # UUID -> machines
    copies: dict[str, dict[int, int]]  # UUID -> content -> highest version
    around: dict[tuple[int, str], set[str]]  # what a guest stands on where it runs


class Violation(AssertionError):
    """Something that must never be."""


# Sums that each transaction keeps beside the claims themselves
_WRONG_SUMS = """
SELECT name FROM compute_host WHERE (vcpus_used, memory_mb_used, disk_gb_used, num_instances) IS NOT (
    SELECT coalesce(sum(vcpus), 0), coalesce(sum(memory_mb), 0), coalesce(sum(disk_gb), 0), count(*)
    FROM allocation WHERE compute_host_id = compute_host.id
)
"""


class World:
    def __init__(self, directory: pathlib.Path, template: pathlib.Path) -> None:
        self.directory, self.template = directory, template
        self.now, self.offset = START, 0.0
        self.contents: list[int] = []
        self.machines: list[Machine] = []
        for _number in range(3):
            self.machines.append(self.new_machine())
        home = directory / "a"
        shutil.copytree(template, home)
        self.controllers = [Controller(str(home), {"hv1": 0, "hv2": 1, "hv3": 2})]
        self.copies: list[str] = []  # files with copies of ledgers
        self.guests: dict[str, Guest] = {}
        self.ids = random.Random(0)
        self.crashed: set[str] = set()  # guests that an accident ended in this act
        self.crashed_ever: set[str] = set()
        self.named: set[str] = set()  # and those that the user named in it
        self.output: list[str] = []  # what the last run ended with
        self.mistaken = False  # nothing was done yet since the last mistake
        self.waiting: set[str] = set()  # names of guests with a move that may wait for its user's word

    # --- A history's beginning can be that of others, too ---

    def save(self) -> bytes:
        return pickle.dumps(self.__dict__)

    @classmethod
    def copied(cls, saved: bytes, files: pathlib.Path, directory: pathlib.Path) -> World:
        """The world that was `saved`, with a copy of its `files` in `directory`."""
        world = cls.__new__(cls)
        world.__dict__ = pickle.loads(saved)
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(files, directory)
        world.controllers = [
            dataclasses.replace(each, home=str(directory / os.path.basename(each.home))) for each in world.controllers
        ]
        for machine in world.machines:
            machine.root = str(directory / os.path.basename(machine.root))
        world.copies = [str(directory / os.path.basename(path)) for path in world.copies]
        world.directory = directory
        return world

    def time(self) -> float:
        """What the clock of the controller at work says."""
        return self.now + self.offset

    def new_uuid(self) -> int:
        return self.ids.getrandbits(128)

    def new_machine(self, former: Machine | None = None) -> Machine:
        """Another machine, perhaps one that was restored from a copy of the `former` one's disk."""
        number = len(self.machines)
        root = self.directory / f"machine-{number}"
        uuid = f"{number + 11:08}-0000-4000-8000-{'0' * 12}"
        if former is None:
            install(root, f"{number + 11:02}" * 16, uuid)
            return Machine(str(root), self.contents)
        shutil.copytree(former.root, root)
        install(root, identity_of(former.root)["machine_id"], uuid)
        machine = copy.deepcopy(former)
        machine.root, machine.contents, machine.on, machine.silent = str(root), self.contents, True, False
        for domain in machine.domains.values():
            domain.state, domain.reason = "shutoff", "crashed"
        return machine

    # --- What is told of a run as it goes ---

    def note_requests(self, servers: t.Iterable[Plan]) -> None:
        for server in servers:
            self.guests.setdefault(server["uuid"], Guest(server["name"]))

    def note_built(self, uuids: t.Iterable[str]) -> None:
        for uuid in uuids:
            self.guests[uuid].established = True

    def not_told(self, before: t.Collection[str]) -> None:
        """The run that launched those that are not in `before` was killed: nobody was told that they run."""
        for uuid, guest in self.guests.items():
            if uuid not in before:
                guest.established = False

    def name(self, word: str, uuids: t.Iterable[str]) -> None:
        """The user asks for something with these, which may take a running guest, or its disk, away."""
        for uuid in uuids:
            self.named.add(uuid)
            self.guests[uuid].words.add(word)
            if word == "evacuate":
                self.guests[uuid].released.update(self._copies().get(uuid, ()))

    def give_up(self, machine: Machine) -> None:
        """The user says that this machine is gone for good."""
        for uuid in {*machine.domains, *machine.disks} & self.guests.keys():
            self.guests[uuid].established = False
            self.guests[uuid].words.add("given up")

    def established(self, *without: str) -> list[str]:
        """The guests that their users count on, but for those with whom one of `without` was asked for."""
        return [
            uuid for uuid, guest in self.guests.items() if guest.established and not guest.words.intersection(without)
        ]

    def replace_ledger(self, controller: Controller, file: str | None) -> None:
        """Put the `file` in the place of the controller's ledger; None: nothing."""
        path = os.path.join(controller.home, FILE_NAME)
        for name in (path, f"{path}-wal", f"{path}-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
        if file is not None:
            shutil.copy(file, path)

    def crash(self, machine: Machine) -> None:
        self.crashed.update(uuid for uuid, domain in machine.domains.items() if domain.runs)
        machine.power_off()

    # --- Judgement ---

    def before(self) -> Before:
        self.crashed_ever |= self.crashed
        self.crashed, self.named = set(), set()
        for machine in self.machines:
            machine.write()
        return Before(self._running(), self._copies(), self._around())

    def judge(self, before: Before) -> None:
        """Compare what is there with what was there `before` the act. Raises Violation."""
        kept = [uuid for uuid in self.established("terminate") if uuid not in self.named | self.crashed]
        running, copies, around = self._running(), self._copies(), self._around()
        for uuid in kept:
            name = self.guests[uuid].name
            if before.running.get(uuid) and not running.get(uuid):
                raise Violation(f"{name} ran, and does not run any more: nobody named it")
        for uuid in self.established("terminate"):
            guest = self.guests[uuid]
            for content, version in before.copies.get(uuid, {}).items():
                least = 1 if "revertResize" in guest.words else version
                if content not in guest.released and copies.get(uuid, {}).get(content, 0) < least:
                    raise Violation(f"the last copy of {guest.name}'s disk was removed")
        for (number, uuid), things in before.around.items():
            missing = things - around.get((number, uuid), things)
            if missing and uuid in kept and number in running.get(uuid, ()):
                raise Violation(f"{self.guests[uuid].name} runs on without its {', '.join(sorted(missing))}")
        self._judge_twins(before, running)
        self._judge_sums()

    def repair(self, machine: Machine, plan: Plan) -> None:
        """Remove what `plan` says, for no user's sake: disks go to the bin. Raises Violation."""
        before = set(machine.disks)
        machine.reclaim(plan)
        for uuid in before - machine.disks.keys():
            if uuid in self.established("terminate") and uuid not in (other for other, _disk in machine.bin):
                raise Violation(f"a disk of {self.guests[uuid].name} was removed, and is not in the bin")

    def _judge_sums(self) -> None:
        for path in {os.path.join(controller.home, FILE_NAME) for controller in self.controllers}:
            if os.path.exists(path):
                with contextlib.closing(sqlite3.connect(path)) as ledger:
                    for (host,) in ledger.execute(_WRONG_SUMS):
                        raise Violation(f"what {host} says is used is not the sum of its claims")

    def _judge_twins(self, before: Before, running: t.Mapping[str, set[int]]) -> None:
        for uuid, numbers in running.items():
            started = numbers - before.running.get(uuid, set())
            if len(numbers) > 1 and started and uuid in self.guests and "evacuate" not in self.guests[uuid].words:
                raise Violation(f"{self.guests[uuid].name} was started while it runs elsewhere")
        holders: dict[tuple[str, str], set[str]] = collections.defaultdict(set)
        for _number, domain in self.domains():
            if domain.runs and "given up" not in self.guests[domain.uuid].words:
                holders["number", domain.name].add(domain.uuid)
                for nic in domain.nics:
                    holders["address", nic.ip].add(domain.uuid)
        for (what, value), uuids in holders.items():
            if len(uuids) > 1 and not all(before.running.get(uuid) for uuid in uuids):
                names = " and ".join(sorted(self.guests[uuid].name for uuid in uuids))
                raise Violation(f"{names} run with one {what}, {value}")

    def domains(self) -> t.Iterator[tuple[int, Domain]]:
        for number, machine in enumerate(self.machines):
            if machine.on:
                for domain in machine.domains.values():
                    yield number, domain

    def _running(self) -> dict[str, set[int]]:
        running: dict[str, set[int]] = collections.defaultdict(set)
        for number, domain in self.domains():
            if domain.runs:
                running[domain.uuid].add(number)
        return dict(running)

    def _copies(self) -> dict[str, dict[int, int]]:
        copies: dict[str, dict[int, int]] = collections.defaultdict(dict)
        for machine in self.machines:
            for uuid, disk in machine.disks.items():
                for content, version in (disk.copy, *([disk.kept] if disk.kept else [])):
                    if version:  # what no guest ever ran on is no loss
                        copies[uuid][content] = max(version, copies[uuid].get(content, 0))
        return dict(copies)

    def _around(self) -> dict[tuple[int, str], set[str]]:
        """What each guest that runs has for itself on its machine."""
        around = {}
        for number, domain in self.domains():
            if not domain.runs:
                continue
            machine = self.machines[number]
            chain = machine.chains.get(int(domain.name[-8:], 16))
            leases = {host.mac for server in machine.dhcp.values() for host in server.hosts}
            things = {
                "chains": chain is not None and chain[0] == domain.uuid,
                "network filter": machine.filters.get(f"nova-instance-{domain.name}") == domain.uuid,
                "DHCP entry": all(nic.mac in leases for nic in domain.nics),
                "bridge": all(nic.bridge in machine.bridges for nic in domain.nics),
                "disk": domain.uuid in machine.disks,
            }
            around[number, domain.uuid] = {name for name, there in things.items() if there}
        return around
