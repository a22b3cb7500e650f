"""backup.unchanged_s: backup.yml for a server that changed nothing since its last backup. `ours` is the time over an
empty playbook, whose own time is the reference."""

from __future__ import annotations

import statistics
import typing as t

from tests.bench.cloud import Cloud
from tests.bench.launch import figure

NAME = "backup.unchanged_s"
ROUNDS = 3
STORE = "/srv/backups"


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    if not NAME.startswith(prefix):
        return
    with Cloud(instances=1) as cloud:
        variables = f"all:\n  vars:\n    novalite_backup_store: {STORE}\n"
        (cloud.inventory / "store.yml").write_text(variables)
        cloud.on_host("mkdir", "-p", STORE)
        cloud.playbook("playbooks/launch.yml", server="bench", flavor="m1.nano", image="ami-tiny", key="test")
        cloud.playbook("playbooks/backup.yml", server="bench")
        again = statistics.median(cloud.playbook("playbooks/backup.yml", server="bench") for _round in range(ROUNDS))
        empty = statistics.median(cloud.playbook("tests/bench/empty.yml") for _round in range(ROUNDS))
        yield figure(NAME, again - empty, empty, "s")
