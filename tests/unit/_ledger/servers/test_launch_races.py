# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Launches that meet others at the same moment: MACs and quotas."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import create
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import vifs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.server import server
from tests.support.beside import CONTEXT
from tests.support.patience import GENEROUS
from tests.unit._ledger.servers.test_servers import ask


@pytest.mark.both_databases
def test_a_lost_race_for_a_mac_costs_a_try_not_the_launch(cloud: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = cloud.server(ask("one"))["to_build"][0]["nics"][0]["mac"]
    draws = iter([[taken], [taken], ["fa:16:3e:00:00:01"]])
    monkeypatch.setattr(vifs, "_new_macs", lambda count, prefix: next(draws))
    assert cloud.server(ask("two"))["to_build"][0]["nics"][0]["mac"] == "fa:16:3e:00:00:01"
    monkeypatch.setattr(vifs, "_new_macs", lambda count, prefix: [taken])
    with pytest.raises(ConflictError, match="no free MAC addresses in 5 tries"):
        cloud.server(ask("three"))
    assert cloud.info(name="three") == []


def _launch(url: str, worker: int, results: t.Any) -> None:
    engine = open_ledger(url=url)
    made = refused = 0
    for number in range(6):
        try:
            with transaction(engine) as connection:
                server(connection, {"servers": [ask(f"w{worker}-{number}")]})
            made += 1
        except QuotaError:
            refused += 1
    results.put((made, refused))


@pytest.mark.both_databases
def test_a_quota_holds_against_processes_that_launch_at_once(cloud: t.Any) -> None:
    results = CONTEXT.Queue()
    workers = [CONTEXT.Process(target=_launch, args=(cloud.url, n, results)) for n in range(4)]
    for worker in workers:
        worker.start()
    answers = [results.get(timeout=GENEROUS) for _worker in workers]
    for worker in workers:
        worker.join()
    assert sum(made for made, _refused in answers) == 10
    assert sum(refused for _made, refused in answers) == 14
    assert len(cloud.info()) == 10


@pytest.mark.both_databases
def test_the_quota_is_counted_again_after_the_writes(cloud: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second count sees what another transaction commits between count and insert."""
    counted = create.usage

    def many_more_and_count(connection: sa.Connection, *rest: t.Any) -> t.Any:
        row = connection.execute(sa.select(tables.instance)).mappings().one()
        other = {key: row[key] for key in row if key != "id"}
        connection.execute(
            sa.insert(tables.instance),
            [{**other, "uuid": f"{n:036}", "name": f"late-{n}", "hostname": f"late-{n}"} for n in range(10)],
        )

        return counted(connection, *rest)

    monkeypatch.setattr(create, "usage", many_more_and_count)
    with pytest.raises(QuotaError, match="Requested 1, but already used 10 of 10 instances"):
        cloud.server(ask())
    assert cloud.info() == []
