# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes of ebtables' rules that fail because another program changed rules of the host at the same moment.

A chain of one's own has its policy as a last rule, which ebtables (nf_tables) removes and adds again with each change.
When iptables, Docker or another guest's start commits in between, ebtables reads the rules again, but removes the rule
that was there before: "RULE_DELETE failed (No such file or directory)". Measured with ebtables 1.8.9 beside a loop of
iptables-restore: 9 of 264 commands failed as libvirt runs them, one for each rule of a network filter, and 3 of 372
ebtables-restore. Such a change is one transaction: nothing of it is there, and it can be made again.
"""

from __future__ import annotations

import random
import time
import typing as t

PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)  # seconds between attempts, each varied by half

T = t.TypeVar("T")


def again(change: t.Callable[[], T], is_race: t.Callable[[Exception], bool]) -> T:
    """Return what `change` returns; make it again where it failed with what `is_race` takes for a race, after each of
    PAUSES. Raises what the last attempt raised, and at once what is no race."""
    for pause in PAUSES:
        try:
            return change()
        except Exception as error:
            if not is_race(error):
                raise
        time.sleep(pause * random.uniform(0.5, 1.5))
    return change()
