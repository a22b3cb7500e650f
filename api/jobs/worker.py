# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A worker: takes jobs out of the queue and has their playbooks run, a few runs at a time.

    python -m novalite_api.jobs     a worker; any number of them, on one machine over SQLite, on many over PostgreSQL

It can be killed at any moment: the processes of its runs end with it, and another worker, or the next one, goes on.
SIGTERM ends it in good order: its runs are cut off and taken up by others at once.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import types
import zlib

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import behind
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import claiming, run_rows, worker_rows
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs.waking import notify

from . import chores, durable, events, housekeeping, runs, supervisor, workers
from .children import Child, Supervisors
from .kinds import KINDS
from .options import Options

log = logging.getLogger("novalite.jobs")

WRITE_INTERVAL = 0.25  # seconds between two writes of events
GATHER_ROUNDS = 5  # how often a first job waits for others
CALM = 3.0  # seconds after a start, until the next supervisor is started ahead
STALE = 30.0  # seconds for which a run may be ours without being at work
KEEPING_INTERVAL = 600.0  # seconds between two clearings of old things
SCHEDULE_INTERVAL = 5.0  # seconds between two looks whether something is due


class Worker:
    def __init__(self, options: Options) -> None:
        options.make_directories()
        self._options = options
        self._engine = open_ledger(options.place.home if options.ledger_url is None else None, options.ledger_url)
        self._url = options.place.libpq_url  # None: the ledger is a file
        self._registration = workers.Registration(options)
        self.id = self._registration.id
        self._bell = workers.Bell(options.place.home, self.id, self._url)
        environment = options.environment()
        self._supervisors = Supervisors(
            supervisor.Ahead(os.path.join(options.directory, "runs"), options.project, environment)
        )
        self._secrets = events.secrets_of(environment)
        self._lock = threading.Lock()
        self._active: dict[str, Child | None] = {}  # the runs at work here
        self._ours: dict[str, float] = {}  # runs that were to begin here, and when
        self._stopping = threading.Event()
        self._last_start = 0.0
        self._last_keeping = 0.0
        self._last_schedule = 0.0
        self._refusal: str | None = None  # why nothing may be changed, as it was said last

    # --- The main loop ----------------------------------------------------------------------------------------------

    def work(self, parent: int | None = None) -> None:
        """Until SIGTERM or SIGINT, or until the process `parent` is gone. Does not return."""
        with transaction(self._engine, while_behind=True) as connection:
            self._registration.write(connection)
        durable.launch(self._options, self.id, self)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        threading.Thread(target=self._beat, daemon=True, name="heartbeat").start()
        self._chores = chores.of_worker(self._options)
        log.info("worker %s works", self.id)
        while not self._stopping.is_set():
            try:
                self._look()
            except NovaliteError as error:
                log.warning("%s", error)
            except Exception:
                log.exception("a look at the queue failed")
            if parent is not None and os.getppid() != parent:
                break
            self._bell.wait(workers.LOOK_INTERVAL)
        self._end()

    def _stop(self, _number: int, _frame: types.FrameType | None) -> None:
        self._stopping.set()
        self._bell.notify()

    def _look(self) -> None:
        with reading(self._engine) as connection:
            left = workers.orphans(connection, self._options, self.id)
            waiting = claiming.waiting(connection, KINDS, self._is_full())
            mine = run_rows.running(connection, self.id)
            refusal = behind.sentence(connection)
        if refusal != self._refusal:  # said once, and once more when it is over
            self._refusal = refusal
            log.warning("%s", refusal or "the ledger is up to date: jobs are carried out again")
        if refusal:
            return  # jobs, and runs that were cut off, wait until their playbooks may change something
        for run_id, of in left:
            self._take_over(run_id, of)
        self._look_after(mine)
        self._cancel()
        if waiting:
            self._start_some()
        now = time.monotonic()
        if now - self._last_start > CALM:
            self._supervisors.refill()
        if now - self._last_keeping > KEEPING_INTERVAL:
            self._last_keeping = now
            housekeeping.keep_house(self._engine, self._options)
        if self._options.reconcile_seconds and now - self._last_schedule > SCHEDULE_INTERVAL:
            self._last_schedule = now
            if job_id := housekeeping.reconcile_when_due(self._engine, self._options.reconcile_seconds):
                log.info("job %s: it is time to compare ledger and hosts", job_id)

    def _start_some(self) -> None:
        for _round in range(GATHER_ROUNDS):
            if not self._bell.wait(self._options.gather_ms / 1000):
                break
        while not self._stopping.is_set():
            with transaction(self._engine) as connection:
                run_id = claiming.claim(connection, self.id, KINDS, self._options, self._is_full())
            if run_id is None:
                return
            self._last_start = time.monotonic()
            with self._lock:
                self._active[run_id] = None
            try:
                durable.start(run_id)
            except Exception:
                with self._lock:  # it is begun again when it has been ours for a while
                    self._active.pop(run_id, None)
                raise

    def _is_full(self) -> bool:
        return len(self._active) >= self._options.runs_per_worker

    def _take_over(self, run_id: str, of: str) -> None:
        with transaction(self._engine, while_behind=True) as connection:
            taken = run_rows.take_over(connection, run_id, of, self.id)
        if taken:
            log.info("run %s goes on: its worker %s is gone", run_id, of)
            self._ours[run_id] = time.monotonic()
            self._resume(run_id)

    def _look_after(self, mine: set[str]) -> None:
        """Begin again what is said to be at work here and is not: its start failed."""
        now = time.monotonic()
        for run_id in mine - self._active.keys():
            if now - self._ours.setdefault(run_id, now) > STALE:
                self._ours[run_id] = now
                self._resume(run_id)
        for run_id in self._ours.keys() - mine:
            del self._ours[run_id]

    def _resume(self, run_id: str) -> None:
        if not durable.resume(run_id):
            self.record(run_id, runs.Outcome(runs.FAILED, "its workflow ended without recording how"))

    def _cancel(self) -> None:
        with self._lock:
            active = dict(self._active)
        if not active:
            return
        with reading(self._engine) as connection:
            to_cancel = run_rows.to_cancel(connection, active)
        for run_id in to_cancel:
            with transaction(self._engine) as connection:
                whole = runs.cancel_in_company(connection, run_id)
            child = active[run_id]
            if whole and child is not None:
                child.cancel()

    def _beat(self) -> None:
        while not self._stopping.wait(workers.HEARTBEAT):
            try:
                with transaction(self._engine, while_behind=True) as connection:
                    worker_rows.beat(connection, self.id)
            except Exception as error:  # the ledger is away: runs that it locks end by themselves
                log.warning("no sign of life could be given: %s", error)

    def _end(self) -> None:
        """End the runs at work here and leave them to others."""
        self._stopping.set()  # whatever ends it: what is cut off now is no result
        self._chores.stop()
        with self._lock:
            active = dict(self._active)
        children = [child for child in active.values() if child is not None]
        for child in children:
            child.cancel()
        for child in children:
            child.close()
        try:
            with transaction(self._engine, while_behind=True) as connection:
                for run_id in active:
                    run_rows.forgive_attempt(connection, run_id)
                worker_rows.stop(connection, self.id)
                notify(connection)
        except Exception as error:  # left alone, DBOS's threads would keep this process, and it the lock on its file
            log.warning("the end could not be recorded: %s", error)
        self._supervisors.close()
        self._bell.close()
        self._registration.close()
        logging.shutdown()
        # DBOS's threads are in steps that must not come to a result
        os._exit(0)

    # --- The steps of a run -----------------------------------------------------------------------------------------

    def prepare(self, run_id: str) -> runs.Plan:
        with reading(self._engine) as connection:
            return runs.plan_of(connection, run_id)

    def play(self, plan: runs.Plan) -> runs.Outcome:
        """Run the playbook, under the run's lock, until it ended or was attempted often enough."""
        while True:
            child = self._supervisors.take()
            with self._lock:
                self._active[plan.run_id] = child
            outcome = self._follow(child, plan)
            self._wait_if_stopping()
            child.close()
            if outcome is not None:
                return outcome
            log.warning("run %s: its supervisor was killed", plan.run_id)

    def record(self, run_id: str, outcome: runs.Outcome) -> None:
        reason = ""  # why it could not be recorded, as it was said last
        while True:
            try:
                with transaction(self._engine) as connection:
                    runs.end(connection, run_id, outcome)
                    notify(connection)
                break
            except NovaliteError as error:
                if str(error) != reason:
                    reason = str(error)
                    log.warning("run %s could not be recorded: %s", run_id, reason)
                self._wait_if_stopping()
                time.sleep(1)
        with self._lock:
            self._active.pop(run_id, None)
        self._bell.notify()

    def _wait_if_stopping(self) -> None:
        """Stay here once the worker stops: what is cut off then is no result, and another worker goes on."""
        if self._stopping.is_set():
            threading.Event().wait()

    def _follow(self, child: Child, plan: runs.Plan) -> runs.Outcome | None:
        """Listen to the supervisor of a run until its end; None when it was killed or lost its lock."""
        child.send({"run": self._order(plan).__dict__})
        reducer = events.Reducer(plan.run_id, self._secrets)
        seen = events.Progress(self._engine, plan)
        rows: list[events.Row] = []
        written = time.monotonic()
        decision = ""
        try:
            while True:
                message = child.receive(WRITE_INTERVAL)
                if rows and (message is None or time.monotonic() - written > WRITE_INTERVAL):
                    rows, written = self._write(rows), time.monotonic()
                if message is None:
                    continue
                if "locked" in message:
                    with transaction(self._engine, while_behind=True) as connection:
                        decision = runs.begin_attempt(connection, plan.run_id, self.id, self._options.take_ups)
                    child.send({"go": True} if decision == "go" else {"cancel": True})
                elif "event" in message:
                    row = reducer.reduce(message["event"])
                    if row is not None:
                        rows.append(row)
                        seen.see(row)
                elif "ended" in message:
                    self._write(rows)
                    return self._outcome(message["ended"], decision, reducer)
        except EOFError:
            self._write(rows)
            return None

    def _outcome(self, ended: JsonObject, decision: str, reducer: events.Reducer) -> runs.Outcome | None:
        if decision in (runs.LOST, runs.CANCELLED):
            return runs.Outcome(decision)
        if decision == "ended":
            return runs.Outcome(runs.SUCCESSFUL)  # recorded before; nobody reads this one
        stopped = ended.get("stopped")
        if stopped == "its lock was lost":
            return None
        if stopped in (runs.CANCELLED, runs.TIMEOUT):
            return runs.Outcome(stopped, data=reducer.data)
        if ended.get("rc") == 0:
            return runs.Outcome(runs.SUCCESSFUL, data=reducer.data)
        return runs.Outcome(runs.FAILED, reducer.failure or reducer.last_line(ended.get("output")), reducer.data)

    def _write(self, rows: list[events.Row]) -> list[events.Row]:
        """Write events; returns those that are still to be written."""
        try:
            with transaction(self._engine, while_behind=True) as connection:
                run_rows.write_events(connection, rows)
        except NovaliteError as error:
            log.warning("events could not be written: %s", error)
            return rows[-events.MAX_EVENTS :]
        return []

    def _order(self, plan: runs.Plan) -> supervisor.Run:
        options = self._options
        playbook = os.path.join(options.playbooks, plan.playbook)
        inventory = ["-i", options.inventory] if options.inventory else []
        return supervisor.Run(
            id=plan.run_id,
            lock=os.path.join(options.directory, "locks", plan.run_id),
            command=[*inventory, *plan.arguments, playbook],
            variables=runs.variables_file(plan.variables),
            timeout=plan.timeout,
            lock_url=self._url,
            lock_number=zlib.crc32(plan.run_id.encode()) | (0x6E6F76 << 32),
            trace=options.trace,
        )
