# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Restoring of the store and its key alone: disks to files of a directory, without a ledger, libvirt or a hypervisor.

Run as a program with the Python that has libnbd: `python3 -m ..._backup.without_ledger --store ... --key-file ...`.
Without a server it lists those that have backups, and without a backup those of a server.
"""

from __future__ import annotations

import argparse
import base64
import os
import sys
import tempfile
import time
import typing as t
import zlib

from .._errors import NovaliteError
from .._host.files import is_uuid, write_atomically
from . import replay
from .catalog import Catalog
from .store import Restic

_LONGEST_KEY = 4096


def servers(store: str) -> list[str]:
    """List the servers and volumes (UUIDs) that have backups in a directory. Raises NovaliteError."""
    if store.startswith("sftp:"):
        raise NovaliteError(
            f"servers in {store} cannot be listed: name one by its UUID, as its directory there is named"
        )
    try:
        return sorted(name for name in os.listdir(store) if is_uuid(name))
    except OSError as error:
        raise NovaliteError(f"the store {store} cannot be read ({error.strerror}): mount it, or name another") from None


def opened(store: str, key: str, server: str, cache: str) -> Catalog:
    """Open the backups of a server or a volume. Raises NovaliteError."""
    if not is_uuid(server):
        raise NovaliteError(f"'{server}' is not the UUID of a server or a volume: leave it out to see which there are")
    restic = Restic(f"{store.rstrip('/')}/{server}", key, cache)
    if restic.is_missing:
        raise NovaliteError(f"the store {store} has no backups of {server}: leave it out to see of which it has")
    restic.unlock()
    return Catalog(restic, server)


def restore(catalog: Catalog, backup: str, directory: str) -> list[str]:
    """Restore all disks of a backup to qcow2 files of `directory`, which is made, every block compared; beside them its
    libvirt definition and the variables of its firmware. Returns the files. Raises NovaliteError: no disk is there
    then."""
    saved = catalog.load(backup)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    paths = {disk.name: os.path.join(directory, f"{disk.name}.qcow2") for disk in saved.disks}
    replay.restore(catalog, backup, paths)
    made = list(paths.values())
    if saved.definition:
        made.append(os.path.join(directory, "domain.xml"))
        write_atomically(made[-1], saved.definition, 0o600)
    if saved.firmware is not None:
        made.append(os.path.join(directory, "nvram.fd"))
        write_atomically(made[-1], zlib.decompress(base64.b64decode(saved.firmware)), 0o600)
    return made


def _key_of(path: str) -> str:
    try:
        with open(path, encoding="ascii") as handle:
            key = handle.read(_LONGEST_KEY).strip()
    except (OSError, ValueError) as error:
        raise NovaliteError(f"the key file {path} cannot be read ({error}): give the one that was exported") from None
    if not key:
        raise NovaliteError(f"the key file {path} is empty: give the one that `novalite backup key` wrote")
    return key


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def main(arguments: t.Sequence[str] | None = None) -> int:
    """List servers or backups, or restore one; returns the program's exit code."""
    parser = argparse.ArgumentParser(prog="novalite backup restore-files", description="Restore disks to files.")
    parser.add_argument("server", nargs="?", help="UUID of the server or volume (left out: list them)")
    parser.add_argument("--store", required=True, help="directory, or sftp:user@host:path")
    parser.add_argument("--key-file", required=True, help="file with the key")
    parser.add_argument("--backup", help="id of the backup, or `newest` (left out: list them)")
    parser.add_argument("--into", default=".", help="directory for the disks")
    options = parser.parse_args(arguments)
    try:
        key = _key_of(options.key_file)
        if options.server is None:
            _say(*servers(options.store))
            return 0
        with tempfile.TemporaryDirectory(prefix="novalite-backup-") as cache:
            catalog = opened(options.store, key, options.server, cache)
            if options.backup is None:
                for name in catalog.names():
                    saved = catalog.load(name)
                    taken = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(saved.created / 1000))
                    _say(f"{name} {taken} {saved.kind} {','.join(disk.name for disk in saved.disks)}")
                return 0
            if options.backup == "newest" and not catalog.names():
                raise NovaliteError(
                    f"the store has no complete backup of {options.server}: see whether it is the right one"
                )
            backup = catalog.names()[-1] if options.backup == "newest" else options.backup
            _say(*restore(catalog, backup, options.into))
    except NovaliteError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
