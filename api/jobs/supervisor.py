# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The process that a run's playbook runs under: fresh for each run, with an environment of its own.

It holds the run's lock as long as one of the run's processes lives, hands events on, and ends all of them when its
worker dies, asks for it, or takes too long. It runs as a script and imports none of ours, so that it is quick to start;
a worker has one waiting, whose playbook waits, too, with Ansible imported. What worker and supervisor say to each other
are lines of JSON:

    <- {"ready": true}            -> {"ahead": {...}}      what all runs of the worker share, see `Ahead`
                                  -> {"run": {...}}        what to run, see `Run`
    <- {"locked": true}           -> {"go": true}          the worker looked once more: it is still to be run
    <- {"event": {...}} ...       -> {"cancel": true}      at any time; so does the end of the worker
    <- {"ended": {...}}

Linux only: /proc, flock and prctl.
"""

from __future__ import annotations

import os
import pathlib
import sys

if __name__ == "__main__":
    # as a script, Python put this directory first, where `queue.py` would be taken for the standard library's
    _here = str(pathlib.Path(__file__).resolve().parent)
    sys.path[:] = [path for path in sys.path if path and os.path.realpath(path) != _here]

import contextlib
import dataclasses
import fcntl
import json
import shlex
import shutil
import signal
import tempfile
import threading
import time
import typing as t

if t.TYPE_CHECKING:
    import ansible_runner
    import psycopg

MARKER = "NOVALITE_RUN_ID"  # in the environment of every process of a run
STEPS_VARIABLE = (
    "NOVALITE_STEPS"  # in the environment of a playbook: a FIFO, for what hosts are at (plugin_utils/_events.py)
)
STEP = "novalite_step"  # kind of the event that is made of a line of it, beside those of ansible-runner
UNKNOWN = "-" * 36  # its value until there is a run, whose id is a UUID
TELLING = 5.0  # seconds for what is left of the steps to be told when a playbook has ended
REAP_PATIENCE = 30.0  # seconds; what was sent SIGKILL and stays is in the kernel's hands
LOCK_INTERVAL = 0.1  # seconds between two tries
PING_INTERVAL = 2.0  # seconds between two looks at the connection that holds a lock in PostgreSQL
# Seconds. PostgreSQL gives up a silent client after 20 + 4 * 5; this side must have ended its run before.
KEEPALIVE = {"tcp_keepalives_idle": 20, "tcp_keepalives_interval": 5, "tcp_keepalives_count": 4}
SILENCE = 12  # seconds without an answer from PostgreSQL, after which this side ends its run
OWNER = "owner"  # file in a run's directory, locked by its supervisor
JUST_NOW = 60.0  # seconds for which a directory may be without that file
SUSPENDED = 20  # seconds for which this process did not get to run, after which the lock cannot be trusted

Event = dict[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Ahead:
    """The part of a request that is known before there is a run."""

    directory: str  # in which each run gets one of its own, which is removed at its end
    project: str  # working directory
    environment: dict[str, str]  # the playbook's


@dataclasses.dataclass(frozen=True)
class Run:
    """The worker's request."""

    id: str
    lock: str  # path of a file
    command: list[str]  # of ansible-playbook, without the extra variables
    variables: str  # YAML; goes into a file, never into a command line
    timeout: float  # seconds
    lock_url: str | None = None  # PostgreSQL, when workers are on several machines
    lock_number: int = 0
    trace: str | None = None  # file that notes when the lock was taken and given back


# --- The processes of a run -----------------------------------------------------------------------------------------


def processes_of(run_id: str) -> list[int]:
    """The processes of a run: those that were started with its marker in their environment, wherever they went.

    ansible-core puts each of its workers into a session of its own, so a process group does not hold them all. The
    masters of shared ssh connections, which serve other runs, too, are none of them.
    """
    marker = f"{MARKER}={run_id}".encode()
    pids = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if marker not in file.read().split(b"\0"):
                    continue
            with open(f"/proc/{name}/cmdline", "rb") as file:
                command = file.read()
        except OSError:  # gone, or another user's
            continue
        # a zombie has no command line any more; a master calls itself "ssh: <socket> [mux]"
        if command and not command.startswith(b"ssh: "):
            pids.append(int(name))
    return pids


def reap(run_id: str, patience: float = REAP_PATIENCE) -> int:
    """End every process of a run, and return how many there were. Raises TimeoutError when some do not go."""
    ended: set[int] = set()
    deadline = time.monotonic() + patience
    while pids := processes_of(run_id):
        ended.update(pids)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {pids} of run {run_id} do not end")
        time.sleep(0.02)
    return len(ended)


# --- The playbook ---------------------------------------------------------------------------------------------------


