# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Samples of hosts and guests in the ledger's home: a file of fixed size for each, and one with the newest of all.

A file holds two rings: minutes of a day, and quarters of an hour of a month. The place of a record follows from its
time, which it holds, so that an old one is known and written over: nothing is ever moved, and a write that was cut off
costs one record.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import struct
import typing as t
import urllib.parse

from .._host.files import read_text, write_atomically
from .._host.locks import locked_directory
from .._json import JsonMapping, JsonObject
from .rates import LONGEST, MEASURES, Reading, Values, measured

DIRECTORY = "samples"  # in the ledger's home
NEWEST = "newest.json"
HOST, GUEST = "host", "guest"
FRESH = 300.0  # seconds for which the newest sample is true
_FORMAT = 1  # in the files' names: another order of measures is another one
_RECORD = struct.Struct(f"<II{2 * len(MEASURES)}f")  # time, how many samples, their means, their peaks
_UNKNOWN = math.nan


@dataclasses.dataclass(frozen=True)
class Ring:
    """Part of a file: `count` records, each of `seconds`."""

    seconds: int
    count: int
    offset: int

    @property
    def size(self) -> int:
        return self.count * _RECORD.size

    def place(self, slot: int) -> int:
        """Return where the record of the time `slot` stands in the file."""
        return self.offset + slot // self.seconds % self.count * _RECORD.size


_MINUTES = Ring(60, 1440, 0)
_QUARTERS = Ring(900, 2880, _MINUTES.size)
RINGS = (_MINUTES, _QUARTERS)
KEPT = _QUARTERS.seconds * _QUARTERS.count  # seconds after which nothing is left of what is gone


@dataclasses.dataclass(frozen=True)
class Record:
    """Samples of some time that begins `at`, in seconds since the epoch: their means and peaks by measure."""

    at: int
    samples: int
    mean: Values
    peak: Values

    @classmethod
    def of(cls, data: bytes) -> Record:
        at, samples, *numbers = _RECORD.unpack(data)
        known = [None if math.isnan(number) else number for number in numbers]
        return cls(at, samples, dict(zip(MEASURES, known)), dict(zip(MEASURES, known[len(MEASURES) :])))

    @property
    def data(self) -> bytes:
        numbers = [values[name] for values in (self.mean, self.peak) for name in MEASURES]
        return _RECORD.pack(self.at, self.samples, *(_UNKNOWN if each is None else each for each in numbers))


def joined(records: t.Sequence[Record], at: int) -> Record:
    """Make one record of several: means weighed by their samples, and the highest peaks."""
    mean: dict[str, float | None] = {}
    peak: dict[str, float | None] = {}
    for name in MEASURES:
        means = [(record.samples, value) for record in records if (value := record.mean[name]) is not None]
        total = sum(samples for samples, _value in means)
        mean[name] = sum(samples * value for samples, value in means) / total if total else None
        peak[name] = max((value for record in records if (value := record.peak[name]) is not None), default=None)
    return Record(at, sum(record.samples for record in records), mean, peak)


@dataclasses.dataclass(frozen=True)
class Window:
    """Time up to now that a graph shows, in steps, both in seconds."""

    seconds: int
    step: int


WINDOWS: t.Mapping[str, Window] = {
    "hour": Window(3600, 60),
    "day": Window(24 * 3600, 300),
    "week": Window(7 * 24 * 3600, 1800),
    "month": Window(30 * 24 * 3600, 3 * 3600),
}


