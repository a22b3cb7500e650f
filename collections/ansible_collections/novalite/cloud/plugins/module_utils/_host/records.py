# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of the ledger's records on this host, so that a lost ledger can be made again: one file for each instance in
its directory, one for each adopted one, which has no directory here, one for some that are shelved and on no host, and
one for the host in the state directory. Mode 0600, root's alone.

They are written by the ledger's slices (_ledger/compute/slices.py) and are texts here.
"""

from __future__ import annotations

import contextlib
import json
import os
import typing as t

from .._errors import NovaliteError
from .._json import JsonObject
from .files import INSTANCES, instance_dir, write_atomically
from .own_directory import check_own, make_own

RECORD = "record.json"  # in an instance's directory
HOST_RECORD = "host-record.json"  # in the state directory
ADOPTED = "adopted"  # directory in the state directory: a record for each adopted instance, <uuid>.json
SHELVED = "shelved"  # likewise: a record for each instance on no host that this host keeps it of
MODE = 0o600
LARGEST = 64 << 20  # bytes of a record; the host's own one may be of a large cloud


def write_records(
    state_dir: str,
    records: t.Mapping[str, str],
    host_record: str | None = None,
    adopted: t.Mapping[str, str] | None = None,
    shelved: t.Mapping[str, str] | None = None,
) -> list[str]:
    """Write the `records` (UUID -> text) of instances that have a directory here, those of `adopted` ones, and the
    host's; return what changed. Of `shelved` ones no others of the same ledger stay.

    An instance without a directory has gone meanwhile: nothing is made for it. Raises NovaliteError, and NotOwnError
    where somebody else may write to the state directory.
    """
    check_own(state_dir)
    changed = []
    try:
        for directory, elsewhere in ((ADOPTED, adopted), (SHELVED, shelved)):
            if elsewhere and os.path.isdir(state_dir):
                make_own(os.path.join(state_dir, directory), links=True)
                paths = {uuid: _path(state_dir, directory, uuid) for uuid in sorted(elsewhere)}
                changed += [uuid for uuid, path in paths.items() if _replace(path, elsewhere[uuid])]
        if shelved is not None and host_record is not None:
            _forget_shelved(state_dir, _ledger_of(host_record), shelved)
        for uuid, text in sorted(records.items()):
            path = _record_path(state_dir, uuid)
            if os.path.isdir(os.path.dirname(path)) and _replace(path, text):
                changed.append(uuid)
        own = os.path.join(state_dir, HOST_RECORD)
        if host_record is not None and os.path.isdir(state_dir) and _replace(own, host_record):
            changed.append(HOST_RECORD)
    except OSError as error:
        raise NovaliteError(f"{error.filename}: what the ledger says cannot be kept here: {error.strerror}") from error
    return changed


def read_records(state_dir: str) -> JsonObject:
    """`{"records": {uuid: text}, "host_record": text or None}`; changes nothing. An instance's in its
    directory comes before one from elsewhere."""
    records = {}
    for directory in (SHELVED, ADOPTED, INSTANCES):
        for uuid in _uuids(state_dir, directory):
            with contextlib.suppress(NovaliteError):  # not an instance's
                text = _read(_path(state_dir, directory, uuid))
                if text is not None:
                    records[uuid] = text
    return {"records": records, "host_record": _read(os.path.join(state_dir, HOST_RECORD))}


def has_guests(state_dir: str, ledger: str) -> bool:
    """Tell whether a guest of this ledger is on the host, by the records of instances; changes nothing."""
    for directory in (INSTANCES, ADOPTED):
        for uuid in _uuids(state_dir, directory):
            with contextlib.suppress(NovaliteError):  # not an instance's
                if _ledger_of(_read(_path(state_dir, directory, uuid))) == ledger:
                    return True
    return False


def _record_path(state_dir: str, uuid: str) -> str:
    return os.path.join(instance_dir(state_dir, uuid), RECORD)


def adopted_path(state_dir: str, uuid: str) -> str:
    """The record of the adopted instance `uuid`. Raises NovaliteError for what is no UUID."""
    return _path(state_dir, ADOPTED, uuid)


def _path(state_dir: str, directory: str, uuid: str) -> str:
    if directory == INSTANCES:
        return _record_path(state_dir, uuid)
    return os.path.join(state_dir, directory, os.path.basename(instance_dir(state_dir, uuid)) + ".json")


def _uuids(state_dir: str, directory: str) -> list[str]:
    try:
        return sorted(name.removesuffix(".json") for name in os.listdir(os.path.join(state_dir, directory)))
    except FileNotFoundError:
        return []


def _forget_shelved(state_dir: str, ledger: str | None, kept: t.Collection[str]) -> None:
    """Remove the records of shelved instances of this ledger but those `kept`."""
    for uuid in _uuids(state_dir, SHELVED):
        with contextlib.suppress(NovaliteError):  # somebody's file
            path = _path(state_dir, SHELVED, uuid)
            if uuid not in kept and ledger is not None and _ledger_of(_read(path)) == ledger:
                os.unlink(path)


def _ledger_of(text: str | None) -> str | None:
    """The identity of the ledger that a record is of; None for what is none."""
    try:
        return str(json.loads(text or "")["ledger"])
    except (ValueError, KeyError, TypeError):
        return None


def forget_adopted(state_dir: str, uuid: str, check_mode: bool = False) -> bool:
    """Remove the record of the adopted instance `uuid`; return whether there was one. Raises NovaliteError."""
    path = adopted_path(state_dir, uuid)
    if not os.path.lexists(path):
        return False
    try:
        if not check_mode:
            os.unlink(path)
    except OSError as error:
        raise NovaliteError(f"{path}: the record cannot be removed: {error.strerror}") from error
    return True


def _replace(path: str, text: str) -> bool:
    if _read(path) == text:
        return False
    write_atomically(path, text, MODE)
    return True


def _read(path: str) -> str | None:
    """The text of a record; None for what is missing, or was not written by root and for root alone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, encoding="utf-8", errors="replace") as handle:
        status = os.fstat(handle.fileno())
        # a guest's QEMU can write in an instance's directory nothing but its own files, and is not believed anyway
        if status.st_uid != os.geteuid() or status.st_size > LARGEST:
            return None
        return handle.read()
