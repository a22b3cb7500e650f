# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""`python -m novalite_api.jobs`: a worker (see worker.py), configured by NOVALITE_*."""

from __future__ import annotations

import argparse
import logging
import sys
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError

from .options import Options


def main(argv: t.Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m novalite_api work", description="Carry out jobs.")
    parser.add_argument("--parent", type=int, help="end when this process is not the parent any more")
    arguments = parser.parse_args(argv)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    logging.getLogger("novalite").setLevel(logging.INFO)
    try:
        options = Options.from_environment()
        from .worker import Worker  # DBOS takes most of a second to import

        Worker(options).work(arguments.parent)
    except NovaliteError as error:
        print(f"novalite: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
