"""The same cases of NUMA for our fit: for each request "refused", None (no fit), or the claim as data."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._model import host_numa
from ansible_collections.novalite.cloud.plugins.module_utils._model.numa import Claim, numa_of
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.numa_fit import Ratios, fit
from tests.parity import numa_cases

RATIOS = Ratios(cpu=4.0, ram=1.5)
REFUSED, NO_TOPOLOGY = "refused", "no topology"


def answer(case: numa_cases.Case) -> list[t.Any]:
    cells = host_numa.cells_of(case["facts"])
    claims: list[Claim] = []
    answers: list[t.Any] = []
    for request in case["requests"]:
        flavor = {"name": "f", **{key: request[key] for key in ("vcpus", "memory_mb", "extra_specs")}}
        try:
            asked = numa_of(flavor, {"name": "i", "properties": request["properties"]})
        except NovaliteError:
            answers.append(REFUSED)
            continue
        if asked is None:
            answers.append(NO_TOPOLOGY)
            continue
        result = fit(cells, claims, asked, RATIOS)
        if isinstance(result, Claim):
            claims.append(result)
            answers.append(
                [
                    [cell.node, [list(pin) for pin in cell.pins], list(cell.reserved), cell.page_kib]
                    for cell in result.cells
                ]
            )
        else:
            answers.append(None)
    return answers
