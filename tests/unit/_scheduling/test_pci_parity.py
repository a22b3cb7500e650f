# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our choice of PCI devices beside nova 34.0.0's own, as tests/parity/pci_record.py wrote it down."""

from __future__ import annotations

import gzip
import json
import pathlib

from tests.parity import pci_cases, pci_our_side

EXPECTED = pathlib.Path(__file__).parents[2] / "parity/pci_expected.json.gz"


def test_every_device_is_novas() -> None:
    recorded = json.loads(gzip.decompress(EXPECTED.read_bytes()))
    assert recorded["nova"] == "34.0.0"
    assert recorded["digest"] == pci_cases.digest(), "the generator was changed: run tests/parity/pci_record.py"
    different, near, anywhere, refusals = [], 0, 0, 0
    for seed, expected in enumerate(recorded["answers"]):
        got = [answer for answer in expected[2:] if isinstance(answer, list) and answer[1]]
        near += sum(bool(nodes) for nodes, _devices, _weight in got)
        anywhere += sum(not nodes for nodes, _devices, _weight in got)
        refusals += expected.count(None)
        if pci_our_side.answer(pci_cases.case(seed)) != expected:
            different.append(seed)
    assert different == []
    assert near > 500 and anywhere > 300 and refusals > 2000  # that all this has compared something
