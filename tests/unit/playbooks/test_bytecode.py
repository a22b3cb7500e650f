# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Playbooks do not compile the collection's code each time they are run."""

from __future__ import annotations

import pathlib

from tests.unit.playbooks.controller import Controller


def test_compiled_code_is_kept(controller: Controller, tmp_path: pathlib.Path) -> None:
    (controller.elsewhere / "flavors.yml").write_text(
        "novalite_cloud: {flavors: [{name: m1.nano, vcpus: 1, memory_mb: 96}]}\n"
    )
    kept = {"PYTHONPYCACHEPREFIX": str(tmp_path / "kept"), "PYTHONDONTWRITEBYTECODE": ""}
    done = controller.play("seed.yml", "-e", "@flavors.yml", **kept)
    assert done.returncode == 0, done.stdout + done.stderr
    compiled = {path.name.partition(".")[0] for path in (tmp_path / "kept").rglob("*.pyc") if "novalite" in path.parts}
    assert {"flavor", "_ledger_action", "engine"} <= compiled
