# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dead-man's switch of a host: a transient timer of systemd's that powers the machine off, unless a later one is set.

It proves a death to a controller that has got no answer for long enough: a timer is set for a time by the host's own
clock, counted from an answer that the controller knows of, so that an order that comes late prolongs nothing. It goes
with a reboot, and proves nothing of a machine that is frozen: whoever thaws it later has a guest run twice for the
moment that the timer takes.
"""

from __future__ import annotations

import os
import re
import time

from .._errors import NovaliteError
from .command import CommandError, run

BOOTED = "/run/systemd/system"
UNIT = "novalite-switch"  # beginning of the names, which end with the time
TIMEOUT = 10.0  # seconds for each command: a look is every 10 s
SHORTEST = 40  # seconds: a look may be missed, and the next one counts from the answer before that
# At once, without stopping any unit: a host that hangs at that has its guests running
OFF = ("systemctl", "poweroff", "--force", "--force")
_NAME = re.compile(rf"(?m)^({UNIT}(?:-(\d+))?\.timer)\s")


def is_there() -> bool:
    """Tell whether systemd runs this machine, as sd_booted(3) does."""
    return os.path.isdir(BOOTED)


def clock() -> float:
    """Return the seconds since this machine booted, by the clock of systemd's timers: CLOCK_MONOTONIC."""
    return time.monotonic()


def left() -> float:
    """Return the seconds until the machine is powered off, 0 where no timer runs. Raises CommandError."""
    timers = _timers()
    return max(1.0, max(timers.values()) - clock()) if timers else 0.0


def _timers() -> dict[str, int]:
    """Return the time of each timer that runs, by the name of its unit; 0 for one that is not named by its time."""
    words = ("--plain", "--no-legend", "--full", "--state=active")
    shown = run(["systemctl", "list-units", *words, f"{UNIT}*.timer"], timeout=TIMEOUT).stdout
    return {unit: int(at or 0) for unit, at in _NAME.findall(shown)}


def arm(seconds: int, since: float) -> None:
    """Have the machine powered off `seconds` after its clock showed `since`, unless a later time is set before. An
    earlier time than one that is set already changes nothing. Where none is, two thirds of the time have to be left:
    the next look may be twice as far off as the last one was. Raises NovaliteError."""
    if seconds < SHORTEST:
        raise NovaliteError(f"novalite_ha_switch {seconds}: choose at least {SHORTEST} seconds, or 0 for no switch")
    if not is_there():
        raise NovaliteError(f"novalite_ha_switch {seconds}: this host does not run systemd, so choose 0")
    timers, at = _timers(), int(since) + seconds
    time_left = int(at - clock())
    latest = max(timers.values(), default=0)
    if not timers and time_left < 2 * seconds // 3:
        raise NovaliteError(
            f"novalite_ha_switch {seconds}: the last look is {seconds - time_left} s old: look more often"
        )
    if at > latest and time_left > 0:
        # By the clock since the boot, whenever systemd gets to it; in a container that clock begins later
        run(
            [
                "systemd-run",
                "--quiet",
                f"--unit={UNIT}-{at}",
                f"--description=novalite: off {seconds} s after the last answer",
                f"--on-boot={at}",
                f"--on-active={time_left}",
                "--timer-property=AccuracySec=1s",
                *OFF,
            ],
            timeout=TIMEOUT,
        )
        latest = at
    _stop([unit for unit, at in timers.items() if at < latest])  # never without one in between


def disarm() -> None:
    """Have no timer. Raises CommandError for one that cannot be stopped."""
    _stop(list(_timers()))


def _stop(units: list[str]) -> None:
    if units:
        run(["systemctl", "stop", *units], timeout=TIMEOUT)


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
