# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secrets of the controller: files beside the ledger, each made once, so that no copy of the ledger has them."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile

from ._errors import NovaliteError
from ._host.files import STATE_DIR

METADATA = "metadata.secret"  # what the proxies' keys are derived from
CREDENTIALS = "credentials.secret"  # what EC2's secrets in the ledger are encrypted with
BACKUP = "backup.secret"  # the key of the backups' store
_SIZE = 32  # bytes


def secret_path(home: str | None = None, name: str = METADATA) -> str:
    """Path of the secret `name` in the ledger's `home` (default: $NOVALITE_HOME, then /var/lib/novalite)."""
    return os.path.join(home or os.environ.get("NOVALITE_HOME") or STATE_DIR, name)


def read_secret(path: str) -> bytes | None:
    """The secret in the file `path`, or None when there is no such file. Raises NovaliteError for a file that others
    may read, or that holds no secret."""
    try:
        with open(path, encoding="ascii") as handle:
            mode = os.fstat(handle.fileno()).st_mode
            text = handle.read(4096).strip()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise NovaliteError(f"cannot read the secret {path}: {error}") from None
    if mode & 0o077:
        raise NovaliteError(f"the secret {path} is open to others: chmod 600 it")
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        secret = b""
    if len(secret) < _SIZE:
        raise NovaliteError(f"{path} holds no secret of {_SIZE} bytes in hex: remove it, and a new one is made")
    return secret


def ensure_secret(path: str) -> bytes:
    """The secret in the file `path`, made when there is none. Of two runs at once, both get that of the first."""
    secret = read_secret(path)
    if secret is not None:
        return secret
    directory = os.path.dirname(path)
    try:
        if not os.path.isdir(directory):
            with contextlib.suppress(FileExistsError):
                os.mkdir(directory, 0o700)
        fd, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=directory)  # 0600
        try:
            with os.fdopen(fd, "w", encoding="ascii") as handle:
                if os.geteuid() == 0:
                    # root may be the first to need it, and the service that the home belongs to has to read it, too
                    owner = os.stat(directory)
                    os.fchown(handle.fileno(), owner.st_uid, owner.st_gid)
                handle.write(secrets.token_hex(_SIZE) + "\n")
                handle.flush()
                os.fsync(handle.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)  # unlike a rename it never replaces another run's
        finally:
            os.unlink(temporary)
    except OSError as error:
        raise NovaliteError(f"cannot write the secret {path}: {error.strerror}") from None
    made = read_secret(path)
    if made is None:
        raise NovaliteError(f"{path} vanished while it was made: run again")
    return made
