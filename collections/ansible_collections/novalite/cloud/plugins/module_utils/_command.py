# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""The one way in which novalite runs a command on a host: an argument list, never a shell string."""

from __future__ import annotations

import os
import subprocess
import typing as t

from ._errors import NovaliteError

DEFAULT_TIMEOUT = 120.0  # seconds; nothing that novalite runs on a host is meant to take longer


class CommandError(NovaliteError):
    """A command that failed: `argv`, `rc` (124 after a timeout, 127 when it is not installed) and `stderr`."""

    def __init__(self, argv: t.Sequence[str], rc: int, stderr: str) -> None:
        self.argv = list(argv)
        self.rc = rc
        self.stderr = stderr
        lines = [line.strip() for line in stderr.splitlines() if line.strip()]
        super().__init__(f"{' '.join(argv[:4])}{' ...' if len(argv) > 4 else ''} failed with {rc}: "
                         f"{'; '.join(lines[-3:]) or 'no message'}")


class Result(t.NamedTuple):
    rc: int
    stdout: str
    stderr: str


def run(
    argv: t.Sequence[str],
    *,
    stdin: str | None = None,
    ok: t.Container[int] = (0,),
    timeout: float = DEFAULT_TIMEOUT,
    pass_fds: t.Collection[int] = (),
) -> Result:
    """Run `argv` in the C locale and return its output as text.

    `stdin` is text for its standard input (otherwise /dev/null), `ok` the return codes that are no error,
    `timeout` in seconds. Raises CommandError.
    """
    env = {**os.environ, "LC_ALL": "C", "LANG": "C"}
    # A host's sbin directories are missing from the PATH of a non-login ssh session on some systems.
    env["PATH"] = f"/usr/local/sbin:/usr/sbin:/sbin:{env.get('PATH', '/usr/bin:/bin')}"
    try:
        done = subprocess.run(
            list(argv),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            env=env,
            pass_fds=tuple(pass_fds),
            check=False,
        )
    except FileNotFoundError:
        raise CommandError(argv, 127, f"{argv[0]} is not installed on this host") from None
    except subprocess.TimeoutExpired:
        raise CommandError(argv, 124, f"no answer within {timeout:g} s") from None
    if done.returncode not in ok:
        raise CommandError(argv, done.returncode, done.stderr or done.stdout)
    return Result(done.returncode, done.stdout, done.stderr)
