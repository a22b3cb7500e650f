# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one clock by which the ledger's times are written, and by which ages are judged.

On PostgreSQL that is the database's, whatever the controllers' clocks say. On SQLite it is this machine's. A clock can
be set while the ledger is in use, and then everything that was written before looks as old, or as new, as the jump is
long. So the file `ledger.clock` beside ledger.sqlite keeps by how much clock and uptime differ, and when that changed:
nothing is older than that is known to be (`before`). What lies in the future is older than nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import typing as t

import sqlalchemy as sa

from ..._host.files import read_text, write_atomically

NEVER = -1.0  # before all that is written
SKEW = 5.0  # seconds by which clocks of one cloud may differ
_ASKED_EVERY = 60.0  # seconds for which this machine's monotonic clock counts on from the database's
_SAMPLE = "novalite_clock"  # of a database connection: its clock, and the monotonic one at that moment
_UPTIME, _BOOT = "/proc/uptime", "/proc/sys/kernel/random/boot_id"
_MODE = 0o600


def now(connection: sa.Connection) -> float:
    """Return the time in seconds since the epoch."""
    if connection.dialect.name == "sqlite":
        return time.time()
    sample: tuple[float, float] | None = connection.info.get(_SAMPLE)
    if sample is None or time.monotonic() - sample[1] > _ASKED_EVERY:
        asked = sa.select(sa.func.extract("epoch", sa.func.clock_timestamp()))
        sample = connection.info[_SAMPLE] = (float(connection.execute(asked).scalar_one()), time.monotonic())
    return sample[0] + time.monotonic() - sample[1]


def seconds(connection: sa.Connection) -> int:
    """Return the time in whole seconds since the epoch."""
    return int(now(connection))


def at(connection: sa.Connection, moment: float) -> float:
    """Return the time at that `moment` of this process's monotonic clock, in seconds since the epoch."""
    return now(connection) - (time.monotonic() - moment)


def before(connection: sa.Connection, age: float) -> float:
    """Return the time such that whatever was written until then is known to be `age` seconds old, or older.

    NEVER for a while after this machine's clock was set: nobody knows then how old anything is.
    """
    now_ = now(connection)
    path = connection.engine.url.database if connection.dialect.name == "sqlite" else None
    current = _current(now_)
    set_at = _set_at(_kept(path), current) if path and current else 0.0
    return now_ - age if now_ - set_at >= age else NEVER


def is_ahead(connection: sa.Connection, newest: float | None) -> bool:
    """Tell whether `newest`, the newest time that was written, is yet to come: then this clock, or the one by which it
    was written, is wrong, and no age means anything."""
    return newest is not None and newest > now(connection) + SKEW


def note(ledger: str) -> None:
    """Remember how this machine's clock stands, for the ledger in the file `ledger`. Done whenever that is opened."""
    kept, current = _kept(ledger), _current(time.time())
    if current is not None and not _agree(kept, current):
        text = json.dumps({**current, "set_at": _set_at(kept, current)})
        with contextlib.suppress(OSError):  # a user who may not write there leaves it to others
            write_atomically(_path(ledger), text, _MODE)


class _State(t.TypedDict, total=False):
    """State of a machine's clock: `offset` is by how much it is ahead of the uptime, in this boot, and stays the same
    until somebody sets the clock; `set_at` is when that was done."""

    boot: str
    offset: float
    set_at: float


def _current(now_: float) -> _State | None:
    """Return the clock's state now; None on a machine that does not tell its uptime."""
    with contextlib.suppress(ValueError, IndexError):
        uptime = float((read_text(_UPTIME) or "").split()[0])
        return {"boot": (read_text(_BOOT) or "").strip(), "offset": now_ - uptime, "set_at": now_}
    return None


def _kept(ledger: str) -> _State:
    with contextlib.suppress(ValueError, TypeError):
        return t.cast(_State, dict(json.loads(read_text(_path(ledger)) or "{}")))
    return {}


def _path(ledger: str) -> str:
    return f"{os.path.splitext(ledger)[0]}.clock"


def _agree(kept: _State, current: _State) -> bool:
    return kept.get("boot") == current["boot"] and abs(kept["offset"] - current["offset"]) <= SKEW


def _set_at(kept: _State, current: _State) -> float:
    """Return when the clock was set while the ledger was in use; 0 after a reboot, since no run goes on after one."""
    if kept.get("boot") != current["boot"]:
        return 0.0
    return kept["set_at"] if _agree(kept, current) else current["set_at"]
