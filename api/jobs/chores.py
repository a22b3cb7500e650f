# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Chores of a worker: commands that are run again and again beside the jobs, and leave nothing in the queue.

Of the workers of one home, one does them; another takes over when it is gone. A chore that takes too long is ended with
all of its processes, one that fails is told in the log, and neither stops anything else.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.healing.rounds import RECOVER
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.healing.watch_lock import VARIABLE, WatchLock

from ..notices.receivers import receivers
from . import supervisor
from .options import Options

log = logging.getLogger("novalite.jobs")

LOCK = "chores.lock"  # in the engine's directory
SHORTEST = 60.0  # seconds that each may take
NOTICES = 60  # seconds between two looks at what needs attention
ROUND = 300.0  # seconds: a round of the watch waits for silent hosts and for fence agents
BUILDS = 3600.0  # seconds: whoever starts guests elsewhere brings their images, too
LAST_WORDS = 4000  # bytes
BACKUPS = 24 * 3600.0  # seconds: all that is due, of large disks
MOVES = 24 * 3600.0  # seconds: moves of large servers
RECOVERY = 1  # second between two looks at whether the watch left something to start
STANDBY = 1.0  # second between two looks at whether the controller that watches is gone
_WATCH = "watch"
_LEASED = (_WATCH, "recovery", "balance")


@dataclasses.dataclass(frozen=True)
class Chore:
    """Command that is run every so many `seconds`, or, with a `trigger`, when that file is there."""

    name: str
    seconds: int
    command: tuple[str, ...]
    environment: t.Mapping[str, str]
    directory: str | None = None  # the working one
    least_patience: float = 0
    trigger: str | None = None
    leased: bool = False  # it acts under the lease of the watch, and keeps its worker's lock while it lives
    watches: bool = False  # it begins every so many seconds, and not while another controller watches

    @property
    def patience(self) -> float:
        return max(SHORTEST, self.least_patience, 2.0 * self.seconds)


def of_options(options: Options) -> list[Chore]:
    """List the chores that the environment asks for."""
    chores = []

    def play(
        name: str, seconds: int, playbook: str, patience: float = 0, trigger: str | None = None, **variables: object
    ) -> None:
        """Add a playbook that is run every so many seconds, with these variables; 0: it is not asked for."""
        if seconds:
            inventory = ("-i", options.inventory) if options.inventory else ()
            words = ("-e", json.dumps(variables)) if variables else ()
            path = os.path.join(options.playbooks, playbook)
            command = (sys.executable, "-m", "ansible", "playbook", *inventory, *words, path)
            environment, project = options.environment(), options.project
            leased = name in _LEASED
            chores.append(
                Chore(name, seconds, command, environment, project, patience, trigger, leased, name == _WATCH)
            )

    watch, balance = options.watch_seconds, options.balance_seconds
    left = os.path.join(options.place.home, RECOVER)
    play("samples", options.sample_seconds, "samples.yml")
    play(_WATCH, watch, "watch.yml", ROUND, watch_recovers=False)
    play("recovery", RECOVERY if watch else 0, "watch_recover.yml", BUILDS, left)
    play("backups", options.backup_seconds, "backup_due.yml", BACKUPS)
    play("replicas", options.replicate_seconds, "replicate.yml", BACKUPS)
    play("balance", balance, "balance.yml", MOVES, balance_watch=True, balance_every=balance)
    try:
        receives = bool(receivers())
    except NovaliteError as error:
        log.error("nobody is told what needs attention: %s", error)
        receives = False
    if receives:
        command = (sys.executable, "-m", f"{__package__.rpartition('.')[0]}.notices")
        place = {"NOVALITE_HOME": options.home}
        place |= {"NOVALITE_LEDGER_URL": options.ledger_url} if options.ledger_url else {}
        chores.append(Chore("notices", NOTICES, command, {**os.environ, **place}))
    return chores


def _is_due(chore: Chore) -> bool:
    """Tell whether the chore is to be run now. Its trigger goes, even if it fails: whoever made it makes it again."""
    if chore.trigger is None:
        return True
    try:
        os.unlink(chore.trigger)
    except FileNotFoundError:
        return False
    return True


