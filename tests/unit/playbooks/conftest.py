# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib
import shutil

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from tests.support.rows import add_image
from tests.unit.playbooks.controller import CATALOGUE, Controller


@pytest.fixture
def controller(tmp_path: pathlib.Path) -> Controller:
    return Controller(tmp_path)


@pytest.fixture(scope="session")
def with_catalogue(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The home of a ledger with a catalogue, to be copied: to play seed.yml takes a second."""
    controller = Controller(tmp_path_factory.mktemp("catalogue"))
    (controller.elsewhere / "catalogue.yml").write_text(CATALOGUE)
    done = controller.play("seed.yml", "-e", "@catalogue.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    return controller.home


@pytest.fixture(scope="module")
def cloud(with_catalogue: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Controller:
    """One whose ledger has a catalogue, for tests that leave it alone."""
    controller = Controller(tmp_path_factory.mktemp("cloud"))
    (controller.elsewhere / "catalogue.yml").write_text(CATALOGUE)
    shutil.copytree(with_catalogue, controller.home, dirs_exist_ok=True)
    return controller


@pytest.fixture(scope="module")
def seeded(cloud: Controller) -> pathlib.Path:
    """The home of a ledger with a catalogue and an image."""
    home = cloud.home
    engine = open_ledger(str(home))
    with transaction(engine) as connection:
        add_image(connection, "tiny")
    engine.dispose()
    return home
