# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Events of a run's steps while they happen: from the action plug-ins, in Ansible's workers, to its callbacks, to
whoever started the run, and to those who follow all runs of this machine.

A worker is a fork of the process that has the callbacks, so a pipe that is made there before is all that it takes. It
is made for the first callback that listens. Who started the run reads a FIFO, which STEPS_VARIABLE names; who follows
all runs has one in the directory FOLLOWERS of the ledger's home. In each an event is a line of JSON. Where nobody
reads, nothing is followed. An event that finds a pipe full is lost.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import errno
import json
import os
import secrets
import select
import stat
import threading
import time
import typing as t

from ..module_utils._json import Json, JsonMapping
from . import _home

TICK = 1.0  # seconds after which listeners hear that there is nothing new
STEPS_VARIABLE = "NOVALITE_STEPS"  # of the environment: path of a FIFO
FOLLOWERS = "followers"  # directory in the ledger's home
MOST = 4096  # bytes of an event: what a pipe takes as a whole (PIPE_BUF)
MOST_UUIDS = 50  # that an event names

Kind = t.Literal["begin", "moving", "end"]


@dataclasses.dataclass(frozen=True)
class Event:
    """Word of a step of a trip: it begins, bytes are `done` of `total` (0 if nobody knows), it ends after `seconds`.
    `at` is seconds of this machine's monotonic clock. The trip goes on after a failure of a step that `may_fail`.
    `uuids` are of what the trip is about, servers among others: see uuids_in()."""

    host: str
    step: str
    module: str
    kind: Kind
    at: float
    done: int = 0
    total: int = 0
    changed: bool = False
    failed: bool = False
    seconds: float = 0.0
    may_fail: bool = False
    uuids: tuple[str, ...] = ()

    @classmethod
    def of_line(cls, line: bytes) -> Event:
        """Read what tell() wrote. Raises TypeError, ValueError."""
        said = json.loads(line)
        return cls(**{**said, "uuids": tuple(said["uuids"])})

    @classmethod
    def of_host(
        cls, host: str, steps: c.Sequence[JsonMapping], said: JsonMapping, behind: float, uuids: tuple[str, ...] = ()
    ) -> Event:
        """Read what a host `said` (module_utils/_host/events.py) of one of these `steps`; its clock is `behind` by so
        many seconds. Raises LookupError, TypeError, ValueError for what no host of ours says."""
        number = int(said["step"])
        if number < 0:
            raise ValueError(number)
        step = steps[number]
        kind: Kind = "begin" if said.get("event") == "begin" else "end" if said.get("event") == "end" else "moving"
        return cls(
            host,
            str(step["name"]),
            str(step["module"]),
            kind,
            float(said["at"]) + behind,
            int(said.get("done") or 0),
            int(said.get("total") or 0),
            said.get("changed") is True,
            said.get("failed") is True,
            float(said.get("seconds") or 0),
            step.get("may_fail") is True,
            uuids,
        )

    @classmethod
    def of_result(cls, host: str, step: JsonMapping, done: JsonMapping, uuids: tuple[str, ...] = ()) -> Event:
        """Make the end of a `step` (name, module, may_fail) of its result on the host (`seconds`, `result`)."""
        return cls(
            host,
            str(step["name"]),
            str(step["module"]),
            "end",
            time.monotonic(),
            changed=bool(done["result"].get("changed")),
            failed=bool(done["result"].get("failed")),
            seconds=float(done["seconds"]),
            may_fail=step.get("may_fail") is True,
            uuids=uuids,
        )


def uuids_in(steps: c.Iterable[JsonMapping]) -> tuple[str, ...]:
    """The UUIDs of the first MOST_UUIDS things that the arguments of `steps` describe, in their order."""
    uuids: dict[str, None] = {}
    left: list[Json] = [step["args"] for step in steps][::-1]
    while left and len(uuids) < MOST_UUIDS:
        value = left.pop()
        if isinstance(value, dict):
            if isinstance(value.get("uuid"), str):
                uuids[value["uuid"]] = None
            left += list(value.values())[::-1]
        elif isinstance(value, list):
            left += value[::-1]
    return tuple(uuids)


