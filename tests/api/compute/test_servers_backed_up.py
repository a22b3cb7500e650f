# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's createBackup: images of a server of which the oldest go."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.api import seeds
from tests.api.compute.test_servers_anew import ClientAs, Does, does, finish, server

__all__ = ["does", "server"]

MADE = {"source": "/nonexistent", "checksum": "sha256:" + "7" * 64, "size": 9, "virtual_size": 64 << 20}


def test_backups_are_images_of_which_the_oldest_go(
    api: seeds.Api, does: Does, server: str, client_as: ClientAs
) -> None:
    """As in Nova: of the server, of the same type; what is protected stays, and is counted."""

    def back_up(name: str, kind: str, rotation: int) -> str:
        asked = {"name": name, "backup_type": kind, "rotation": rotation}
        image_id = str(does({"createBackup": asked}, "2.45").get_json()["image_id"])
        finish(api, "createImage", server, host_results={server: MADE})
        with api.engine.begin() as connection:  # the next one is of another second
            older = tables.image.c.created_at - 10
            connection.execute(sa.update(tables.image).values(created_at=older))
        return image_id

    def there() -> set[str]:
        listed = client_as("demo").get("/image/v2/images?image_type=backup").get_json()["images"]
        return {image["name"] for image in listed}

    first = back_up("monday", "daily", 2)
    shown = client_as("demo").get(f"/image/v2/images/{first}").get_json()
    assert (shown["image_type"], shown["backup_type"], shown["instance_uuid"]) == ("backup", "daily", server)
    back_up("tuesday", "daily", 2)
    back_up("week 1", "weekly", 1)
    assert there() == {"monday", "tuesday", "week 1"}
    back_up("wednesday", "daily", 2)
    assert there() == {"tuesday", "wednesday", "week 1"}
    with api.engine.begin() as connection:
        connection.execute(sa.update(tables.image).where(tables.image.c.name == "tuesday").values(protected=True))
    back_up("thursday", "daily", 1)
    assert there() == {"tuesday", "thursday", "week 1"}
    back_up("friday", "daily", 0)
    assert there() == {"tuesday", "week 1"}


def test_a_backup_that_failed_rotates_nothing(api: seeds.Api, does: Does, server: str, client_as: ClientAs) -> None:
    for error in (None, "no room"):
        answer = does({"createBackup": {"name": "daily", "backup_type": "", "rotation": "1"}})
        assert answer.status_code == 202 and "/image/v2/images/" in answer.headers["Location"]
        finish(api, "createImage", server, error=error, host_results={server: MADE})
        listed = client_as("demo").get("/image/v2/images?image_type=backup").get_json()["images"]
        assert [image["status"] for image in listed] == ["active"]
    answer = does({"createBackup": {"name": "daily", "backup_type": "", "rotation": 0}})
    assert answer.status_code == 202 and "Location" not in answer.headers


@pytest.mark.parametrize(
    "asked", [{}, {"name": "x", "backup_type": "daily"}, {"name": "x", "backup_type": "daily", "rotation": -1}]
)
def test_backups_that_cannot_be(does: Does, asked: t.Any) -> None:
    assert does({"createBackup": asked}).status_code == 400
