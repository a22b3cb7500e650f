# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Behind a proxy with a prefix, whatever answers carry of addresses is the public one: bodies and headers alike."""

from __future__ import annotations

import pathlib
import re

import pytest

from tests.api import conftest, scenes

PUBLIC = "https://cloud.example/nl"
INSIDE = "http://10.0.0.1:8774"


def test_no_answer_names_the_address_inside(seeded: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Every route that is read without an id, and those of a server, by an administrator and by nobody."""
    with conftest.application(seeded, tmp_path / "cloud", api_public_url=PUBLIC) as api:
        scene = scenes.build(api)
        admin, nobody = api.client_as("admin"), api.app.test_client()
        asked = named = 0
        for rule in api.app.url_map.iter_rules():
            if "GET" not in (rule.methods or ()) or rule.arguments - {"server_id", "uuid"} or rule.rule == "/":
                continue
            path = re.sub(r"<[^>]*>", scene.web, rule.rule)
            for client in (admin, nobody):
                answer = client.get(f"{path}?limit=1", base_url=INSIDE)
                if answer.is_streamed and answer.mimetype not in ("application/json", "text/html"):
                    continue
                text = answer.get_data(as_text=True) + str(answer.headers)
                assert "10.0.0.1" not in text, (path, text[:500])
                asked, named = asked + 1, named + (PUBLIC in text)
        assert asked > 100 and named > 30


@pytest.mark.parametrize("prefix", ["", "/nl"])
def test_whoever_is_unknown_is_sent_to_the_public_address(
    seeded: pathlib.Path, tmp_path: pathlib.Path, prefix: str
) -> None:
    with conftest.application(seeded, tmp_path / "cloud", api_public_url=f"https://cloud.example{prefix}") as api:
        answer = api.app.test_client().get("/compute/v2.1/servers", base_url=INSIDE)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == f'Keystone uri="https://cloud.example{prefix}/identity"'
