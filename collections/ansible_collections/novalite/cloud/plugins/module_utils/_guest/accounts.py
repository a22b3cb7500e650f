# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest's own users: its etc/passwd and etc/shadow, parsed into fields."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .._errors import NovaliteError
from .guest_root import GuestRoot

PASSWD = "/etc/passwd"
SHADOW = "/etc/shadow"
PASSWD_FIELDS = 7
SHADOW_FIELDS = 9
MAX_ID = 1 << 32

# crypt(5): an identifier, parameters and salt, the hash; none of it can end a field or a line of etc/shadow
_HASH = re.compile(r"\$[0-9a-z]{1,8}\$[A-Za-z0-9./=,$]{1,400}\Z")


@dataclasses.dataclass(frozen=True)
class Account:
    uid: int
    gid: int
    home: str


def is_hash(text: str) -> bool:
    return _HASH.match(text) is not None


def find(guest: GuestRoot, user: str) -> Account:
    """Ids and home of `user` after the guest's own etc/passwd. Raises NovaliteError for one that is not there."""
    passwd = guest.read(PASSWD, follow=True)
    for line in ((passwd.data or b"") if passwd else b"").split(b"\n"):
        fields = line.split(b":")
        if len(fields) == PASSWD_FIELDS and fields[0] == user.encode():
            return _parse(fields, user)
    if user == "root":
        return Account(0, 0, "/root")
    raise NovaliteError(f"the guest has no user '{user}' in its {PASSWD}; correct the image's property os_admin_user")


def has_password(shadow: bytes, user: str) -> bool:
    """Whether etc/shadow has a line for `user`, with a password or without."""
    return _shadow_line(shadow.split(b"\n"), user) is not None


def with_password(shadow: bytes, user: str, password_hash: str) -> bytes:
    """etc/shadow with another password in the line of `user`, and nothing else changed.

    Raises NovaliteError when there is no such line: a line of our making would have to guess the ages in it.
    """
    lines = shadow.split(b"\n")
    number = _shadow_line(lines, user)
    if number is None:
        raise NovaliteError(
            f"the guest has no user '{user}' in its {SHADOW}; correct the image's property os_admin_user"
        )
    fields = lines[number].split(b":")
    fields[1] = password_hash.encode()
    lines[number] = b":".join(fields)
    return b"\n".join(lines)


def _shadow_line(lines: t.Sequence[bytes], user: str) -> int | None:
    """The number of the line of `user`, counted from 0."""
    for number, line in enumerate(lines):
        fields = line.split(b":")
        if len(fields) == SHADOW_FIELDS and fields[0] == user.encode():
            return number
    return None


def _parse(fields: t.Sequence[bytes], user: str) -> Account:
    home = fields[5].decode(errors="surrogateescape").rstrip("/")
    if user == "root":
        return Account(0, 0, home or "/root")
    if not (fields[2].isdigit() and fields[3].isdigit() and home):
        raise NovaliteError(f"the guest's {PASSWD} has no proper ids and home for user '{user}'")
    uid, gid = int(fields[2]), int(fields[3])
    if max(uid, gid) >= MAX_ID - 1:
        raise NovaliteError(f"the guest's {PASSWD} has impossible ids for user '{user}'")
    return Account(uid, gid, home)
