# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `samples`: keep what hosts and guests have counted, beside the ledger.

Rates are made of two readings in a row; the first one, and one after a start, says only how much memory is used. The
samples are files in the ledger's home, of a fixed size for each host and guest. The ledger itself is read only.
"""

from __future__ import annotations

import time

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._samples.rings import Samples
from ..db.engine import open_ledger, place_of, reading
from ..db.tables import instance
from ..queries.lookups import compute_host_names

ARGUMENT_SPEC = {
    # What the step `counters` returned, for each compute host that answered.
    "counters": {"type": "dict", "required": True},
    # All that were asked.
    "hosts": {"type": "list", "elements": "str", "default": []},
}


def samples(params: JsonMapping, check_mode: bool) -> JsonObject:
    """Return `changed`, and `in_words`: how much was measured, and who did not answer. Nobody waits for the ledger
    while files are written."""
    where = params.get("home"), params.get("ledger_url")
    engine = open_ledger(*where, check_mode=check_mode)
    try:
        with reading(engine) as connection:
            known = set(compute_host_names(connection))
            living = set(connection.execute(sa.select(instance.c.uuid).where(instance.c.deleted == 0)).scalars())
    finally:
        engine.dispose()
    answers = {host: answer for host, answer in params["counters"].items() if host in known}
    if not check_mode:
        home = place_of(*where).home
        try:
            Samples(home).record(answers, living, time.time())
        except OSError as error:
            raise NovaliteError(f"samples cannot be kept: {error.filename or home}: {error.strerror}") from None
    guests = sum(guest["uuid"] in living for answer in answers.values() for guest in answer["guests"])
    words = [f"measured {len(answers)} hosts and {guests} guests"]
    words += [f"{host} did not answer" for host in params["hosts"] if host not in params["counters"]]
    words += [f"{host} is not in the ledger: run compute_nodes.yml" for host in params["counters"] if host not in known]
    words += [f"{host}: {complaint}" for host, answer in answers.items() for complaint in answer["complaints"]]
    return {"changed": False, "in_words": "; ".join(words)}


samples.opens_by_itself = True  # type: ignore[attr-defined]  # see _ledger_module.run_operation
