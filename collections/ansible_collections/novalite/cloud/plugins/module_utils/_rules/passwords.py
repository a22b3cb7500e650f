# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Passwords and other secrets that people choose, as hashes that are costly to try (scrypt)."""

from __future__ import annotations

import functools

from werkzeug.security import check_password_hash, generate_password_hash

from .._errors import NovaliteError

LENGTH = 4096  # characters; Keystone's limit is of this size, too
METHOD = "scrypt:32768:8:1"  # 32 MiB and some 60 ms for each guess (OWASP's advice of 2023)


def hash_password(password: str) -> str:
    """The text to keep of `password`. Raises NovaliteError for one that is empty or too long."""
    if not 1 <= len(password) <= LENGTH:
        raise NovaliteError(f"a password has between 1 and {LENGTH} characters")
    return generate_password_hash(password, METHOD)


def is_password(hashed: str | None, password: str) -> bool:
    """Tell whether `password` is the one that was hashed. Without a hash, the answer takes as long: who does not exist
    must not be told from who does."""
    fits = check_password_hash(hashed or _of_nobody(), password[:LENGTH])
    return fits and hashed is not None and len(password) <= LENGTH


@functools.lru_cache(maxsize=1)
def _of_nobody() -> str:
    return generate_password_hash("", METHOD)
