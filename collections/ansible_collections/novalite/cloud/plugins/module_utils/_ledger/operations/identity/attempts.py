# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attempts to prove who one is, which are counted, for every door."""

from __future__ import annotations

import dataclasses
import math

from ...._errors import TooManyRequestsError
from ...._rules.attempts import subject
from ...db import clock
from ...identity import auth_failures
from ...identity.auth_failures import Limit
from ..call import Call

DELAY = 60.0  # seconds between two guesses of a user's password from addresses where it is not known, at most
KNOWN_DELAY = 15.0  # and from one where it is


@dataclasses.dataclass(frozen=True)
class Locks:
    """Settings of a cloud: the failures of a user, and of an address, after which it is locked, for so many seconds;
    and the days for which a user is known at an address."""

    failures: int
    failures_of_address: int
    seconds: float
    known_days: float


@dataclasses.dataclass(frozen=True)
class Attempt:
    """Somebody who says to be a user, from some address, and whether that user is known there."""

    who: str  # user:<id>, credential:<id>, or the name of nobody
    address: str
    known: bool
    locks: Locks

    @property
    def login(self) -> str:
        return subject("login", f"{self.address} {self.who}")

    def limits(self) -> dict[str, Limit]:
        """Return the limits that a failure counts for, by subject.

        The guesser is locked: that user from that address, and an address that guesses over many users. The user alone
        is only slowed down, and where it is known, by guesses from there alone: a lock would serve those who want to
        lock somebody out.
        """
        failures, lock = self.locks.failures, self.locks.seconds
        by_address = {self.address: Limit(self.locks.failures_of_address, lock)}
        if self.known:
            return {**by_address, self.login: Limit(failures, KNOWN_DELAY, grows=True, calm=lock)}
        slowed = Limit(failures, DELAY, grows=True, calm=lock)
        return {**by_address, self.login: Limit(failures, lock), self.who: slowed}

    def refusing(self) -> list[str]:
        """List the subjects whose locks hold for this attempt."""
        return [self.login] if self.known else list(self.limits())


def begin(call: Call, who: str, address: str, locks: Locks) -> Attempt:
    """Return an attempt of `who` from `address`. Raises TooManyRequestsError while there were too many failures."""
    known = auth_failures.is_known(call.connection, _good(who, address), clock.now(call.connection))
    attempt = Attempt(who, address, known, locks)
    _refuse_locked(call, attempt)
    return attempt


# Of guesses that come at once, no more are answered than of those that come in turn


def succeed(call: Call, attempt: Attempt) -> None:
    """Forget the failures, and know the user at this address. Raises TooManyRequestsError after too many."""
    _refuse_locked(call, attempt, hold=True)
    auth_failures.forget_failures(call.connection, attempt.login, *([] if attempt.known else [attempt.who]))
    until = clock.now(call.connection) + attempt.locks.known_days * 86400
    auth_failures.remember(call.connection, _good(attempt.who, attempt.address), until)


def fail(call: Call, attempt: Attempt) -> None:
    """Count a failure. Raises TooManyRequestsError after too many."""
    locked = auth_failures.count_failure(call.connection, attempt.limits(), clock.now(call.connection))
    _refuse(max(locked[name] for name in attempt.refusing()))


def _refuse_locked(call: Call, attempt: Attempt, hold: bool = False) -> None:
    now = clock.now(call.connection)
    _refuse(auth_failures.locked_for(call.connection, attempt.refusing(), now, hold))


def _refuse(seconds: float) -> None:
    if seconds > 0:
        raise TooManyRequestsError("Too many failed attempts: try again later.", retry_after=math.ceil(seconds))


def _good(who: str, address: str) -> str:
    """Return the subject that remembers an address from which this user gave the right password."""
    return subject("good", f"{address} {who}")
