# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of a backup on the controller, out of the archive of a compute host, which need not be trusted; and lines for
people, of what was read of its file system."""

from __future__ import annotations

import contextlib
import os
import shutil
import tarfile
import tempfile
import time
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping
from .guest_files import DEEPEST, MOST_ENTRIES

_PIECE = 1 << 20
_LETTERS = {"file": "-", "directory": "d", "link": "l", "device": "c", "pipe": "p"}
_NAMED = 20  # of those that were skipped


def unpack(archive: str, into: str, room: int) -> None:
    """Make the directory `into` of a tar archive: regular files (0600) and directories (0700) of whoever runs this,
    below it and nowhere else, with at most `room` bytes. Raises NovaliteError for an archive that has anything else:
    nothing is there then."""
    if os.path.lexists(into):
        raise NovaliteError(f"{into} is there already: name a directory that is to be made")
    os.makedirs(os.path.dirname(into), exist_ok=True)
    directory = tempfile.mkdtemp(prefix=f".{os.path.basename(into)[:100]}.", dir=os.path.dirname(into))
    try:
        with tarfile.open(archive, "r|") as tar:
            for count, member in enumerate(tar):
                room -= member.size
                if count >= MOST_ENTRIES or room < 0:
                    raise NovaliteError("the archive has more files, or larger ones, than were asked for")
                _make(tar, member, os.path.join(directory, *_parts(member)))
        os.rename(directory, into)  # where a file came there meanwhile, this fails
    except tarfile.TarError as error:
        raise NovaliteError(f"the archive cannot be read: {error}") from None
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _parts(member: tarfile.TarInfo) -> list[str]:
    parts = member.name.split("/")
    if member.type not in (tarfile.REGTYPE, tarfile.DIRTYPE) or member.issparse():
        raise NovaliteError(f"the archive has {member.name!r}, which is neither a file nor a directory")
    if len(parts) > DEEPEST + 1 or any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise NovaliteError(f"the archive has {member.name!r}, which is not the name of a file below a directory")
    return parts


def _make(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    """Make a file or a directory where no link can be: all that is there was made here."""
    if member.isdir():
        os.makedirs(path, mode=0o700, exist_ok=True)
        return
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    data = t.cast(t.IO[bytes], tar.extractfile(member))
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        shutil.copyfileobj(data, file, _PIECE)
    with contextlib.suppress(OverflowError):
        os.utime(path, (member.mtime, member.mtime))


def lines_of(result: JsonMapping, into: str | None) -> list[str]:
    """Return the lines for what step `backup_files` returned: of a list, or of what is in the directory `into`."""
    systems = ", ".join(
        f"{'all of it' if system['partition'] == 0 else 'partition ' + str(system['partition'])}: {system['type']} of "
        f"{system['size'] >> 20} MiB" + (" (read)" if system["partition"] == result["partition"] else "")
        for system in result["file_systems"]
    )
    lines = [f"disk {result['disk']} of {', '.join(result['disks'])}; {systems}"]
    for entry in result.get("entries") or ():
        when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(min(max(entry["modified"], 0), 1 << 36)))
        mode = f"{_LETTERS.get(entry['kind'], '?')}{entry['mode']:04o}"
        lines.append(f"{mode} {entry['size']:>12} {when} {entry['shown']}" + _target(entry))
    if into is not None:
        lines.append(f"{result['count']} files and directories are in {into}")
    skipped = result.get("skipped") or []
    lines += [f"left out: {why}" for why in skipped[:_NAMED]]
    return lines + ([f"left out: {len(skipped) - _NAMED} more"] if len(skipped) > _NAMED else [])


def _target(entry: JsonMapping) -> str:
    return f" -> {entry['link']}" if entry["link"] else ""
