# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A watch over a ledger on SQLite: whoever takes an instance from a host, or its claim, has to write a departure."""

from __future__ import annotations

import pathlib
import sqlite3
import typing as t

import sqlalchemy as sa

from tests.support.cloud import Cloud

# The instance's own row goes with release.yml: what is on the host then is its owner's.
_TRIGGERS = """
CREATE TABLE watched (uuid TEXT, host TEXT, how TEXT);
CREATE TABLE watching (is_on INTEGER);
INSERT INTO watching VALUES (1);
CREATE TABLE watched_departure (uuid TEXT, host TEXT);
CREATE TRIGGER watch_host AFTER UPDATE OF host ON instance
WHEN OLD.host IS NOT NULL AND OLD.host IS NOT NEW.host AND (SELECT is_on FROM watching)
BEGIN INSERT INTO watched VALUES (OLD.uuid, OLD.host, 'left it'); END;
CREATE TRIGGER watch_deletion AFTER UPDATE OF deleted ON instance
WHEN OLD.host IS NOT NULL AND OLD.deleted = 0 AND NEW.deleted != 0 AND (SELECT is_on FROM watching)
BEGIN INSERT INTO watched VALUES (OLD.uuid, OLD.host, 'was deleted'); END;
CREATE TRIGGER watch_claim AFTER DELETE ON allocation
WHEN EXISTS (SELECT 1 FROM instance, compute_host WHERE uuid = OLD.instance_uuid AND deleted = 0
             AND compute_host.id = OLD.compute_host_id AND host IS NOT compute_host.name)
     AND (SELECT is_on FROM watching)
BEGIN INSERT INTO watched SELECT OLD.instance_uuid, name, 'lost its claim there' FROM compute_host
      WHERE id = OLD.compute_host_id; END;
CREATE TRIGGER watch_departure AFTER INSERT ON departure
BEGIN INSERT INTO watched_departure VALUES (NEW.instance_uuid, NEW.host); END;
"""
# at the end of a transaction, or of a test: no host that an instance is on counts as left
_STANDING = "SELECT uuid, d.host FROM instance JOIN departure d ON instance_uuid = uuid WHERE deleted = 0 AND d.host = "


def watch(path: pathlib.Path) -> None:
    """Have the ledger, and copies of it, write down who leaves a host. In one transaction: each waits for the disk."""
    _sql(str(path), f"BEGIN; {_TRIGGERS} COMMIT;")


def _sql(path: str, script: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


class WatchedCloud(Cloud):
    """A cloud whose operations are watched (`watch`); what a test writes itself is its own business."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._path = url.removeprefix("sqlite:///")

    def write(self, *statements: t.Any) -> None:
        off, on = (sa.text(f"UPDATE watching SET is_on = {is_on}") for is_on in (0, 1))
        super().write(off, *statements, on)

    def forget(self) -> None:
        """Forget what was seen so far."""
        _sql(self._path, "DELETE FROM watched")

    def unsaid(self) -> tuple[list[t.Any], list[t.Any]]:
        """(UUID, host, how) of those that left a host without a word; (UUID, host) that counts as left though it is
        there."""
        connection = sqlite3.connect(self._path)
        silent = "SELECT * FROM watched w WHERE NOT EXISTS (SELECT 1 FROM watched_departure d WHERE d.uuid = w.uuid "
        left = connection.execute(f"{silent} AND d.host = w.host)").fetchall()
        there = connection.execute(f"{_STANDING} instance.host").fetchall()
        connection.close()
        return left, there
