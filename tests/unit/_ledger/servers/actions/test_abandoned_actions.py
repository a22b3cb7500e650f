# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of images, snapshots and backups of a server that is deleted, or whose state an administrator resets,
while they are made, read or removed."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_backups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_images import server_backup as table
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import by_playbook
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.instance_rows import instance_rows
from tests.unit._ledger.servers.actions.test_reimage import FILE, ask, record, row, server
from tests.unit._ledger.servers.actions.test_server_backups import backups, begin, no_domains, said, take

__all__ = ["no_domains"]

End = t.Callable[[t.Any, str], None]


def deleted(cloud: t.Any, name: str) -> None:
    begun = cloud.server({"name": name}, state="absent")
    cloud.state({"uuids": [each["uuid"] for each in begun["to_delete"]], "state": "deleted"})


def reset(cloud: t.Any, name: str) -> None:
    with transaction(cloud.engine) as connection:
        (named,) = instance_rows(connection, tables.instance.c.name == name)
        servers.reset_state(by_playbook(connection), named, "active")


def forget(cloud: t.Any, backup: str) -> None:
    with transaction(cloud.engine) as connection:
        server_backups.begin_forget(connection, backup, None)
        server_backups.finish_forget(connection, backup)


@pytest.mark.parametrize("end", [deleted, reset])
@pytest.mark.parametrize(
    ("action", "status"),
    [
        ("createBackup", "error"),
        ("verifyBackup", "available"),
        ("restoreBackup", "available"),
        ("deleteBackup", "error"),
    ],
)
def test_a_backup_is_free_when_its_action_comes_to_nothing(cloud: t.Any, action: str, status: str, end: End) -> None:
    server(cloud)
    if action != "createBackup":
        take(cloud, "friday")
    begun = begin(cloud, action, "friday")
    end(cloud, "web")
    kept = backups(cloud)["friday"]
    assert kept.status == status and kept.fault["message"]
    record(cloud, action, begun, **(said(begun) if action == "createBackup" else {}))  # its host knows nothing of that
    assert backups(cloud)["friday"].status == status
    if status == "available":
        server(cloud, "new")
        assert begin(cloud, "restoreBackup", kept.id, "new")["hosts"]
    elif end is deleted:
        forget(cloud, kept.id)
        assert backups(cloud) == {}
    else:
        record(cloud, "deleteBackup", begin(cloud, "deleteBackup", "friday"))
        assert backups(cloud) == {}


@pytest.mark.parametrize("end", [deleted, reset])
def test_a_backup_is_free_when_the_server_that_was_to_get_it_is_not_there(cloud: t.Any, end: End) -> None:
    server(cloud)
    friday, monday = (take(cloud, name) for name in ("friday", "monday"))
    for name, backup in (("new", friday), ("other", monday)):
        server(cloud, name)
        record(cloud, "restoreBackup", begin(cloud, "restoreBackup", backup, name))
        begin(cloud, "restoreBackup", backup, name)
    end(cloud, "new")
    assert {name: kept.status for name, kept in backups(cloud).items()} == {
        "friday": "available",
        "monday": "restoring",  # another server still gets that
    }
    with pytest.raises(ConflictError, match=r"'monday' .* is restoring"):
        begin(cloud, "deleteBackup", "monday")
    assert begin(cloud, "deleteBackup", "friday")["hosts"]


@pytest.mark.parametrize("status", ["creating", "verifying", "restoring"])
def test_a_status_that_older_releases_left_holds_nobody_up(cloud: t.Any, status: str) -> None:
    server(cloud)
    backup = take(cloud, "friday")
    cloud.write(sa.update(table).values(status=status))
    if status == "creating":
        with pytest.raises(ConflictError, match="is creating"):
            begin(cloud, "restoreBackup", "friday")
    else:
        record(cloud, "restoreBackup", begin(cloud, "restoreBackup", "friday"))
        assert backups(cloud)["friday"].status == "available"
        cloud.write(sa.update(table).values(status=status))
    deleted(cloud, "web")
    forget(cloud, backup)
    assert backups(cloud) == {}


def test_what_was_made_of_a_server_whose_state_was_reset_can_be_made_again(cloud: t.Any) -> None:
    uuid = server(cloud)
    requests = {"createImage": {"image_name": "friday"}, "shelve": {}, "createSnapshot": {"snapshot": "friday"}}
    for action, asked in requests.items():
        for _time in range(2):
            begun = ask(cloud, action, "web", request=asked)
            reset(cloud, "web")
            record(cloud, action, begun, **FILE)
            assert row(cloud, uuid).task_state is None
    assert cloud.rows(sa.select(tables.image).where(tables.image.c.owner != "")) == []
    (snapshot,) = cloud.rows(sa.select(tables.tables_images.server_snapshot))
    assert snapshot.status == "error"
