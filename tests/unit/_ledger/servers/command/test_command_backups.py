# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands `novalite backup ...`."""

from __future__ import annotations

import base64
import json
import pathlib
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils import _secret_file
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_images import server_backup
from tests.support.cloud import Cloud
from tests.unit._ledger.servers.command.test_command import active, called, insert_backup, novalite, other_project

__all__ = ["called", "novalite"]  # fixtures


@pytest.fixture(autouse=True)
def on_sqlite(cloud: Cloud) -> None:
    if cloud.engine.dialect.name != "sqlite":
        pytest.skip("a home holds a file")


def test_backups_are_listed_and_shown(cloud: Cloud, novalite: t.Callable[..., str]) -> None:
    backup = insert_backup(cloud, active(cloud, "web"))
    (listed,) = json.loads(novalite("backup", "list", "-o", "json"))
    assert (listed["id"], listed["project"]) == (backup, "demo")
    head, row = novalite("backup", "list").splitlines()
    assert head.split()[:5] == ["SERVER", "NAME", "STATUS", "KIND", "VERIFIED"] and "whole" in row.split()
    for name in ("friday", backup):
        assert json.loads(novalite("backup", "show", name, "-o", "json")) == listed
    assert "friday" in novalite("backup", "show", "friday")
    assert "no backup has the name or id 'monday'" in novalite("backup", "show", "monday", code=1)


@pytest.mark.parametrize(
    ("words", "playbook", "said"),
    [
        (["create", "web"], "backup", {}),
        (["create", "web", "-b", "friday", "--full"], "backup", {"backup": "friday", "full_backup": True}),
        (["verify", "web"], "backup_verify", {}),
        (["restore", "web", "-b", "friday"], "backup_restore", {"backup": "friday"}),
        (["delete", "web", "-b", "friday"], "backup_delete", {"backup": "friday"}),
    ],
)
def test_what_is_done_is_its_playbook(
    cloud: Cloud,
    called: t.Callable[..., dict[str, t.Any]],
    tmp_path: pathlib.Path,
    words: list[str],
    playbook: str,
    said: dict[str, t.Any],
) -> None:
    active(cloud, "web")
    argv = called("--home", str(tmp_path), "backup", *words)["argv"]
    assert f"novalite.cloud.{playbook}" in argv
    assert json.loads(argv[argv.index("-e") + 1]) == {**{"servers": [{"name": "web"}], "project": "demo"}, **said}


def test_a_disk_of_a_backup_becomes_a_volume_by_its_playbook(
    called: t.Callable[..., dict[str, t.Any]], tmp_path: pathlib.Path
) -> None:
    argv = called("--home", str(tmp_path), "backup", "restore-volume", "friday", "vdb", "-n", "copy")["argv"]
    assert "novalite.cloud.backup_restore_volume" in argv
    variables = json.loads(argv[argv.index("-e") + 1])
    assert variables == {"backup": "friday", "backup_disk": "vdb", "volume": "copy"}


def test_files_of_a_backup_are_read_by_their_playbook(
    called: t.Callable[..., dict[str, t.Any]], tmp_path: pathlib.Path
) -> None:
    def variables(*words: str) -> dict[str, t.Any]:
        argv = called("--home", str(tmp_path), "backup", *words)["argv"]
        assert "novalite.cloud.backup_files" in argv
        return dict(json.loads(argv[argv.index("-e") + 1]))

    assert variables("files", "friday") == {"backup": "friday", "path": "/"}
    assert variables("files", "friday", "--path", "/etc", "--disk", "vdb", "--partition", "0", "-p", "alt") == {
        **{"backup": "friday", "path": "/etc", "disk": "vdb", "partition": 0, "project": "alt"}
    }
    into = tmp_path / "found"
    assert variables("extract", "friday", "/etc", "/root/a", "--to", str(into), "--max-mib", "5") == {
        **{"backup": "friday", "paths": ["/etc", "/root/a"], "into": str(into), "max_mib": 5}
    }


def test_a_backups_proof_is_written_to_files(
    cloud: Cloud, novalite: t.Callable[..., str], tmp_path: pathlib.Path
) -> None:
    backup = insert_backup(cloud, active(cloud, "web"))
    assert "was never booted: use" in novalite("backup", "proof", "friday", code=1)
    picture = base64.b64encode(b"PNG").decode()
    cloud.write(sa.update(server_backup).values(console="web login: ", picture=picture, booted_at=2))
    written = novalite("backup", "proof", backup, "--into", str(tmp_path)).split()
    assert written == [str(tmp_path / "console.txt"), str(tmp_path / "picture.png")]
    assert (tmp_path / "console.txt").read_text() == "web login: "
    assert (tmp_path / "picture.png").read_bytes() == b"PNG"
    cloud.write(sa.update(server_backup).values(picture=None))  # a guest without a screen
    written = novalite("backup", "proof", "friday", "--into", str(tmp_path)).split()
    assert written == [str(tmp_path / "console.txt")]


def test_ages_are_of_each_server_of_a_project_or_of_all(cloud: Cloud, novalite: t.Callable[..., str]) -> None:
    insert_backup(cloud, active(cloud, "web"))
    active(cloud, "db")

    def listed(*words: str) -> dict[str, list[int | None]]:
        records = json.loads(novalite("backup", "ages", "-o", "json", *words))
        return {each["server"]: [each[name] for name in ("newest", "whole", "proven")] for each in records}

    assert listed() == {"db": [None, None, None], "web": [1, 1, None]}
    head, *rows = novalite("backup", "ages").splitlines()
    assert head.split() == ["SERVER", "NEWEST", "WHOLE", "BOOTED", "POLICY"]
    assert {row.split()[0]: "NONE" in row for row in rows} == {"db": True, "web": False}
    cloud.write(sa.update(server_backup).values(proven_at=1, booted_at=1))
    assert listed()["web"] == [1, 1, 1]
    other_project(cloud)
    active(cloud, "mail", project="other")
    assert set(listed()) == {"db", "web"} and set(listed("--all-projects")) == {"db", "web", "mail"}


def test_the_key_is_exported(novalite: t.Callable[..., str], tmp_path: pathlib.Path) -> None:
    assert "the first backup makes it" in novalite("backup", "key", code=1)
    secret = _secret_file.ensure_secret(str(tmp_path / _secret_file.BACKUP))
    assert novalite("backup", "key") == f"{secret.hex()}\n"