class Samples:
    """Samples in the directory `home` of a ledger."""

    def __init__(self, home: str) -> None:
        self._directory = os.path.join(home, DIRECTORY)

    def record(self, answers: t.Mapping[str, JsonMapping], guests: t.Container[str], now: float) -> None:
        """Record what the step `counters` told of hosts, by their names, at the time `now`. Of guests, only those with
        the UUIDs `guests` are ours to keep. Raises OSError, ConflictError."""
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        with locked_directory(self._directory):  # of two runs at once, the second goes on from the first one's readings
            before = self._state()
            after = _kept(before, answers, now)
            for host, answer in answers.items():
                readings = {_key(HOST, host): answer["host"]}
                readings |= {_key(GUEST, each["uuid"]): each for each in answer["guests"] if each["uuid"] in guests}
                for key, entry in readings.items():
                    reading = Reading.of(entry, host)
                    values = measured(_reading(before.get(key)), reading)
                    after[key] = {"at": now, "host": host, "reading": dataclasses.asdict(reading), "values": values}
                    self._write(key, values, now)
            path = os.path.join(self._directory, NEWEST)
            write_atomically(path, json.dumps({"format": _FORMAT, "entries": after}), 0o600)
            self._forget(now)

    def newest(self, now: float) -> dict[tuple[str, str], Values]:
        """Return the newest values of each ("host" or "guest", its name or UUID) that are not too old."""
        entries = {key: entry for key, entry in self._state().items() if now - entry["at"] <= FRESH}
        return {(key.partition("-")[0], _name(key)): entry["values"] for key, entry in entries.items()}

    def knows(self, kind: str, name: str) -> bool:
        """Tell whether there is anything of this host or guest."""
        return os.path.exists(self._path(_key(kind, name)))

    def history(self, kind: str, name: str, window: Window, now: float) -> list[Record]:
        """Return a record for each step of the window, with no samples where there are none, the oldest first."""
        ring = next((each for each in RINGS if each.seconds * each.count >= window.seconds), _QUARTERS)
        last = int(now) // window.step * window.step
        first = last - window.seconds + window.step
        steps: dict[int, list[Record]] = {at: [] for at in range(first, last + 1, window.step)}
        for record in self._read(_key(kind, name), ring):
            step = record.at // window.step * window.step
            if step in steps:
                steps[step].append(record)
        return [joined(records, at) for at, records in steps.items()]

    def _path(self, key: str) -> str:
        return os.path.join(self._directory, f"{key}.{_FORMAT}")

    def _state(self) -> JsonObject:
        with contextlib.suppress(ValueError, AttributeError):  # of a file that somebody else wrote
            state = json.loads(read_text(os.path.join(self._directory, NEWEST)) or "{}")
            if state.get("format") == _FORMAT:
                return t.cast(JsonObject, state["entries"])
        return {}

    def _write(self, key: str, values: Values, now: float) -> None:
        if all(value is None for value in values.values()):
            return
        fd = os.open(self._path(key), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            for ring in RINGS:
                slot = int(now) // ring.seconds * ring.seconds
                record = Record(slot, 1, values, values)
                there = os.pread(fd, _RECORD.size, ring.place(slot))
                if len(there) == _RECORD.size and (old := Record.of(there)).at == slot:
                    record = joined([old, record], slot)
                os.pwrite(fd, record.data, ring.place(slot))
        finally:
            os.close(fd)

    def _read(self, key: str, ring: Ring) -> t.Iterator[Record]:
        try:
            with open(self._path(key), "rb") as file:
                file.seek(ring.offset)
                data = file.read(ring.size)
        except FileNotFoundError:
            return
        whole = len(data) - len(data) % _RECORD.size
        for offset in range(0, whole, _RECORD.size):
            if data[offset : offset + 4] != b"\0\0\0\0":
                yield Record.of(data[offset : offset + _RECORD.size])

    def _forget(self, now: float) -> None:
        """Remove the files of what was last seen before the oldest record of any."""
        for entry in os.scandir(self._directory):
            with contextlib.suppress(OSError):
                if entry.name != NEWEST and entry.stat(follow_symlinks=False).st_mtime < now - KEPT:
                    os.unlink(entry.path)


def _kept(before: JsonObject, answers: t.Container[str], now: float) -> JsonObject:
    """Return the entries of what may still be read again: on hosts that did not answer this time."""
    return {
        key: entry for key, entry in before.items() if entry["host"] not in answers and now - entry["at"] <= LONGEST
    }


def _reading(entry: JsonMapping | None) -> Reading | None:
    return None if entry is None else Reading(**entry["reading"])


def _key(kind: str, name: str) -> str:
    return f"{kind}-{urllib.parse.quote(name, safe='')}"


def _name(key: str) -> str:
    return urllib.parse.unquote(key.partition("-")[2])
