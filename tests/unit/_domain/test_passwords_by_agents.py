# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Passwords that agents set: each guest is for itself, and no message has the hash."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain import lifecycle, lifecycle_password
from tests.unit._domain.fake_libvirt import Fake, FakeError, FakeLibvirt

HASH = "$6$salt$hash"
GOOD, DEAF, OFF, GONE = (f"6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c1{number}" for number in range(4))


class Libvirt(FakeLibvirt):
    VIR_DOMAIN_PASSWORD_ENCRYPTED = 1


class Domain:
    def __init__(self, uuid: str) -> None:
        self.uuid, self.told = uuid, []  # type: str, list[tuple[str, str, int]]

    def isActive(self) -> bool:
        return self.uuid != OFF

    def agentSetResponseTimeout(self, seconds: int, _flags: int) -> None:
        assert 0 < seconds < 60

    def setUserPassword(self, user: str, password: str, flags: int) -> None:
        if self.uuid == DEAF:
            raise FakeError(86, "Guest agent is not responding")
        self.told.append((user, password, flags))


class Connection(Fake):
    def __init__(self) -> None:
        self.domains = {uuid: Domain(uuid) for uuid in (GOOD, DEAF, OFF)}

    def lookupByUUIDString(self, uuid: str) -> Domain:
        if uuid not in self.domains:
            raise FakeError(Libvirt.VIR_ERR_NO_DOMAIN, "no domain")
        return self.domains[uuid]


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Connection:
    monkeypatch.setattr(lifecycle, "libvirt", Libvirt, raising=False)
    monkeypatch.setattr(lifecycle_password, "libvirt", Libvirt, raising=False)
    return Connection()


def ensure(connection: Connection, check_mode: bool = False) -> dict[str, str | None]:
    specs: list[t.Any] = [
        {"uuid": uuid, "name": "instance-1", "user": "debian", "password_hash": HASH}
        for uuid in (GOOD, DEAF, OFF, GONE)
    ]
    return {done.uuid: done.error for done in lifecycle_password.ensure(connection, specs, check_mode)}


def test_each_guest_is_for_itself(connection: Connection) -> None:
    errors = ensure(connection)
    assert connection.domains[GOOD].told == [("debian", HASH, Libvirt.VIR_DOMAIN_PASSWORD_ENCRYPTED)]
    assert errors[GOOD] is None
    assert errors[DEAF] == (
        "the agent in domain instance-1 did not set the password of debian: Guest agent is not responding"
    )
    assert "start it" in (errors[OFF] or "") and "start it" in (errors[GONE] or "")
    assert HASH not in repr(errors)


def test_check_mode_tells_nobody(connection: Connection) -> None:
    assert ensure(connection, check_mode=True)[GOOD] is None
    assert connection.domains[GOOD].told == []
