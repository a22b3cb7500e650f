# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import pytest

from tests.api import applications
from tests.api.conftest import Cloud
from tests.api.doors import Doors


@pytest.fixture
def doors(cloud: Cloud) -> t.Iterator[Doors]:
    with applications.application(cloud.home) as app:
        opened = Doors(cloud, "/volume/v3", app)
        for user in (opened.member, opened.reader, opened.admin, opened.stranger):
            user.base = f"/volume/v3/{user.project}"
        cloud.host("hv1", last_seen_at=2**31)
        yield opened
