# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""ansible-playbook with the playbooks that copy a ledger, bring it back and migrate it."""

from __future__ import annotations

import pathlib
import stat

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import copies, tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import HEAD, open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.revisions import FORMER
from tests.support.former import make_former
from tests.unit._ledger.test_upkeep import dump
from tests.unit.playbooks.controller import CATALOGUE, Controller


def records(home: pathlib.Path) -> list[str]:
    engine = open_ledger(str(home))
    try:
        return dump(engine)
    finally:
        engine.dispose()


def done_by(controller: Controller, playbook: str, *arguments: str, **environment: str) -> str:
    done = controller.play(playbook, *arguments, **environment)
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    return done.stdout


def test_a_ledger_is_copied_brought_back_moved_and_migrated(controller: Controller) -> None:
    (controller.elsewhere / "catalogue.yml").write_text(CATALOGUE)
    done_by(controller, "seed.yml", "-e", "@catalogue.yml")
    before = records(controller.home)

    said = done_by(controller, "ledger_backup.yml", "-e", "ledger_file=backup.ledger")
    assert f"BACKUP file=backup.ledger revision={HEAD}" in said
    backup = controller.elsewhere / "backup.ledger"  # where the command is run
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    for _time in range(2):
        said = done_by(controller, "ledger_backup.yml", "-e", "keep_backups=1")
    [dated] = copies.copies_in(str(controller.home))
    assert f"BACKUP file={dated} revision={HEAD}" in said

    engine = open_ledger(str(controller.home))
    with transaction(engine) as connection:
        connection.execute(sa.update(tables.flavor).values(name="changed"))
    engine.dispose()
    changed = records(controller.home)
    assert changed != before
    refused = controller.play("ledger_restore.yml", "-e", "ledger_file=backup.ledger")
    assert refused.returncode == 2 and "the ledger here is not empty" in refused.stdout + refused.stderr
    assert records(controller.home) == changed
    said = done_by(controller, "ledger_restore.yml", "-e", "ledger_file=backup.ledger force=true")
    assert f"RESTORED file=backup.ledger revision={HEAD} before={controller.home}/{copies.DIRECTORY}/" in said
    assert records(controller.home) == before

    said = done_by(controller, "ledger_export.yml", "-e", "ledger_file=ledger.jsonl")
    assert f"EXPORT file=ledger.jsonl revision={HEAD}" in said
    assert (controller.elsewhere / "ledger.jsonl").read_text().splitlines() == before
    assert "changed=0" in done_by(controller, "ledger_export.yml", "-e", "ledger_file=ledger.jsonl")
    empty = controller.home.with_name("empty")
    said = done_by(controller, "ledger_import.yml", "-e", "file=ledger.jsonl", NOVALITE_HOME=str(empty))
    assert f"RESTORED file=ledger.jsonl revision={HEAD} before=nothing" in said
    assert records(empty) == before

    engine = open_ledger(str(controller.home))
    with transaction(engine) as connection:
        make_former(connection, FORMER[0])
    engine.dispose()
    said = done_by(controller, "ledger_migrate.yml")
    assert f"MIGRATED from={FORMER[0]} to={HEAD} copy={controller.home}/{copies.DIRECTORY}/" in said
    assert f"MIGRATED from={HEAD} to={HEAD} copy=none" in done_by(controller, "ledger_migrate.yml")
    assert records(controller.home) == before
    assert not controller.hosts_asked()


@pytest.mark.parametrize(
    ("playbook", "arguments", "message"),
    [
        ("ledger_restore.yml", (), "say -e ledger_file=..."),
        ("ledger_import.yml", ("-e", "ledger_fil=x"), "did you mean 'ledger_file'?"),
        ("ledger_import.yml", ("-e", "ledger_file=none.jsonl"), "the copy none.jsonl cannot be read"),
        ("ledger_restore.yml", ("-e", "ledger_file=hosts.ini force=true"), "is not a ledger"),
        ("ledger_backup.yml", ("-e", "ledger_file=none/backup"), "none/backup cannot be written"),
        ("ledger_export.yml", ("-e", "ledger_file=none/text"), "none/text cannot be written"),
        ("ledger_migrate.yml", ("-e", "revision=12"), "'12' is not a revision of the ledger"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(
    playbook: str, arguments: tuple[str, ...], message: str, cloud: Controller
) -> None:
    before = records(cloud.home)
    done = cloud.play(playbook, *arguments)
    assert done.returncode in (2, 4) and message in done.stdout + done.stderr, done.stdout + done.stderr
    assert records(cloud.home) == before and copies.copies_in(str(cloud.home)) == []
