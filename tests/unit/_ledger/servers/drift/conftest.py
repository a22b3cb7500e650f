# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import plans


@pytest.fixture
def web(cloud: t.Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, t.Any]:
    monkeypatch.setattr(plans, "guest_of", lambda instance, facts, **_where: instance)
    monkeypatch.setattr(plans, "render", lambda guest: f"<domain {guest['uuid']}>")
    (instance,) = cloud.server({"name": "web", "flavor": "m1.nano", "image": "ami-tiny"})["to_build"]
    cloud.place(instance["uuid"], "hv2")
    cloud.state({"uuids": [instance["uuid"]], "state": "active", "host": "hv2"})
    return t.cast(dict[str, t.Any], instance)
