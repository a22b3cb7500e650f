# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Identity of this machine, and the marks that ledgers leave on it: what every trip compares before its first step.

Two lines swapped in an inventory, an address given to another host, a restored copy of the ledger: each has a run work
on a machine, or from a state, that it does not mean, and there it would remove what runs. In the state directory,
`ledgers/<UUID>.json` holds the name that this ledger has for the host, and the mark that its last trip left.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import re
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping, JsonObject
from .own_directory import NotOwnError, opened_own, own_entry
from .records import has_guests

Identity = dict[str, str]  # machine_id, product_uuid; what cannot be read is left out

DIRECTORY = "ledgers"  # in the state directory: root's, like its files
LARGEST = 4096  # bytes of a mark's file
# What of a machine outlives a reboot, by name: its file below the root, and the form of it
SOURCES = {
    "machine_id": ("etc/machine-id", re.compile(r"[0-9a-f]{32}")),
    "product_uuid": (
        "sys/class/dmi/id/product_uuid",
        re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    ),
}
# What boards have whose vendor gave them none: many are shipped with the same
SHARED = {
    "0" * 32,
    "00000000-0000-0000-0000-000000000000",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
    "03000200-0400-0500-0006-000700080009",
}
# Why a trip is refused
OTHER_MACHINE, OTHER_NAME, UNKNOWN_MARK, NOT_PRIVATE = "other_machine", "other_name", "unknown_mark", "not_private"


@dataclasses.dataclass(frozen=True)
class Expected:
    """Expectation of the ledger `ledger` (its UUID) about the host that a trip is for, if it is `known` there at all.

    `marks` are those that it may carry, None where that is not compared; `leave` is left there, unless it is None.
    `former` is a name that it had before. Of a machine that has `replaced` another one nothing is compared, and a mark
    that it carries goes."""

    ledger: str
    host: str
    known: bool = True
    identity: Identity | None = None
    marks: tuple[str, ...] | None = None
    leave: str | None = None
    former: str | None = None
    replaced: bool = False

    @classmethod
    def of(cls, values: JsonMapping) -> Expected:
        """The one that `values`, JSON, describe."""
        marks = values["marks"]
        return cls(**{**values, "marks": None if marks is None else tuple(marks)})


@dataclasses.dataclass(frozen=True)
class Mark:
    """The content of a mark's file: the name of the host in that ledger, and what its last trip left."""

    host: str
    mark: str


@dataclasses.dataclass(frozen=True)
class Seen:
    """Findings on a host before the first step. `refused` says why no step is taken; `left`, that the mark of the trip
    is there."""

    identity: Identity
    mark: Mark | None = None
    refused: str | None = None
    left: bool = False

    @classmethod
    def of(cls, values: JsonMapping) -> Seen:
        """The one that `values`, JSON, describe."""
        mark = values["mark"]
        return cls(**{**values, "mark": None if mark is None else Mark(**mark)})


def differs(identity: JsonMapping, other: JsonMapping) -> bool:
    """Tell whether these cannot be one machine: something that both have is not the same."""
    return any(name in other and value != other[name] for name, value in identity.items())


def same(identity: JsonMapping, other: JsonMapping) -> bool:
    """Tell whether these are one machine: they have something in common, and nothing of it differs."""
    return bool(identity.keys() & other.keys()) and not differs(identity, other)


def identity_of(root: str = "/") -> Identity:
    """The identity of this machine, whose file system is at `root`."""
    identity = {}
    for name, (path, form) in SOURCES.items():
        with contextlib.suppress(OSError), open(os.path.join(root, path), encoding="ascii", errors="replace") as handle:
            value = handle.read(64).strip().lower()
            if form.fullmatch(value) and value not in SHARED:
                identity[name] = value
    return identity


