# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Processes beside a test's own, such as several controllers at once: forked from one that has imported what they use,
has no threads, and holds nothing of the test's.

That one imports what it finds from the checkout, where it is started, and leaves out the rest without a word: a test's
own file, which pytest knows by its name alone, it does not find.
"""

from __future__ import annotations

import multiprocessing
import sys
import typing as t

ROOM = "ansible_collections.novalite.cloud.plugins.module_utils._ledger"
OPERATIONS = (
    *("tasks.fixed_ip", "tasks.records", "tasks.scheduler", "tasks.server"),
    *("steps.ledger_heal", "steps.server_state"),
)
PRELOADED = (
    *("pytest", "sqlalchemy.dialects.sqlite", "sqlalchemy.dialects.postgresql.psycopg", "alembic.command"),
    *("tests.support.cloud", "api.openstack.compute"),
    *(f"{ROOM}.{name}" for name in OPERATIONS),
)
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(list(PRELOADED))


def report_modules(answers: t.Any) -> None:
    """Say which modules a process has that imported nothing but this file."""
    answers.put(sorted(sys.modules))
