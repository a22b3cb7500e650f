# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Store for the code of trips (_host/trip.py) on a host: compiled, below the state directory, under its SHA-256.

A file of its own: what it imports would cost each trip more than the trip.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import marshal
import os
import pathlib
import sys
import zipfile

from .files import write_atomically
from .own_directory import NotOwnError, make_own

KEPT = 3  # versions of the code: two controllers may be at different ones
ENDINGS = (".code", ".zip")  # the other one is of controllers that are older


def keep(directory: str, digest: str, code: bytes) -> None:
    """Keep the archive `code`, whose SHA-256 is `digest`, compiled for this Python in `directory`, and few older ones.
    Damaged ones go.

    The file's name holds its own SHA-256, which every trip compares before it uses it. Raises OSError.
    """
    try:
        make_own(directory, links=True)
    except NotOwnError:
        return  # each step says so that works there
    os.chmod(directory, 0o700)
    compiled = _compiled(code)
    name = f"{digest}.{sys.implementation.cache_tag}.{hashlib.sha256(compiled).hexdigest()}.code"
    write_atomically(os.path.join(directory, name), compiled, 0o600)
    ours = [os.path.join(directory, entry) for entry in os.listdir(directory) if entry.endswith(ENDINGS)]
    damaged = [path for path in ours if not _is_sound(path)]
    sound = [path for path in ours if path not in damaged]
    for path in damaged + sorted(sound, key=os.path.getmtime)[:-KEPT]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _is_sound(path: str) -> bool:
    """Tell whether the file is what its name says: no trip would use it otherwise."""
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as handle:
        return hashlib.sha256(handle.read()).hexdigest() == path.split(".")[-2]
    return True  # another trip has just removed it


def _compiled(code: bytes) -> bytes:
    """The archive `code` with each source file compiled: by the module's name, whether it is a package, and its code,
    all of it marshalled. zipimport would inflate and unmarshal each of them three times."""
    modules = {}
    with zipfile.ZipFile(io.BytesIO(code)) as source:
        for name in source.namelist():
            # docstrings stay: for a class without one, `dataclasses` works out its signature
            compiled = compile(source.read(name), name, "exec", dont_inherit=True, optimize=1)
            path = pathlib.PurePath(name)
            module = path.parent if path.stem == "__init__" else path.with_suffix("")
            modules[".".join(module.parts)] = (path.stem == "__init__", marshal.dumps(compiled))
    return marshal.dumps(modules)
