# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""`python -m novalite_api.notices`: tell once what needs attention, configured by NOVALITE_NOTIFY_*."""

from __future__ import annotations

import argparse
import os
import sys
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError

from .receivers import MAIL, WEBHOOK, receivers
from .telling import Render, notify


def main(argv: t.Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="novalite notify", description="Tell by webhook and mail what needs attention since the last time."
    )
    parser.add_argument("--test", action="store_true", help="send a message that tells of nothing")
    arguments = parser.parse_args(argv)
    try:
        named = receivers()
        if not named:
            raise NovaliteError(f"nobody is to be told: set {WEBHOOK} or {MAIL} (docs/monitoring.md)")
        render = Render(os.environ.get("NOVALITE_NOTIFY_TEMPLATE"), os.environ.get("NOVALITE_API_PUBLIC_URL"))
        place = os.environ.get("NOVALITE_HOME"), os.environ.get("NOVALITE_LEDGER_URL")
        failures = notify(*place, named, render, arguments.test)
    except NovaliteError as error:
        failures = [str(error)]
    for failure in failures:
        print(f"novalite: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
