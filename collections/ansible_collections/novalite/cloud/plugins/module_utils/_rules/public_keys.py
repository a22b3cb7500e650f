# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A strict reader for public SSH keys: what it lets through is one key, on one line, and nothing else.

The key ends up in a guest's authorized_keys, where a second line would be a second key and a leading word an option
such as command="...". The formats are those of RFC 4253 6.6, RFC 5656 3.1, RFC 8709 4 and OpenSSH's PROTOCOL.u2f.
"""

from __future__ import annotations

import base64
import hashlib
import re
import typing as t

from .._errors import NovaliteError
from .._model.plain_text import is_plain

LONGEST = 16384  # characters; what OpenSSH's sshd reads of one line, and more than a 16384 bit RSA key takes
RSA_BITS = 2048  # the least that NIST SP 800-131A allows, and Red Hat's sshd accepts

BYTE_ORDER_MARK = "\ufeff"
UTF_16_MARKS = ("\ufffe", "\udcff\udcfe", "\udcfe\udcff")  # the latter as bytes that are not UTF-8 are read
_WORD = re.compile(r"([^ \t]*)[ \t]+(.*)", re.DOTALL)

POINT_BYTES = {"nistp256": 65, "nistp384": 97, "nistp521": 133}  # uncompressed, with the leading 4


class PublicKey(t.NamedTuple):
    type: str  # "ssh-ed25519", ...
    text: str  # "<type> <base64>[ <comment>]", on one line
    fingerprint: str  # MD5 in hex with colons, as Nova's API shows it


def parse_public_key(text: str) -> PublicKey:
    """Read a line as `ssh-keygen` writes it to id_*.pub. Raises NovaliteError, without repeating the key."""
    if text.startswith(BYTE_ORDER_MARK):
        raise _refused("it begins with a byte order mark: save the file as UTF-8 without one (ASCII is enough)")
    if text.startswith(UTF_16_MARKS) or "\0" in text:
        raise _refused(
            "the file is UTF-16, as PowerShell writes it: save it as UTF-8, or with Out-File -Encoding ascii"
        )
    line = text.strip()
    if len(line) > LONGEST:
        raise _refused(f"it has {len(line)} characters, and {LONGEST} is the limit")
    if not is_plain(line, allowed="\t"):
        raise _refused("it is more than one line, or holds a control character: give one key, on one line")
    if line.startswith("-----BEGIN"):
        raise _refused("it is a PEM file, perhaps the private key: give the content of the .pub file")
    kind, rest = _word(line)
    check = CHECKS.get(kind)
    if check is None:
        raise _refused(f"it begins with {kind[:40]!r}: the types are {', '.join(CHECKS)}, and no options before them")
    encoded, comment = _word(rest)
    try:
        blob = base64.b64decode(encoded, validate=True)
    except ValueError:
        blob = b""
    fields = _fields(blob)
    if not fields or fields[0] != kind.encode():
        raise _refused(f"what follows {kind} is not a key of that type: it was cut off or changed when it was copied")
    check(kind, fields[1:])
    # MD5 is Nova's, for people to compare; nothing relies on it
    digest = hashlib.md5(blob, usedforsecurity=False).hexdigest()
    return PublicKey(
        kind,
        f"{kind} {encoded} {comment}" if comment else f"{kind} {encoded}",
        ":".join(digest[i : i + 2] for i in range(0, len(digest), 2)),
    )


def _word(text: str) -> tuple[str, str]:
    """The first word of `text`, and what comes after it, without the blanks around: spaces and tabs, as for OpenSSH
    (sshkey_read in sshkey.c)."""
    match = _WORD.fullmatch(text)
    return (match[1], match[2].strip()) if match else (text, "")


def _fields(blob: bytes) -> list[bytes]:
    """The length-prefixed strings that `blob` consists of; none if it does not."""
    fields = []
    while blob:
        size = int.from_bytes(blob[:4], "big")
        if len(blob) < 4 + size:
            return []
        fields.append(blob[4 : 4 + size])
        blob = blob[4 + size :]
    return fields


def _refused(why: str) -> NovaliteError:
    return NovaliteError(f"the public key is not usable: {why}")


def _check_rsa(kind: str, fields: t.Sequence[bytes]) -> None:
    if len(fields) != 2:
        raise _refused(f"it is not a complete {kind} key")
    bits = int.from_bytes(fields[1], "big").bit_length()
    if bits < RSA_BITS:
        raise _refused(f"it is an RSA key of {bits} bits, and {RSA_BITS} is the least: make an ed25519 key")


def _check_ed25519(kind: str, fields: t.Sequence[bytes]) -> None:
    # the security key's variety has the application ("ssh:") after the point
    if len(fields) != (2 if kind.startswith("sk-") else 1) or len(fields[0]) != 32:
        raise _refused(f"it is not a complete {kind} key")


def _check_ecdsa(kind: str, fields: t.Sequence[bytes]) -> None:
    curve, count = kind.partition("@")[0].rpartition("-")[2], 3 if kind.startswith("sk-") else 2
    if len(fields) != count or fields[0] != curve.encode() or len(fields[1]) != POINT_BYTES[curve]:
        raise _refused(f"it is not a complete {kind} key")


CHECKS: t.Mapping[str, t.Callable[[str, t.Sequence[bytes]], None]] = {
    "ssh-ed25519": _check_ed25519,
    "ssh-rsa": _check_rsa,
    **{f"ecdsa-sha2-{curve}": _check_ecdsa for curve in POINT_BYTES},
    "sk-ssh-ed25519@openssh.com": _check_ed25519,
    "sk-ecdsa-sha2-nistp256@openssh.com": _check_ecdsa,
}