def mark(name: str, directory: str) -> str:
    """Return what marks the processes of a chore of the workers with this directory."""
    return f"{name} {os.path.join(directory, LOCK)}"


def of_worker(options: Options) -> Chores:
    """Begin the chores of a worker. On PostgreSQL, where there may be several controllers, others see whether the one
    that watches lives."""
    watches = options.watch_seconds and options.place.url is not None
    lock = WatchLock(options.home, options.ledger_url) if watches else None
    return Chores(of_options(options), options.directory, lock)


class Chores:
    """The chores of one worker, each in a thread of its own, from now until stop()."""

    def __init__(self, chores: t.Sequence[Chore], directory: str, watch_lock: WatchLock | None = None) -> None:
        self._directory = directory
        self._watch_lock = watch_lock
        self._stopping = threading.Event()
        self._locking = threading.Lock()
        self._lock: t.TextIO | None = None
        self._threads = [threading.Thread(target=self._keep, args=(chore,), name=chore.name) for chore in chores]
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def stop(self) -> None:
        """End what is under way. Returns once its processes are gone."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        if self._lock is not None:
            self._lock.close()
        if self._watch_lock is not None:
            self._watch_lock.close()

    def _keep(self, chore: Chore) -> None:
        complaint = ""  # as it was told last
        while True:
            pause, began = float(chore.seconds), time.monotonic()
            try:
                if not self._is_ours() or not _is_due(chore):
                    failure = complaint
                elif self._is_another_watching(chore):
                    failure, pause = "", STANDBY
                else:
                    failure = self._run(chore)
                    pause -= time.monotonic() - began if chore.watches else 0
            except (OSError, TimeoutError, NovaliteError) as error:
                failure = str(error)
            if failure != complaint and not self._stopping.is_set():
                complaint = failure
                log.warning("%s: %s", chore.name, failure or "well again")
            if self._stopping.wait(max(pause, 0)):
                return

    def _is_another_watching(self, chore: Chore) -> bool:
        """Tell, without a playbook, whether another controller watches, which lives as far as anybody knows."""
        return chore.watches and self._watch_lock is not None and not self._watch_lock.may_watch()

    def _is_ours(self) -> bool:
        """Take the lock, which the kernel drops with this process, unless another worker has it."""
        with self._locking:
            if self._lock is None:
                lock = open(os.path.join(self._directory, LOCK), "w")  # noqa: SIM115  # as long as this worker lives
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    lock.close()
                    return False
                self._lock = lock
            return True

    def _run(self, chore: Chore) -> str:
        """Run the chore to its end, and return its last line if it failed. Raises OSError, TimeoutError."""
        marker = mark(chore.name, self._directory)
        supervisor.reap(marker)  # what a worker that was killed left
        lock = self._watch_lock if chore.leased else None
        descriptors = () if lock is None else (lock.hold(),)
        number = {} if lock is None else {VARIABLE: str(lock.number)}
        with tempfile.TemporaryFile() as output:  # and no pipe, which others may keep open
            process = subprocess.Popen(
                chore.command,
                # what is written comes in its order, so that the last line is the last one
                env={**chore.environment, **number, "PYTHONUNBUFFERED": "1", supervisor.MARKER: marker},
                pass_fds=descriptors,
                cwd=chore.directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            late = self._wait(process, chore.patience)
            supervisor.reap(marker)
            if late:
                return f"it was not done within {chore.patience:g} s, and ended"
            output.seek(max(output.seek(0, os.SEEK_END) - LAST_WORDS, 0))
            lines = output.read().decode(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return (said or [f"it ended with {process.returncode}"])[-1] if process.returncode else ""

    def _wait(self, process: subprocess.Popen[bytes], patience: float) -> bool:
        """Wait for the end of the process, and tell whether it had to be killed for taking too long."""
        waited = 0.0
        while process.poll() is None:
            if self._stopping.wait(0.1) or waited > patience:
                process.kill()
                process.wait()
                return not self._stopping.is_set()
            waited += 0.1
        return False
