# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which bridges show their packets to the packet filter: those that guests are on, for as long as they are."""

from __future__ import annotations

import contextlib
import dataclasses

from .._command import CommandError, run
from .._host import locked
from .._json import JsonObject
from .._network import additions, bridged
from .._network.additions import Additions
from .._network.ownership import Mark
from .arguments import Request


def show(request: Request, before: JsonObject, after: JsonObject, check_mode: bool, mark: Mark) -> None:
    """Have the packet filter see what goes over the guests' bridges. Not before it has the rules: on a host that drops
    what nobody accepts, other people's packets on these bridges would be dropped until then."""
    if request.state != "present" or not request.instances:
        return
    wrong = bridged.missing(check_mode, bridges=request.bridges)
    if not wrong:
        return
    before["sysctl"], after["sysctl"] = wrong, dict.fromkeys(wrong, "1")
    if check_mode:
        return
    for name in wrong:
        bridge, slash, switch = name.partition("/")
        if slash:
            with locked("bridge"):
                added = additions.read(bridge, mark) | Additions(switches=(switch,))
                additions.write(bridge, mark, added)
    bridged.ensure(wrong)


def hide(request: Request, mark: Mark) -> None:
    """The reverse, for the bridges that the last instance leaves, and before the rules go."""
    for bridge in request.bridges if request.state == "absent" else ():
        with locked("bridge"):
            added = additions.read(bridge, mark)
            for switch in added.switches:
                with contextlib.suppress(CommandError):  # the bridge is gone
                    run(bridged.command(bridge, switch, "0"))
            if added.switches:
                additions.write(bridge, mark, dataclasses.replace(added, switches=()))