def meet(expected: Expected, state_dir: str, check_mode: bool = False, root: str = "/") -> Seen:
    """Compare this machine with what is `expected`, and leave the mark here; nothing is left after a refusal.

    A file system that takes no mark keeps nobody from making room on it: then nothing is left, and that is said.
    Raises NovaliteError for the mark of a machine that was replaced, where it cannot be removed."""
    identity = identity_of(root)
    if expected.replaced:
        forget(expected.ledger, state_dir, check_mode)
        return Seen(identity)
    leave = None if check_mode else expected.leave
    try:
        with _directory(state_dir, make=leave is not None) as directory:
            if leave is not None:
                # Compared and replaced under one lock: of two trips at once, the second one meets the first one's mark
                fcntl.flock(directory, fcntl.LOCK_EX)
            mark = _read(directory, expected.ledger)
            refused = _refusal(expected, identity, mark)
            if refused is None and mark is not None and not expected.known and expected.marks is not None:
                # It has left the cloud and is back, or a newer ledger has guests on it
                if has_guests(state_dir, expected.ledger):
                    return Seen(identity, mark, UNKNOWN_MARK)
                if not check_mode:
                    _remove(directory, expected.ledger)
            if refused is not None or leave is None:
                return Seen(identity, mark, refused)
            return Seen(identity, mark, left=_write(directory, expected.ledger, Mark(expected.host, leave)))
    except NotOwnError:
        return Seen(identity, None, NOT_PRIVATE)
    except OSError:  # no such directory, no room for it, or a file system that is read-only
        return Seen(identity, None, _refusal(expected, identity, None))


def marks_here(state_dir: str) -> dict[str, JsonObject]:
    """The marks on this host by their ledgers' UUIDs, without those that are not root's alone."""
    marks: dict[str, JsonObject] = {}
    with contextlib.suppress(OSError, NotOwnError), _directory(state_dir, make=False) as directory:
        for name in sorted(os.listdir(directory)):
            ledger, ending = os.path.splitext(name)
            with contextlib.suppress(OSError, NotOwnError):
                mark = _read(directory, ledger) if ending == ".json" else None
                if mark is not None:
                    marks[ledger] = dataclasses.asdict(mark)
    return marks


def forget(ledger: str, state_dir: str, check_mode: bool = False) -> bool:
    """Remove the mark of `ledger` from this host; return whether there was one. Raises NovaliteError."""
    try:
        with _directory(state_dir, make=False) as directory:
            os.stat(_name(ledger), dir_fd=directory, follow_symlinks=False)
            if not check_mode:
                _remove(directory, ledger)
            return True
    except FileNotFoundError:
        return False
    except (OSError, NotOwnError) as error:
        raise NovaliteError(f"{state_dir}/{DIRECTORY}: the ledger's mark cannot be removed: {error}") from error


def _refusal(expected: Expected, identity: Identity, mark: Mark | None) -> str | None:
    if expected.identity is not None and differs(expected.identity, identity):
        return OTHER_MACHINE
    if mark is None:
        return None
    if mark.host not in (expected.host, expected.former):
        return OTHER_NAME
    known_marks = expected.marks if expected.known else None
    return UNKNOWN_MARK if known_marks is not None and mark.mark not in known_marks else None


@contextlib.contextmanager
def _directory(state_dir: str, make: bool) -> t.Iterator[int]:
    """Open the directory of marks; yields its descriptor. Raises OSError, NotOwnError. Where the state directory leads
    to is the operator's choice; from there on no link is followed."""
    with opened_own(state_dir, make, 0o711, links=True) as parent:
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(DIRECTORY, 0o700, dir_fd=parent)
        with own_entry(DIRECTORY, os.O_RDONLY | os.O_DIRECTORY, parent) as fd:
            yield fd


def _name(ledger: str) -> str:
    return f"{os.path.basename(ledger)}.json"


def _read(directory: int, ledger: str) -> Mark | None:
    """The mark of `ledger`; None where there is none, or a damaged file. Raises as own_entry()."""
    try:
        with own_entry(_name(ledger), os.O_RDONLY, directory) as fd:
            content = json.loads(os.read(fd, LARGEST))
        return Mark(str(content["host"]), str(content["mark"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _remove(directory: int, ledger: str) -> None:
    os.unlink(_name(ledger), dir_fd=directory)


def _write(directory: int, ledger: str, mark: Mark) -> bool:
    """Have the mark of `ledger` on the disk; return whether that went well. Raises NotOwnError.

    In its place: that takes no room on a full file system, and one flush of the disk, which a new file takes several
    of. What a power cut leaves in between is no mark, and goes for none."""
    try:
        with own_entry(_name(ledger), os.O_RDWR | os.O_CREAT, directory) as fd:
            size = os.pwrite(fd, (json.dumps(dataclasses.asdict(mark)) + "\n").encode(), 0)
            os.ftruncate(fd, size)
            os.fdatasync(fd)
    except OSError:
        return False
    return True
