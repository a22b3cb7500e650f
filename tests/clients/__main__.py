# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""See the file `run` beside this."""

from __future__ import annotations

import argparse
import sys
import threading
import time
import typing as t

from . import amazon, command, doors, horizon, identity, libraries, packer, projects, storage
from .cloud import Cloud, cloud
from .report import Report

PARTS: dict[str, t.Callable[[Report, Cloud], None]] = {
    "cli": lambda report, running: command.run(report, running, "cli", None),
    "cli-2.1": lambda report, running: command.run(report, running, "cli-2.1", "2.1"),
    "sdk": libraries.sdk,
    "ansible": libraries.ansible,
    "others": command.others,
    "commands": projects.run,
    "identity": identity.run,
    "images": storage.images,
    "volumes": storage.volumes,
    "aws": amazon.command,
    "boto3": amazon.library,
    "amazon.aws": amazon.collection,
    "packer": packer.run,
    "doors": doors.run,
    "horizon": horizon.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/clients/run", description="Real clients against the API.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--without", default="", metavar="PART,...", help="leave these out")
    options = parser.parse_args()
    asked = [part for part in options.parts or list(PARTS) if part not in options.without.split(",")]
    if unknown := set(asked) - set(PARTS):
        parser.error(f"{', '.join(sorted(unknown))}: there are {', '.join(PARTS)}")
    report = Report()
    with cloud() as running:
        began = time.monotonic()
        # at the same time: most of it is waiting for guests, and users do not wait for each other either
        threads = [threading.Thread(target=_run, args=(report, running, name)) for name in asked]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"{time.monotonic() - began:.0f} s")
    return report.summary()


def _run(report: Report, running: Cloud, name: str) -> None:
    try:
        PARTS[name](report, running)
    except Exception as error:  # outside of all steps
        with report.step(name, "all of it"):
            raise error


if __name__ == "__main__":
    sys.exit(main())
