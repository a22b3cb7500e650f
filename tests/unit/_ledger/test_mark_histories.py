# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random histories of trips to one host that overlap, get lost, come late, or lose their answers; and of copies of the
ledger that are put back.

A ledger in use is never refused. A copy always is, once a trip that began after it has come through.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import pathlib
import random
import sqlite3
import threading
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host import mark
from ansible_collections.novalite.cloud.plugins.module_utils._host.mark import Seen
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import host_marks
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.host_marks import HostMarks, Known
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.machines import adopt_marks
from ansible_collections.novalite.cloud.plugins.plugin_utils._handshake import Errand, Handshake, HostRefusedError
from tests.support.cloud import Cloud
from tests.unit._ledger.conftest import on_postgresql, on_sqlite
from tests.unit._ledger.marked_machines import Machine, Trips, an_identity, behind, marks_at, row

HOST = "hv1"


class LostError(Exception):
    """ssh went away."""


class Trip(threading.Thread):
    """A trip that goes on when it is told to: it stops before it asks the ledger, on its way, and on its way back."""

    def __init__(self, marks: HostMarks, machine: Machine, late: list[JsonObject]) -> None:
        super().__init__(daemon=True)
        self.marks, self.machine, self.late = marks, machine, late
        self.fate, self.result = "", ""
        self._go_on, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self.start()
        self._stopped.acquire()

    def step(self, fate: str) -> bool:
        """Let it go on to where it stops next; `fate` is what becomes of a request or an answer. False at its end."""
        self.fate = fate
        self._go_on.release()
        self._stopped.acquire()
        return not self.result

    def run(self) -> None:
        result = "failed"
        try:
            self._pause()
            handshake = Handshake.begin(self.marks, Errand(HOST))
            assert handshake is not None
            handshake.take(self._travel)
            result = "came through"
        except LostError:
            result = "lost"
        except HostRefusedError:
            result = "refused"
        except ConflictError:
            result = "crowded out"
        except NovaliteError:
            result = "behind"
        finally:
            self.marks.close()
            self.result = result
            self._stopped.release()

    def _travel(self, expected: JsonObject, with_steps: bool) -> tuple[Seen, None]:
        self._pause()
        if self.fate == "lost":
            self.late.append(expected)
            raise LostError
        seen = self.machine.answer(expected, ["step"] if with_steps else [])
        self._pause()
        if self.fate == "lost":
            raise LostError
        return seen, None

    def _pause(self) -> None:
        self._stopped.release()
        self._go_on.acquire()


class Counted(HostMarks):
    """Marks of a ledger, in the order in which they were made."""

    def __init__(self, url: str, made: list[str]) -> None:
        super().__init__(marks_at(url)._driver)
        self.made = made

    def begin(self, host: str, leaves: bool, instead_of: Known | None = None) -> Known | None:
        known = super().begin(host, leaves, instead_of)
        if known is not None and known.own and known.token is not None:
            self.made.append(known.token)
        return known


@dataclasses.dataclass
class Copy:
    """A copy of the ledger, and how many marks had been made until then."""

    path: pathlib.Path
    made: int

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}"


