# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of checksums, as sha256sum(1) and sha512sum(1) write them: plain, in BSD's form, or one checksum alone."""

from __future__ import annotations

import dataclasses
import re

from .._errors import NovaliteError

LENGTHS = {64: "sha256", 128: "sha512"}  # hexadecimal digits; what is shorter proves nothing
_PLAIN = re.compile(r"([0-9A-Fa-f]{32,128})(?:[ \t]+\*?(\S.*))?")
_BSD = re.compile(r"([A-Za-z0-9-]{3,12}) ?\((.+)\) ?= ?([0-9A-Fa-f]{32,128})")


@dataclasses.dataclass(frozen=True)
class Checksum:
    """Checksum of a file: `algorithm` as hashlib calls it, `digest` in lower-case hexadecimal."""

    algorithm: str
    digest: str


def checksum_of(text: str, file: str, source: str, alone: bool) -> Checksum:
    """Return what `text`, the content of `source`, says of `file`.

    `alone` says that it is about this file only: then a name may differ, as where "latest" is a link. Raises
    NovaliteError where it says nothing, or two things.
    """
    lines = [line for line in map(_parsed, text.splitlines()) if line is not None]
    about = [checksum for name, checksum in lines if name is None or name.rpartition("/")[2] == file]
    if alone and not about and len(lines) == 1:
        about = [lines[0][1]]
    strongest = {checksum for checksum in about if checksum.algorithm == max(other.algorithm for other in about)}
    if not strongest:
        raise NovaliteError(f"{source} has no SHA-256 or SHA-512 checksum of {file}")
    if len(strongest) > 1:
        raise NovaliteError(f"{source} has {len(strongest)} different checksums of {file}")
    return strongest.pop()


def _parsed(line: str) -> tuple[str | None, Checksum] | None:
    """Parse a line into the file's name (None: it has none) and its checksum; None for a line that is not one."""
    line = line.strip()
    if match := _BSD.fullmatch(line):
        _algorithm, name, digest = match.groups()
    elif match := _PLAIN.fullmatch(line):
        digest, name = match.groups()
    else:
        return None
    algorithm = LENGTHS.get(len(digest))
    return None if algorithm is None else (name, Checksum(algorithm, digest.lower()))
