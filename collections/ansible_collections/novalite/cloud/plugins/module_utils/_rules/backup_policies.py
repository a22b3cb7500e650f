# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Policies of backups: how often servers are backed up and proven, which policy a server follows, and what is due."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .._errors import NovaliteError
from .retention import Keep

SCOPES = ("server", "flavor", "project", "all")  # the first that a server has a policy of, is its own
PERIODS: t.Mapping[str, int] = {"hourly": 3600, "daily": 86400, "weekly": 7 * 86400, "monthly": 30 * 86400}
UNITS: t.Mapping[str, int] = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
LEAST, MOST = 600, 366 * 86400  # seconds
NEVER = "never"
RETRY = 3600  # seconds after which a backup that failed is tried again, if not before
BOOT_AGAIN = 86400  # seconds after which a boot that failed is tried again
_DURATION = re.compile(r"([0-9]{1,6})([mhdw])", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Policy:
    """A policy: the servers of `target` (a UUID or id; "" of all) are backed up `every` so many seconds, their newest
    backup is compared with what was saved every `verify_every` seconds, and their newest full one booted every
    `boot_every` (None: never)."""

    name: str
    scope: str
    target: str
    every: int
    keep: Keep
    verify_every: int | None
    created_at: int
    updated_at: int
    boot_every: int | None = None


@dataclasses.dataclass(frozen=True)
class Backup:
    """A backup of a server, as far as it decides: seconds since the epoch, whether it can be restored, or may be
    once it is taken, and whether it was compared with what was saved, and found whole; whether it stands for itself,
    when it was booted last, and when its guest was up then."""

    created_at: int
    verified_at: int | None
    is_available: bool
    is_under_way: bool
    is_whole: bool = False
    is_full: bool = False
    booted_at: int | None = None
    proven_at: int | None = None

    @property
    def is_proven(self) -> bool:
        """Tell whether it was found whole, and its guest was up with it."""
        return self.is_whole and self.proven_at is not None


def seconds_or_never(option: str, text: str) -> int | None:
    """Read a time, or `never`, which is None. Raises NovaliteError."""
    return None if text == NEVER else seconds_of(option, text)


def seconds_of(option: str, text: str, least: int = LEAST) -> int:
    """Read `daily` or `12h`, which is to be `least` seconds or more. Raises NovaliteError."""
    match = _DURATION.fullmatch(text)
    seconds = PERIODS.get(text) or (int(match[1]) * UNITS[match[2]] if match else 0)
    if not least <= seconds <= MOST:
        shortest = "a minute" if least == 60 else f"{least // 60} minutes"
        raise NovaliteError(
            f"{option}={text!r} is not a time between {shortest} and a year: give {', '.join(PERIODS)}, or "
            "a number with m, h, d or w, such as 12h"
        )
    return seconds


def time_of(seconds: int | None) -> str:
    """Return seconds as seconds_of() reads them, such as `daily` or `12h`."""
    names = {length: name for name, length in PERIODS.items()}
    if seconds is None:
        return "never"
    units = [(unit, length) for unit, length in UNITS.items() if seconds % length == 0]
    return names.get(seconds) or (f"{seconds // units[-1][1]}{units[-1][0]}" if units else f"{seconds} s")


def policy_of(policies: t.Iterable[Policy], server: t.Mapping[str, str]) -> Policy | None:
    """Return the policy that a server follows: of those of `server`, `flavor`, `project` and `all`, the narrowest.
    `server` has the target of each scope."""
    of_scope = {policy.scope: policy for policy in policies if policy.target == server.get(policy.scope, "")}
    return next((of_scope[scope] for scope in SCOPES if scope in of_scope), None)


def backup_due(policy: Policy, backups: t.Sequence[Backup], now: int) -> bool:
    """Tell whether a backup is to be taken: the newest good one is too old, none is under way, and one that failed was
    not tried just now."""
    good = [each.created_at for each in backups if each.is_available]
    tried = max((each.created_at for each in backups), default=None)
    if any(each.is_under_way for each in backups):
        return False
    if good and now - max(good) < policy.every:
        return False
    return tried is None or now - tried >= min(policy.every, RETRY) or tried in good


def proof_due(policy: Policy, backups: t.Sequence[Backup], now: int) -> bool:
    """Tell whether the newest good backup is to be compared with what was saved, for too long ago any was."""
    good = [each for each in backups if each.is_available]
    if policy.verify_every is None or not good:
        return False
    newest = max(good, key=lambda each: each.created_at)
    looked = [each.verified_at for each in backups if each.verified_at is not None]
    return newest.verified_at is None and (not looked or now - max(looked) >= policy.verify_every)


def boot_due(policy: Policy, backups: t.Sequence[Backup], now: int) -> bool:
    """Tell whether the newest good backup that stands for itself is to be booted, for too long ago any was; after a
    boot that failed, a day is long."""
    if policy.boot_every is None or not any(each.is_available and each.is_full for each in backups):
        return False
    booted = [each for each in backups if each.booted_at is not None]
    if not booted:
        return True
    last = max(booted, key=lambda each: each.booted_at or 0)
    wait = policy.boot_every if last.proven_at == last.booted_at else min(policy.boot_every, BOOT_AGAIN)
    return now - (last.booted_at or 0) >= wait


def late_of(policy: Policy, since: int, newest: int, whole: int, proven: int, now: int) -> str | None:
    """Say what is older than twice what the policy says, as the alert rules have it: the newest backup of a server that
    is there `since` then, the newest one that was found whole, or the newest one that was booted (0: there is none)."""
    ages = (
        ("backup", newest, policy.every),
        ("backup that was found whole", whole, policy.verify_every and policy.verify_every + policy.every),
        ("backup that was booted", proven, policy.boot_every and policy.boot_every + policy.every),
    )
    late = [(name, at) for name, at, every in ages if every is not None and now - (at or since) > 2 * every]
    if not late:
        return None
    name, at = late[0]
    return f"its newest {name} is too old for its policy" if at else f"it has no {name}, which its policy asks for"