class Playbook:
    """ansible-playbook under ansible-runner, in a directory of its own, started before it knows what it is to play."""

    def __init__(self, ahead: Ahead, event: t.Callable[[Event], bool], is_cancelled: t.Callable[[], bool]) -> None:
        os.makedirs(ahead.directory, mode=0o700, exist_ok=True)
        for path in left_in(ahead.directory):
            shutil.rmtree(path, ignore_errors=True)
        self._directory = tempfile.mkdtemp(dir=ahead.directory)
        self._owner = open(f"{self._directory}/{OWNER}.new", "w")  # noqa: SIM115  # as long as this process lives
        fcntl.flock(self._owner, fcntl.LOCK_EX)
        os.rename(f"{self._directory}/{OWNER}.new", f"{self._directory}/{OWNER}")
        os.makedirs(f"{self._directory}/env", mode=0o700)
        os.mkfifo(f"{self._directory}/order", mode=0o600)
        self._order = os.open(f"{self._directory}/order", os.O_RDWR)  # waits for no reader
        os.mkfifo(f"{self._directory}/steps", mode=0o600)
        self._steps = os.open(f"{self._directory}/steps", os.O_RDWR)
        self._telling = threading.Thread(target=self._tell, args=(event,), name="steps", daemon=True)
        self._telling.start()
        self._done: ansible_runner.Runner | None = None
        started = threading.Event()
        arguments = {
            "private_data_dir": self._directory,
            "ident": "run",
            "binary": sys.executable,
            "cmdline": shlex.join([str(pathlib.Path(__file__).with_name("playbook.py")), f"{self._directory}/order"]),
            "project_dir": ahead.project,
            "fact_cache_type": "",  # facts of hosts are nothing to keep on a disk
            "quiet": True,
            "suppress_env_files": True,
            "event_handler": event,
            # what was asked for just before there was a process to end
            "cancel_callback": is_cancelled,
            "status_handler": lambda *_status, **_config: started.set(),
            # an answer within a moment when the playbook is ended from outside
            "settings": {"pexpect_timeout": 1, "suppress_output_file": False},
        }
        own = dict(os.environ)  # libpq reads some of it
        os.environ.clear()
        os.environ.update({**ahead.environment, MARKER: UNKNOWN, STEPS_VARIABLE: f"{self._directory}/steps"})
        # where no run comes, nobody waits for it; and the kernel ends the playbook with this thread, at the latest
        self._thread = threading.Thread(target=self._run, args=(arguments, started), daemon=True)
        self._thread.start()
        started.wait()  # ansible-runner has copied the environment
        os.environ.clear()
        os.environ.update(own)

    def play(self, run: Run) -> Event:
        """Tell it what to play, and wait for its end."""
        variables = f"{self._directory}/env/variables.yml"
        with open(os.open(variables, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(run.variables)
        order = {"marker": MARKER, "run": run.id, "command": [*run.command, "-e", f"@{variables}"]}
        os.write(self._order, f"{json.dumps(order)}\n".encode())
        self._thread.join()
        os.write(self._steps, b"\n")  # after all that was told
        self._telling.join(TELLING)
        if self._done is None:
            return {"rc": None, "output": "ansible-runner failed"}
        output = pathlib.Path(self._directory, "artifacts/run/stdout")
        tail = output.read_text(errors="replace")[-4000:] if output.exists() and self._done.rc else ""
        return {"rc": self._done.rc, "status": self._done.status, "output": tail}

    def _tell(self, event: t.Callable[[Event], bool]) -> None:
        """Pass on what hosts are at, until an empty line."""
        with open(self._steps, encoding="utf-8", errors="replace", closefd=False) as lines:
            for line in lines:
                if line == "\n":
                    return
                with contextlib.suppress(ValueError):  # of a worker that was killed as it wrote
                    event({"event": STEP, "created": None, "event_data": json.loads(line)})

    def is_waiting(self) -> bool:
        return self._thread.is_alive()

    def remove(self) -> None:
        """Remove its directory, again where ansible-runner has made a file there meanwhile: its thread goes on."""
        deadline = time.monotonic() + TELLING
        while os.path.exists(self._directory) and time.monotonic() < deadline:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _run(self, arguments: dict[str, t.Any], started: threading.Event) -> None:
        import ansible_runner

        try:
            self._done = ansible_runner.run(**arguments)
        finally:
            started.set()


def left_in(directory: str) -> list[str]:
    """The directories of supervisors that were killed: a living one holds a lock in its own."""
    left: list[str] = []
    if not os.path.isdir(directory):  # before the first supervisor
        return left
    for entry in os.scandir(directory):
        with contextlib.suppress(OSError):
            if not os.path.exists(f"{entry.path}/{OWNER}"):
                if entry.stat().st_mtime > time.time() - JUST_NOW:
                    continue
            else:
                with open(f"{entry.path}/{OWNER}") as owner:
                    if not _is_locked(owner):
                        continue
            left.append(entry.path)
    return left


# --- The supervisor -------------------------------------------------------------------------------------------------


class Supervisor:
    def __init__(self, read: t.TextIO, write: t.TextIO) -> None:
        self._read = read
        self._write = write
        self._writing = threading.Lock()
        self._go = threading.Event()
        self._stopping: str | None = None  # why
        self._run: Run | None = None
        self._playbook: Playbook | None = None
        self._held: psycopg.Connection | None = None  # the one that holds the lock in PostgreSQL

    def main(self) -> int:
        self._say({"ready": True})
        line = self._read.readline()
        if not line:
            return 0
        ahead = Ahead(**json.loads(line)["ahead"])
        playbook = self._playbook = self._start(ahead)
        line = self._read.readline()
        if not line:
            self._leave()
        if not playbook.is_waiting():  # it was killed meanwhile
            playbook.remove()
            playbook = self._playbook = self._start(ahead)
        run = self._run = Run(**json.loads(line)["run"])
        threading.Thread(target=self._listen, daemon=True).start()
        with open(run.lock, "w") as lock:
            self._take(lock, run)
            # what a supervisor that was killed left behind; nobody else can be at it, for the lock is here
            left = reap(run.id)
            self._note(run, "start", left)
            threading.Thread(target=self._watch, args=(run,), daemon=True).start()
            self._say({"locked": True, "left": left})
            self._go.wait()
            ended = {"stopped": self._stopping, "rc": None}
            if not self._stopping:
                ended = {**playbook.play(run), "stopped": self._stopping}
            reap(run.id)
            self._note(run, "end", 0)
            self._leave(ended)

    def _leave(self, ended: Event | None = None) -> t.NoReturn:
        """End this process, and with it a playbook that still waits, and leave nothing of them; say how a run ended."""
        if self._playbook is not None:
            self._playbook.remove()
        if ended is not None:
            self._say({"ended": ended})
        # not by closing: a process that is gone has given back every lock, whatever its threads are doing
        os._exit(0)

    # - Talking to the worker

    def _say(self, message: Event) -> None:
        with self._writing:
            try:
                self._write.write(json.dumps(message) + "\n")
                self._write.flush()
            except (BrokenPipeError, ValueError):
                self._stopping = self._stopping or "its worker died"

    def _listen(self) -> None:
        for line in self._read:
            message = json.loads(line)
            if message.get("go"):
                self._go.set()
            elif "cancel" in message:
                self._stop("cancelled")
        self._stop("its worker died")

    def _stop(self, reason: str) -> None:
        self._stopping = self._stopping or reason
        self._go.set()
        if self._run is not None:
            # Until nothing is found any more: processes may be starting others just now
            reap(self._run.id)

    # - The lock

    def _take(self, lock: t.TextIO, run: Run) -> None:
        """Wait for the lock. On one machine the file is enough, and frees itself with this process."""
        self._wait_until(lambda: _is_locked(lock))
        if run.lock_url is None:
            return
        import psycopg.sql

        held = psycopg.connect(run.lock_url, autocommit=True, connect_timeout=10, tcp_user_timeout=SILENCE * 1000)
        self._held = held
        for name, value in KEEPALIVE.items():
            held.execute(psycopg.sql.SQL("SET {} = {}").format(psycopg.sql.Identifier(name), value))
        held.execute("SET application_name = 'novalite run'")
        query = "SELECT pg_try_advisory_lock(%s)"
        self._wait_until(lambda: held.execute(query, [run.lock_number]).fetchone() == (True,))

    def _wait_until(self, taken: t.Callable[[], bool]) -> None:
        while not taken():
            if self._stopping:
                self._leave({"stopped": self._stopping, "rc": None})
            time.sleep(LOCK_INTERVAL)

    def _watch(self, run: Run) -> None:
        """End the run when it takes too long, and when the lock may be lost: before another one can have it."""
        deadline = time.monotonic() + run.timeout
        seen = time.monotonic()
        while True:
            time.sleep(0.2 if run.lock_url is None else min(PING_INTERVAL, 0.5))
            now = time.monotonic()
            if now > deadline:
                self._stop("timeout")
                deadline = now + 3600
            if self._held is None or now - seen < PING_INTERVAL:
                continue
            try:
                if now - seen > SUSPENDED:
                    raise TimeoutError
                with _limit(SILENCE, lambda: self._stop("its lock was lost")):
                    self._held.execute("SELECT 1")
            except Exception:
                self._stop("its lock was lost")
                return
            seen = time.monotonic()

    def _note(self, run: Run, what: str, left: int) -> None:
        if run.trace is not None:
            line = json.dumps({"run": run.id, "what": what, "at": time.time(), "pid": os.getpid(), "left": left})
            with open(run.trace, "a") as file:  # one write of less than a page: lines do not mix
                file.write(line + "\n")

    # - The playbook

    def _start(self, ahead: Ahead) -> Playbook:
        return Playbook(ahead, self._event, lambda: self._stopping is not None)

    def _event(self, event: Event) -> bool:
        self._say({"event": {name: event.get(name) for name in ("event", "created", "event_data")}})
        if self._stopping:
            reap(self._run.id if self._run else "")
        return False  # no file


def _is_locked(lock: t.TextIO) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


@contextlib.contextmanager
def _limit(seconds: float, late: t.Callable[[], None]) -> t.Iterator[None]:
    """Call `late` when the block takes longer than `seconds`."""
    timer = threading.Timer(seconds, late)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C in the terminal is the worker's to act on
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Its own copies: what ansible-runner or a library prints must not get between the messages
    read = os.fdopen(os.dup(0), "r")
    write = os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    import ansible_runner  # noqa: F401  # while waiting for work

    return Supervisor(read, write).main()


if __name__ == "__main__":
    sys.exit(main())
