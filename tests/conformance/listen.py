# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stream of subunit (stdin) as lines of JSON: id, status, seconds, text. Runs with Tempest's interpreter."""

from __future__ import annotations

import json
import sys
import typing as t

import subunit
import testtools


def tell(test: dict[str, t.Any]) -> None:
    if test["status"] == "exists":  # it was found, and will be run
        return
    began, ended = test["timestamps"]
    texts = {name: content.as_text() for name, content in test["details"].items() if name in ("reason", "traceback")}
    line = {
        "id": test["id"],
        "status": test["status"],
        "seconds": (ended - began).total_seconds() if began and ended else 0.0,
        "text": (texts.get("reason") or texts.get("traceback") or "").strip(),
    }
    print(json.dumps(line), flush=True)


def main() -> None:
    result = testtools.StreamToDict(tell)
    result.startTestRun()
    subunit.ByteStreamToStreamResult(sys.stdin.buffer, non_subunit_name="output").run(result)
    result.stopTestRun()


if __name__ == "__main__":
    main()
