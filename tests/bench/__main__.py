"""`make bench BENCH=<prefix>`: one JSON object per line, ours beside a named reference of the same run."""

from __future__ import annotations

import argparse
import importlib
import json

# prefix of the benchmark's name -> module with `run(prefix: str) -> Iterator[dict]`
GROUPS = {
    "api": "tests.bench.api",
    "api.burst20": "tests.bench.api_jobs",
    "api.one_added_s": "tests.bench.api_jobs",
    "api.to_active": "tests.bench.api_jobs",
    "backup": "tests.bench.backup",
    "backup.unchanged_s": "tests.bench.backup_unchanged",
    "balance": "tests.bench.balance",
    "cli": "tests.bench.cli",
    "cli.launch_one": "tests.bench.cli_launch",
    "firewall": "tests.bench.firewall",
    "growth": "tests.bench.growth",
    "inject": "tests.bench.inject",
    "inject.overlay100": "tests.bench.disks",
    "ipam": "tests.bench.ipam",
    "launch": "tests.bench.launch",
    "launch.thousand": "tests.bench.thousand",
    "pages": "tests.bench.pages",
    "scheduler": "tests.bench.scheduler",
    "scheduler.claims": "tests.bench.claims",
    "stack": "tests.bench.stack",
    "terminate": "tests.bench.launch",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prefix", nargs="?", default="", help="only benchmarks whose name starts so")
    prefix = parser.parse_args().prefix
    modules = [module for group, module in GROUPS.items() if group.startswith(prefix) or prefix.startswith(group)]
    for module in dict.fromkeys(modules):
        for figure in importlib.import_module(module).run(prefix):
            print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main()
