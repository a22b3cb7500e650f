# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dead-man's switch of a host: a transient timer of systemd's that powers the machine off, unless it is armed anew.

It proves a death to a controller that has not been able to arm it for long enough. It goes with a reboot, and proves
nothing of a machine that is frozen: whoever thaws it later has a guest run twice for the moment that the timer takes.
"""

from __future__ import annotations

import os
import re

from .._errors import NovaliteError
from .command import CommandError, run

BOOTED = "/run/systemd/system"
UNIT = "novalite-switch"
TIMEOUT = 10.0  # seconds for each command: a look is every 10 s
SHORTEST = 30  # seconds: three looks
# At once, without stopping any unit: a host that hangs at that has its guests running
OFF = ("systemctl", "poweroff", "--force", "--force")
_STATE = re.compile(r"(?m)^ActiveState=(active|activating|reloading)$")


def is_there() -> bool:
    """Tell whether systemd runs this machine, as sd_booted(3) does."""
    return os.path.isdir(BOOTED)


def is_armed() -> bool:
    """Tell whether the timer runs. Raises CommandError."""
    return bool(_STATE.search(_shown()))


def _shown() -> str:
    return run(["systemctl", "show", f"{UNIT}.timer", "--property=ActiveState,Description"], timeout=TIMEOUT).stdout


def arm(seconds: int) -> None:
    """Have the machine powered off in `seconds`, unless this is called again before. Raises NovaliteError."""
    if seconds < SHORTEST:
        raise NovaliteError(f"novalite_ha_switch {seconds}: choose at least {SHORTEST} seconds, or 0 for no switch")
    if not is_there():
        raise NovaliteError(f"novalite_ha_switch {seconds}: this host does not run systemd, so choose 0")
    shown, description = _shown(), f"novalite: off {seconds} s after the last look"
    if _STATE.search(shown) and f"Description={description}\n" in f"{shown}\n":
        run(["systemctl", "restart", f"{UNIT}.timer"], timeout=TIMEOUT)  # it counts from now on again
        return
    disarm()
    run(
        [
            "systemd-run",
            "--quiet",
            f"--unit={UNIT}",
            f"--description={description}",
            f"--on-active={seconds}",
            "--timer-property=AccuracySec=1s",
            *OFF,
        ],
        timeout=TIMEOUT,
    )


def disarm() -> bool:
    """Have no timer; return whether there was one. Raises CommandError for one that cannot be stopped."""
    if not is_armed():
        return False
    run(["systemctl", "stop", f"{UNIT}.timer"], timeout=TIMEOUT)
    return True


def is_stopping() -> bool:
    """Tell whether systemd is shutting this machine down; false where there is no systemd."""
    if not is_there():
        return False
    try:
        # its return code says the same in numbers: all but 0 for what is not `running`
        state = run(["systemctl", "is-system-running"], ok=range(256), timeout=TIMEOUT).stdout.strip()
    except CommandError:
        return False
    return state == "stopping"
