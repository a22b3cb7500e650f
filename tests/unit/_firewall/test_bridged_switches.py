# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel's switches that show bridged packets to iptables."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._firewall import apply
from ansible_collections.novalite.cloud.plugins.module_utils._network import bridged
from tests.unit._firewall.test_apply import SSH, request_for

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("own_files")]


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_bridged_packets_are_shown_to_iptables(lan: t.Any, backend: str) -> None:
    switch = pathlib.Path(bridged.DIRECTORY, "bridge-nf-call-iptables")
    with lan.enter(lan.hypervisor):
        apply.apply(request_for([SSH]), backend=backend)
        switch.write_text("0\n")
        planned = apply.apply(request_for([SSH]), check_mode=True, backend=backend)
        assert planned.before == {"sysctl": {"net.bridge.bridge-nf-call-iptables": "0"}}
        assert switch.read_text() == "0\n"
        assert apply.apply(request_for([SSH]), backend=backend).changed
        assert switch.read_text() == "1\n"


def test_switches_that_stay_off_are_refused(tmp_path: pathlib.Path) -> None:
    wrong = bridged.missing(directory=str(tmp_path))
    assert set(wrong.values()) == {"absent"}
    (tmp_path / "bridge-nf-call-iptables").mkdir()
    with pytest.raises(NovaliteError, match="bypass every security group"):
        bridged.ensure(wrong, directory=str(tmp_path))
