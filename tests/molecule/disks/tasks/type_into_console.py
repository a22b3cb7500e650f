# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""SSH_CONFIG HOST DOMAIN: as a person at a terminal, ask the shell of the guest for 6 * 7, and leave."""

from __future__ import annotations

import os
import pty
import select
import sys
import time

TIMEOUT = 60.0  # seconds


def main() -> None:
    config, host, domain = sys.argv[1:]
    process, terminal = pty.fork()
    if process == 0:
        os.execvp("ssh", ["ssh", "-t", "-F", config, host, f"virsh -c qemu:///system console --force {domain}"])
    said, deadline = b"", time.monotonic() + TIMEOUT
    while b"typed-42" not in said:
        if time.monotonic() > deadline:
            sys.exit(f"the console did not answer: {said!r}")
        ready, _write, _error = select.select([terminal], [], [], 2.0)
        if ready:
            said += os.read(terminal, 4096)
        else:  # it is silent: it waits for the key that starts the shell, or for the command
            os.write(terminal, b"echo typed-$((6*7))\r" if b"# " in said else b"\r")
    os.write(terminal, b"\x1d")  # ^]
    os.waitpid(process, 0)


if __name__ == "__main__":
    main()
