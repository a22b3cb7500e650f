# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Following a trip while it happens: a second command on the task's connection, which waits at the host for events.

Ansible's connections return what a command says when it has ended. So the host's end of a trip writes its events to a
file (module_utils/_host/events.py), and this one asks for what is new in it, once a trip has lasted for a while. A
question is answered as soon as there is something to tell. Over ssh it is a session of the connection that Ansible
shares; it becomes who the task becomes. Where a question fails there are no events.

As long as a host works for a run, the ledger is told from time to time that the run is alive.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import contextvars
import copy
import json
import os
import re
import shlex
import threading
import time
import typing as t

from ..module_utils._host.events import OVER
from ..module_utils._host.trip import MARK, TOKENS
from ..module_utils._json import Json, JsonMapping
from ..module_utils._ledger.placement.host_marks import open_marks
from . import _events

AFTER = 0.6  # seconds of a trip after which it is followed; most have ended by then
PAUSE = 0.5  # seconds between an answer and the next question
ALIVE_AFTER = 15.0  # seconds of a trip after which the ledger is told; hundreds of short ones wait for one another
ALIVE_EVERY = 60.0  # seconds between one sign of life and the next: a tenth of what is taken for death
_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
WAIT = 10.0  # seconds that a question waits at the host for something new

# argv: the file, how much of it is known, seconds to wait. It says the host's clock, and the lines that are new; it
# fails where there is no such file, or none any more.
_ASK = (
    """
import os,sys,time
p,o,w=sys.argv[1],int(sys.argv[2]),float(sys.argv[3])
e=time.monotonic()+w
while 1:
 try:
  f=os.open(p,os.O_RDONLY|os.O_NOFOLLOW|os.O_NONBLOCK)
  try:
   if os.fstat(f).st_size<o:sys.exit(1)
   b=os.pread(f,65536,o)
  finally:os.close(f)
  m=0
 except OSError:
  b,m=b'',1
 b=b[:b.rfind(b'\\n')+1]
 if b or m and o or time.monotonic()>e:break
 time.sleep(.1)
if m or b==OVER:sys.exit(1)
print('MARK%s '%time.monotonic()+b.decode().replace('\\n',' '))
""".replace("MARK", MARK)
    .replace("OVER", repr(OVER))
    .strip()
)


class Asker(t.Protocol):
    """Ansible's side of a task: an action plug-in."""

    _connection: t.Any

    def _low_level_execute_command(self, cmd: str, *, in_data: bytes) -> JsonMapping: ...


class Trip:
    """Teller of the `steps` of a trip to `host`, in a run of the ledger in `home`: that each ended is told once."""

    def __init__(self, host: str, steps: c.Sequence[JsonMapping], home: str) -> None:
        self._host = host
        self._steps = steps
        self._home = home
        self._uuids = _events.uuids_in(steps)
        self._ended: set[int] = set()
        self._lock = threading.Lock()
        self.over = threading.Event()

    def heard(self, said: str, behind: float) -> None:
        """Tell what the host `said`, lines of JSON without what is between them; its clock is `behind` by seconds."""
        decoder, at = json.JSONDecoder(), 0
        while at < len(said):
            line, at = decoder.raw_decode(said, at)
            event = _events.Event.of_host(self._host, self._steps, line, behind, self._uuids)
            with self._lock:
                if self.over.is_set():
                    return
                if event.kind == "end":
                    self._ended.add(line["step"])
                _events.tell(event, self._home)
            at += 1

    def answered(self, results: c.Sequence[JsonMapping]) -> None:
        """Tell the end of those steps that it was not told of, by the `results` of the trip, which is over."""
        with self._lock:
            self.over.set()
        for number, done in enumerate(results):
            if number not in self._ended:
                event = _events.Event.of_result(self._host, self._steps[number], done, self._uuids)
                _events.tell(event, self._home)


@contextlib.contextmanager
def followed(action: Asker, python: str, token: str, trip: Trip) -> t.Iterator[Trip]:
    """Tell, while the block lasts, what becomes of the steps of `trip`, which goes by `token`."""

    def follow() -> None:
        with contextlib.suppress(Exception):  # whatever goes wrong here, the trip goes on
            if not trip.over.wait(AFTER):
                _follow(_apart(action), python, token, trip)

    # Ansible keeps what its plug-ins ask for in variables of the context. The thread is not waited for: its last
    # question may be under way, and ends by itself.
    threading.Thread(target=contextvars.copy_context().run, args=(follow,), name="novalite events", daemon=True).start()
    try:
        yield trip
    finally:
        trip.over.set()


@contextlib.contextmanager
def alive(place: JsonMapping, about: t.Callable[[], c.Sequence[str]]) -> t.Iterator[None]:
    """Give the ledger at this `place` (`home`, `ledger_url`) signs of life while the block lasts, of what it is `about`
    (UUIDs of servers and volumes). A run that is killed, worker and all, gives none any more."""
    over = threading.Event()

    def tell() -> None:
        wait = ALIVE_AFTER
        while not over.wait(wait):
            wait = ALIVE_EVERY
            with contextlib.suppress(Exception):  # a ledger that is busy hears of it the next time
                if (ids := about()) and (marks := open_marks(place["home"], place["ledger_url"])) is not None:
                    with contextlib.closing(marks):
                        marks.give_sign_of_life(ids)

    # Not waited for: it may be waiting for a database. A task that has ended is under way no more, and is not touched.
    context = contextvars.copy_context()  # of Ansible's templates
    threading.Thread(target=context.run, args=(tell,), name="novalite signs of life", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def worked_on(parts: t.Iterable[Json]) -> list[str]:
    """List the UUIDs that occur in `parts` of steps or plans."""
    return sorted(set(_UUID.findall(json.dumps(list(parts), default=str))))


def _apart(action: Asker) -> Asker:
    """`action` over a connection of its own: connections keep state of the command that they are at."""
    apart = copy.copy(action)
    apart._connection = copy.copy(action._connection)
    become = getattr(action._connection, "become", None)
    if become is not None:
        apart._connection.set_become_plugin(copy.copy(become))
    return apart


def _follow(action: Asker, python: str, token: str, trip: Trip) -> None:
    path, known = os.path.join(TOKENS, token), 0
    while not trip.over.is_set():
        argv = [python, "-I", "-S", "-c", _ASK, path, str(known), str(WAIT)]
        done = action._low_level_execute_command(shlex.join(argv), in_data=b"\n")
        answers = [line.partition(MARK)[2] for line in done["stdout_lines"] if MARK in line]
        if done["rc"] != 0 or not answers:
            return
        clock, _space, said = answers[-1].partition(" ")
        known += len(said.encode())
        trip.heard(said, time.monotonic() - float(clock))
        trip.over.wait(PAUSE)
