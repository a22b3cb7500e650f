# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two that change a volume and its server at once: the server is locked first by all of them."""

from __future__ import annotations

import concurrent.futures
import threading
import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_states
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_volumes import volume
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_attachments
from tests.support.patience import GENEROUS


@pytest.mark.both_databases
def test_a_detach_waits_for_the_end_of_a_deletion(cloud: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (server,) = cloud.server({"name": "web", "flavor": "m1.nano", "image": "ami-tiny", "volumes": [{"size": 1}]})[
        "to_build"
    ]
    (data,) = cloud.rows(sa.select(volume.c.id))
    deleting = {"host": "hv1", "task_state": "deleting", "vm_state": "active", "launched_at": 1}
    cloud.write(sa.update(tables.instance).where(tables.instance.c.uuid == server["uuid"]).values(**deleting))
    has_instance, forget = threading.Event(), server_states._forget

    def slow(*arguments: t.Any, **options: t.Any) -> t.Any:
        has_instance.set()
        time.sleep(0.5)  # in which the other one takes what it takes first
        return forget(*arguments, **options)

    monkeypatch.setattr(server_states, "_forget", slow)

    def record() -> None:
        with transaction(cloud.engine) as connection:
            server_states.record_outcomes(connection, {server["uuid"]: {"state": "deleted"}})

    with concurrent.futures.ThreadPoolExecutor(1) as worker:
        ends = worker.submit(record)
        assert has_instance.wait(GENEROUS)
        with pytest.raises(NotFoundError), transaction(cloud.engine) as connection:
            volume_attachments.begin_detach(connection, data.id, server["uuid"])
        ends.result(timeout=GENEROUS)
