# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import pytest

from tests.api import ec2_door
from tests.api.ec2_door import Client, Door
from tests.api.seeds import Api


@pytest.fixture
def door(api: Api) -> t.Iterator[Door]:
    with ec2_door.open_door(api) as opened:
        yield opened


@pytest.fixture
def demo(door: Door) -> Client:
    return door.client()
