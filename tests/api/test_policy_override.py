# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules of the policy table that the environment changes."""

from __future__ import annotations

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from api import create_app, policy
from api.settings import Settings


@pytest.fixture(autouse=True)
def own_table(monkeypatch: pytest.MonkeyPatch) -> None:
    create_app(Settings())  # every service has said its rules
    monkeypatch.setattr(policy, "POLICY", dict(policy.POLICY))


def test_a_rule_is_changed() -> None:
    policy.override(" compute:hypervisors:read=admin, compute:servers:show=any,")
    assert (policy.POLICY["compute:hypervisors:read"], policy.POLICY["compute:servers:show"]) == ("admin", "any")


@pytest.mark.parametrize("text", ["nosuch=admin", "compute:servers:show", "compute:servers:show=public", "version=any"])
def test_what_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(NovaliteError, match=r"NOVALITE_API_POLICY has '.*': write operation=role"):
        policy.override(text)
