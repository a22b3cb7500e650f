# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Have the agents in this host's running guests set a user's password, of which they are told the hash alone."""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from .._errors import NovaliteError
from .._host.waiting import in_threads
from . import lifecycle

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

AGENT_TIMEOUT = 10  # seconds that an agent has to answer


class PasswordSpec(t.TypedDict):
    """Entry of the step's `domains`: `password_hash` is in the form of crypt(5)."""

    uuid: str
    name: str
    user: str
    password_hash: str


@dataclasses.dataclass
class Told:
    """Outcome of a domain; `error` says why its guest's password may be the former one."""

    uuid: str
    error: str | None = None


def ensure(connection: libvirt.virConnect, domains: t.Sequence[PasswordSpec], check_mode: bool = False) -> list[Told]:
    """Set the password of a user in each guest. Nobody can ask a guest which one it has: it is set each time."""

    def carry_out(spec: PasswordSpec) -> Told:
        done = Told(spec["uuid"])
        try:
            _carry_out(connection, spec, check_mode)
        except NovaliteError as error:
            done.error = str(error)
        return done

    return in_threads(carry_out, list(domains), lifecycle.WORKERS)


def _carry_out(connection: libvirt.virConnect, spec: PasswordSpec, check_mode: bool) -> None:
    domain = lifecycle.lookup(connection, spec["uuid"])
    if domain is None or not domain.isActive():
        raise NovaliteError(f"domain {spec['name']} does not run on this host: start it, and try again")
    if check_mode:
        return
    with lifecycle.clear(f"the agent in domain {spec['name']} did not set the password of {spec['user']}"):
        domain.agentSetResponseTimeout(AGENT_TIMEOUT, 0)
        domain.setUserPassword(spec["user"], spec["password_hash"], libvirt.VIR_DOMAIN_PASSWORD_ENCRYPTED)
