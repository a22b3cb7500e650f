# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Events of a run's steps while they happen: from the action plug-ins, in Ansible's workers, to its callbacks, and to
whoever started the run.

A worker is a fork of the process that has the callbacks, so a pipe that is made there before is all that it takes. It
is made for the first callback that listens. Who started the run reads a FIFO, which STEPS_VARIABLE names, and in which
each event is a line of JSON. With neither nothing is followed. An event that finds a pipe full is lost.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import json
import os
import select
import stat
import threading
import time
import typing as t

from ..module_utils._json import JsonMapping

TICK = 1.0  # seconds after which listeners hear that there is nothing new
STEPS_VARIABLE = "NOVALITE_STEPS"  # of the environment: path of a FIFO
MOST = 4096  # bytes of an event: what a pipe takes as a whole (PIPE_BUF)

Kind = t.Literal["begin", "moving", "end"]


@dataclasses.dataclass(frozen=True)
class Event:
    """Word of a step of a trip: it begins, bytes are `done` of `total` (0 if nobody knows), it ends after `seconds`.
    `at` is seconds of this machine's monotonic clock. The trip goes on after a failure of a step that `may_fail`."""

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

    @classmethod
    def of_host(cls, host: str, steps: c.Sequence[JsonMapping], said: JsonMapping, behind: float) -> Event:
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
        )

    @classmethod
    def of_result(cls, host: str, step: JsonMapping, done: JsonMapping) -> Event:
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
        )


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


def is_heard() -> bool:
    return bool(_writers) or STEPS_VARIABLE in os.environ


def tell(event: Event) -> None:
    """Pass an event on to whoever listens."""
    if not is_heard():
        return
    line = json.dumps(dataclasses.asdict(event)).encode() + b"\n"
    if len(line) > MOST:
        return
    for writer in _writers:
        with contextlib.suppress(OSError):  # full, or nobody reads any more
            os.write(writer, line)
    if path := os.environ.get(STEPS_VARIABLE):
        with contextlib.suppress(OSError):  # it is no more, nobody reads it, or it is full
            fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                if stat.S_ISFIFO(os.fstat(fd).st_mode):
                    os.write(fd, line)
            finally:
                os.close(fd)


def _read(reader: int) -> None:
    rest = b""
    while True:
        ready = select.select([reader], [], [], TICK)[0]
        data = os.read(reader, 65536) if ready else b""
        *lines, rest = (rest + data).split(b"\n")
        events = [Event(**json.loads(line)) for line in lines]
        for listener in list(_listeners):
            try:
                listener(events)
            except Exception:  # a mistake of ours costs the view, never the run
                _listeners.remove(listener)