class History:
    def __init__(self, seed: int, cloud: Cloud, path: pathlib.Path, copies: bool) -> None:
        self.random, self.cloud, self.path = random.Random(seed), cloud, path
        self.machine = Machine(path / "machine", **an_identity(seed))
        self.made: list[str] = []
        self.trips: list[Trip] = []
        self.late: list[JsonObject] = []
        self.copies: list[Copy] = []
        self.ends: collections.Counter[str] = collections.Counter()
        self.acts = {"begin": 3, "step": 12, "deliver": 1, **({"copy": 1} if copies else {})}
        cloud.host(HOST)

    @property
    def marks(self) -> HostMarks:
        """Those that a run opens for itself."""
        return Counted(self.cloud.url, self.made)

    @property
    def age_of_host(self) -> int:
        """How many marks had been made when the one was that the host has."""
        marks = mark.marks_here(str(self.machine.state_dir)).values()
        return max((self.made.index(mark["mark"]) + 1 for mark in marks), default=0)

    def run(self, length: int) -> None:
        for _act in range(length):
            before = self.age_of_host
            act = self.random.choices(list(self.acts), list(self.acts.values()))[0]
            getattr(self, act)()
            assert before <= self.age_of_host, "an older mark has replaced a newer one"
        while self.trips:
            self.step()

    def begin(self) -> None:
        if len(self.trips) < 5:
            self.trips.append(Trip(self.marks, self.machine, self.late))

    def step(self, fate: str | None = None) -> None:
        if not self.trips:
            return
        trip = self.random.choice(self.trips)
        if trip.step(fate or self.random.choices(["fine", "lost"], [6, 1])[0]):
            return
        self.trips.remove(trip)
        assert trip.result in ("came through", "lost", "crowded out"), trip.result
        self.ends[trip.result] += 1

    def deliver(self) -> None:
        """A request arrives after all, whose run has given it up."""
        if self.late:
            self.machine.answer(self.late.pop(self.random.randrange(len(self.late))), ["step"])

    def copy(self) -> None:
        path = self.path / f"copy-{len(self.copies)}.sqlite"
        with (
            contextlib.closing(sqlite3.connect(self.cloud.engine.url.database or "")) as ledger,
            contextlib.closing(sqlite3.connect(path)) as copy,
        ):
            ledger.backup(copy)
        self.copies.append(Copy(path, len(self.made)))

    def look_back(self) -> None:
        """Use each copy once more: those are refused that are older than what the host has."""
        age = self.age_of_host
        for copy in self.copies:
            cloud = Cloud(copy.url)
            trip = Trip(marks_at(copy.url), self.machine, self.late)
            before, mark = list(self.machine.done), row(self.cloud).mark
            while trip.step("fine"):
                pass
            if copy.made < age:
                assert trip.result == "refused" and behind(cloud), copy
                assert self.machine.done == before and row(self.cloud).mark == mark
            else:
                assert trip.result == "came through", copy
                self.restore(cloud)
                return  # from here on the copy is the ledger
            cloud.close()

    def restore(self, cloud: Cloud) -> None:
        """The copy has been used; the ledger beside it is the older one now, until its hosts have been asked."""
        trip = Trip(self.marks, self.machine, self.late)
        while trip.step("fine"):
            pass
        assert trip.result == "refused" and behind(self.cloud)
        (identity,) = self.cloud.rows(sa.select(tables.ledger_identity.c.uuid))[0]
        marks = {HOST: mark.marks_here(str(self.machine.state_dir))}
        with transaction(self.cloud.engine, while_behind=True) as connection:
            assert adopt_marks(connection, identity, marks) == 1
            assert adopt_marks(connection, identity, marks) == 0
            connection.execute(sa.update(tables.ledger_identity).values(behind=None))
        Trips(self.marks).go(self.machine, HOST)


@pytest.fixture
def cloud(ledger_url: str) -> t.Iterator[Cloud]:
    opened = Cloud(ledger_url)
    yield opened
    opened.close()


@on_sqlite  # whose copies are files
@pytest.mark.parametrize("seed", range(40))
def test_a_ledger_in_use_is_never_refused_and_an_older_one_always(
    cloud: Cloud, tmp_path: pathlib.Path, seed: int
) -> None:
    history = History(seed, cloud, tmp_path, copies=True)
    history.run(60)
    assert behind(history.cloud) is None
    assert len(row(history.cloud).marks_sent) <= host_marks.MOST
    history.look_back()
    Trips(history.marks).go(history.machine, HOST)


@on_postgresql
def test_trips_that_overlap_on_postgresql(cloud: Cloud, tmp_path: pathlib.Path) -> None:
    history = History(0, cloud, tmp_path, copies=False)
    history.run(150)
    assert behind(history.cloud) is None and history.ends["came through"]
    Trips(history.marks).go(history.machine, HOST)


@on_sqlite
def test_marks_of_a_host_that_does_not_answer_do_not_grow(cloud: Cloud, tmp_path: pathlib.Path) -> None:
    """And when it does again, each copy of before is older than it, the last one, too."""
    history = History(0, cloud, tmp_path, copies=True)
    Trips(history.marks).go(history.machine, HOST)  # twice: it is asked who it is
    history.begin()
    for fate in ("fine", "fine", "lost"):  # it arrives, and nobody hears of it
        history.step(fate)
    assert history.ends == {"lost": 1} and history.age_of_host == 3
    for _attempt in range(3 * host_marks.MOST):
        history.begin()
        while history.trips:
            history.step("lost")
        history.copy()
    assert len(row(history.cloud).marks_sent) == host_marks.MOST
    history.begin()
    while history.trips:
        history.step("fine")
    assert history.ends == {"lost": 3 * host_marks.MOST + 1, "came through": 1}
    assert row(history.cloud).marks_sent == []
    history.look_back()
