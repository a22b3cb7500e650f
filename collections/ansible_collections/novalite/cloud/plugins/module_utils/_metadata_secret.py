# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""The controller's secret for the metadata service: a file beside the ledger, made once."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile

from ._errors import NovaliteError
from ._host import STATE_DIR

FILE_NAME = "metadata.secret"
_SIZE = 32  # bytes


def secret_path(home: str | None = None) -> str:
    """Where the secret lies: in the ledger's `home` (default: $NOVALITE_HOME, then /var/lib/novalite)."""
    return os.path.join(home or os.environ.get("NOVALITE_HOME") or STATE_DIR, FILE_NAME)


def read_secret(path: str) -> bytes | None:
    """The secret in the file `path`, or None when there is no such file.

    Raises NovaliteError for a file that others may read, or that holds no secret.
    """
    try:
        with open(path, encoding="ascii") as handle:
            mode = os.fstat(handle.fileno()).st_mode
            text = handle.read(4096).strip()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise NovaliteError(f"cannot read the metadata service's secret {path}: {error}") from None
    if mode & 0o077:
        raise NovaliteError(f"the metadata service's secret {path} is open to others: chmod 600 it")
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        secret = b""
    if len(secret) < _SIZE:
        raise NovaliteError(f"{path} holds no secret of {_SIZE} bytes in hex: remove it, and a new one is made")
    return secret


def ensure_secret(path: str) -> bytes:
    """The secret in the file `path`, made when there is none. Of two runs at once, both get that of the first."""
    found = read_secret(path)
    if found is not None:
        return found
    directory = os.path.dirname(path)
    try:
        if not os.path.isdir(directory):
            with contextlib.suppress(FileExistsError):
                os.mkdir(directory, 0o700)
        fd, temporary = tempfile.mkstemp(prefix=f".{FILE_NAME}.", dir=directory)  # 0600
        try:
            with os.fdopen(fd, "w", encoding="ascii") as handle:
                handle.write(secrets.token_hex(_SIZE) + "\n")
                handle.flush()
                os.fsync(handle.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)  # unlike a rename it never replaces another run's
        finally:
            os.unlink(temporary)
    except OSError as error:
        raise NovaliteError(f"cannot write the metadata service's secret {path}: {error.strerror}") from None
    made = read_secret(path)
    if made is None:
        raise NovaliteError(f"{path} vanished while it was made: run again")
    return made
