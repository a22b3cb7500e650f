"""The same cases for our scheduler."""

from __future__ import annotations

import random
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.explain import Decision
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.options import Options
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.rows import (
    Aggregate,
    Group,
    HostState,
    Request,
    request_of,
)
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.select import select
from tests.parity import cases

# what is Placement's in Nova, and a filter here; no case switches it off
PLACEMENT = ("retry", "requested_host", "availability_zone", "traits", "vcpu", "ram", "disk")
ALL = 1000


class LastOfTheSubset(random.Random):
    """The draw among the best that Nova's side makes, too."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return start - 1


def answer(case: cases.Case) -> list[tuple[list[int], str] | None]:
    """Per instance: the whole ranking, the chosen host first, and the weights; None where no host was found."""
    options = Options.of(
        {
            **case["options"],
            "enabled_filters": [*case["options"]["enabled_filters"], *PLACEMENT],
            "enabled_weighers": tuple(cases.WEIGHERS),
        }
    )
    answers: list[tuple[list[int], str] | None] = []
    decisions = select(
        hosts_of(case), requests_of(case), "filter_scheduler", LastOfTheSubset(), options=options, explained_hosts=ALL
    )
    for decision in decisions:
        if decision.host is None:
            answers.append(None)
            break
        answers.append(_ranking(decision))
    return answers


def _ranking(decision: Decision) -> tuple[list[int], str]:
    names = [host.name for host in decision.weighed]
    order = [decision.host, *(name for name in names if name != decision.host)]
    return [int(str(name)[2:]) for name in order], cases.of_weights(
        t.cast(float, host.score) for host in decision.weighed
    )


def hosts_of(case: cases.Case) -> list[HostState]:
    made = []
    for host in case["hosts"]:
        fields = dict(host)
        fields["aggregates"] = [
            Aggregate(aggregate["name"], aggregate["zone"], cases.metadata_of(aggregate))
            for aggregate in host["aggregates"]
        ]
        fields["instances"] = {uuid: {"project_id": None, "group_id": None} for uuid in host["instances"]}
        made.append(HostState(**fields))
    return made


def requests_of(case: cases.Case) -> list[Request]:
    request = case["request"]
    group = Group(id="group", **request["group"]) if request["group"] else None
    instance: dict[str, t.Any] = {
        "project": {"id": request["project_id"]},
        "flavor": request["flavor"],
        "image": request["image"],
        "availability_zone": request["availability_zone"],
        "attempts": request["ignore_hosts"],
        "request": {**request["hints"], "host": request["requested_host"]},
    }
    return [
        request_of({**instance, "uuid": f"new-{number}", "name": f"new-{number}"}, group)
        for number in range(request["count"])
    ]