Listener = t.Callable[[t.Sequence[Event]], None]

_writers: list[int] = []
_listeners: list[Listener] = []


def listen(listener: Listener) -> None:
    """Have `listener` hear events as they come, in a thread of its own, and every TICK seconds an empty list. To be
    called in the process of callbacks, before there are workers. One that raises is not asked again."""
    _listeners.append(listener)
    if len(_listeners) == 1:
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        _writers.append(writer)
        threading.Thread(target=_read, args=(reader,), name="novalite events", daemon=True).start()


def is_heard(home: str) -> bool:
    """Tell whether somebody reads what is told in a run of the ledger in this home."""
    with _pipes(home) as pipes:
        return bool(pipes)


def tell(event: Event, home: str) -> None:
    """Pass an event on to whoever reads of runs of the ledger in this home."""
    with _pipes(home) as pipes:
        line = json.dumps(dataclasses.asdict(event)).encode() + b"\n" if pipes else b""
        if len(line) > MOST:
            return
        for pipe in pipes:
            with contextlib.suppress(OSError):  # full, or nobody reads any more
                os.write(pipe, line)


@contextlib.contextmanager
def following(home: str) -> t.Iterator[t.Iterator[Event]]:
    """Follow all runs of the ledger in this home: gives their events as they come, without an end. Raises OSError for
    a home in which no FIFO can be made."""
    directory = os.path.join(home, FOLLOWERS)
    with contextlib.suppress(FileExistsError):
        os.mkdir(directory, 0o700)
    for path in _followers(home):
        with contextlib.suppress(OSError):
            _remove_unread(path)
    path = os.path.join(directory, f"{os.getpid()}-{secrets.token_hex(4)}")
    os.mkfifo(f"{path}.new", 0o600)
    reader = os.open(f"{path}.new", os.O_RDWR)  # a writer, too: else it ended whenever there is no other
    os.rename(f"{path}.new", path)  # from here on others may find that nobody reads it
    try:
        _home.share(home, directory, path)
        with open(reader, "rb") as lines:
            yield _events_of(lines)
    finally:
        os.unlink(path)


def _events_of(lines: t.Iterable[bytes]) -> t.Iterator[Event]:
    for line in lines:
        with contextlib.suppress(TypeError, ValueError, LookupError):  # of a run by another release
            yield Event.of_line(line)


def _followers(home: str) -> list[str]:
    """The paths of the FIFOs of those who follow all runs, the dead among them."""
    try:
        return [entry.path for entry in os.scandir(os.path.join(home, FOLLOWERS)) if not entry.name.endswith(".new")]
    except OSError:
        return []


def _remove_unread(path: str) -> None:
    """Remove a FIFO that a follower left behind who was killed."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW))
    except OSError as error:
        if error.errno == errno.ENXIO:
            os.unlink(path)


@contextlib.contextmanager
def _pipes(home: str) -> t.Iterator[list[int]]:
    """Open all pipes that somebody reads, to be written to."""
    paths = [os.environ[STEPS_VARIABLE]] if os.environ.get(STEPS_VARIABLE) else []
    pipes = list(_writers)
    with contextlib.ExitStack() as opened:
        for path in [*paths, *_followers(home)]:
            with contextlib.suppress(OSError):  # it is no more, or nobody reads it
                fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
                opened.callback(os.close, fd)
                if stat.S_ISFIFO(os.fstat(fd).st_mode):
                    pipes.append(fd)
        yield pipes


def _read(reader: int) -> None:
    rest = b""
    while True:
        ready = select.select([reader], [], [], TICK)[0]
        data = os.read(reader, 65536) if ready else b""
        *lines, rest = (rest + data).split(b"\n")
        events = [Event.of_line(line) for line in lines]
        for listener in list(_listeners):
            try:
                listener(events)
            except Exception:  # a mistake of ours costs the view, never the run
                _listeners.remove(listener)
