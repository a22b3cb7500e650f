"""Ask nova 34.0.0 itself about every case, and write down what it answers. Runs in an environment that has nova:

    python3 -m venv .cache/nova-venv && .cache/nova-venv/bin/pip install nova==34.0.0
    .cache/nova-venv/bin/python -m tests.parity.record

Filters, weighers, the choice and what a choice takes are Nova's own code on Nova's own objects. README.md beside this
file says what stands in for the services around them.
"""

from __future__ import annotations

import gzip
import json
import logging
import pathlib
import typing as t

from tests.parity import cases, nova_side

EXPECTED = pathlib.Path(__file__).with_name("expected.json.gz")


def record() -> dict[str, t.Any]:
    """Nova's answers to all cases."""
    logging.disable(logging.CRITICAL)  # Nova warns of every host that is down
    scheduler = nova_side.Scheduler()
    answers = [scheduler.answer(cases.case(seed)) for seed in range(cases.COUNT)]
    return {"nova": nova_side.VERSION, "digest": cases.digest(), "answers": answers}


def main() -> None:
    document = record()
    answers = document["answers"]
    content = json.dumps(document, separators=(",", ":")).encode()
    EXPECTED.write_bytes(gzip.compress(content, 9, mtime=0))
    raised = sum("raises" in answer for answer in answers)
    print(f"{len(answers)} cases, {raised} of which Nova answers with an exception; {EXPECTED.stat().st_size} bytes")


if __name__ == "__main__":
    main()
