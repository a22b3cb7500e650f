# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Balancing beside the watch, by its playbooks: what is suggested, what moves, and what does not."""

from __future__ import annotations

import pathlib
import shutil
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_migrations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from tests.support.rows import an_instance, insert
from tests.unit.playbooks.test_watch import Cloud

TURN = ("-e", "balance_watch=true", "-e", "novalite_watch_controller=ctl")
ACT = (*TURN, "-e", "balance_mode=act")
events = tables_migrations.watch_event


class Uneven(Cloud):
    """The watched cloud, whose hv2 bears two more servers; the other hosts have none."""

    def __init__(self, path: pathlib.Path, seeded: pathlib.Path) -> None:
        super().__init__(path, seeded)
        hosts, allocation = tables.compute_host, tables.allocation
        with self.ledger() as connection:
            number = connection.scalar(sa.select(hosts.c.id).where(hosts.c.name == "hv2"))
            demo = lookups.project_by_name(connection, "demo")["id"]
            for name in ("db", "app"):
                insert(connection, tables.instance, **an_instance(name, project_id=demo, host="hv2", power_state=1))
            uuids = connection.scalars(sa.select(tables.instance.c.uuid)).all()
            sizes = {"vcpus": 1, "memory_mb": 512, "disk_gb": 1}
            for uuid in uuids:
                insert(connection, allocation, instance_uuid=uuid, compute_host_id=number, created_at=0, **sizes)
            used = {f"{name}_used": 3 * value for name, value in sizes.items()}
            connection.execute(sa.update(hosts).where(hosts.c.id == number).values(**used, num_instances=3))

    def ledger(self) -> t.ContextManager[sa.Connection]:
        return transaction(open_ledger(str(self.home)))

    def turn(self, *words: str, moves: bool = False) -> str:
        """Run balance.yml with a turn that is due. The stand-ins of hosts tell nothing of guests that move, so that a
        run with `moves` ends as one whose guests stayed."""
        with self.ledger() as connection:
            connection.execute(sa.update(tables_migrations.watch).values(balance_at=0))
        done = self.play("balance.yml", *words)
        assert (done.returncode == 0) is not moves, done.stdout + done.stderr
        return done.stdout

    def journal(self) -> list[str]:
        return [line.why for line in self.ask(sa.select(events.c.why).where(events.c.event == "balance"))]


@pytest.fixture(scope="module")
def watched_once(seeded: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Uneven, pathlib.Path]:
    """The cloud after the watch's first round, and a copy of its home as it was then."""
    cloud = Uneven(tmp_path_factory.mktemp("uneven"), seeded)
    cloud.watch("-e", "novalite_watch_controller=ctl")
    return cloud, pathlib.Path(shutil.copytree(cloud.home, tmp_path_factory.mktemp("kept") / "home"))


@pytest.fixture
def uneven(watched_once: tuple[Uneven, pathlib.Path]) -> Uneven:
    """The cloud with its home as after that round."""
    cloud, kept = watched_once
    shutil.rmtree(cloud.home)
    shutil.copytree(kept, cloud.home)
    cloud.trips()
    return cloud


def moved(cloud: Uneven) -> set[str]:
    """Names of the servers that a move has begun of."""
    c = tables_migrations.migration.c
    query = sa.select(tables.instance.c.name).join(
        tables_migrations.migration, c.instance_uuid == tables.instance.c.uuid
    )
    return {row.name for row in cloud.ask(query)}


def test_rounds_of_the_watch_suggest_a_plan_once(uneven: Uneven) -> None:
    (line,) = uneven.journal()
    assert line.startswith("suggested: 2 moves would bring the score from ") and " from hv2 to " in line
    uneven.watch("-e", "novalite_watch_controller=ctl")
    uneven.turn(*TURN)
    assert uneven.journal() == [line] and not moved(uneven)
    uneven.watch("-e", "novalite_watch_controller=ctl", "-e", "novalite_balance_mode=off")
    (row,) = uneven.ask(sa.select(tables_migrations.watch.c.balance))
    assert row.balance is None


def test_moves_are_made_by_a_run_beside_the_watch(uneven: Uneven) -> None:
    assert "the balance was looked at a short while ago" in uneven.play("balance.yml", *ACT).stdout
    assert not moved(uneven)
    uneven.turn(*ACT, moves=True)
    assert len(moved(uneven)) == 2 and [line.partition(":")[0] for line in uneven.journal()] == [
        "suggested",
        "carried out",
    ]
    assert [host for host, steps in uneven.trips() if "live_migration" in steps] == ["hv2"]


@pytest.mark.parametrize(
    ("table", "columns", "words"),
    [
        (tables_migrations.host_watch, {"armed": False}, "healing is disarmed"),
        (tables_migrations.host_watch, {"state": "suspect"}, "no host answers the watch"),
        (tables_migrations.watch, {"controller": "other"}, "other watches the hosts"),
    ],
)
def test_nothing_moves_where_a_host_may_have_to_be_healed(
    uneven: Uneven, table: sa.Table, columns: dict[str, t.Any], words: str
) -> None:
    with uneven.ledger() as connection:
        connection.execute(sa.update(table).values(**columns))
    assert words in uneven.turn(*ACT)
    assert not moved(uneven) and len(uneven.journal()) == 1 and not uneven.trips()
