# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines for people, of what was read of a backup's file system."""

from __future__ import annotations

import time

from .._json import JsonMapping

_LETTERS = {"file": "-", "directory": "d", "link": "l", "device": "c", "pipe": "p"}
_NAMED = 20  # of those that were skipped


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
