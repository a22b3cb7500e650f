# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `epoch_token`: keep the epoch of this host, and the term of the watcher, that orders must not be older than.

Each fencing raises the epoch, each change of the watcher the term. The host keeps the newest that it was told, until
its next boot: a host that was not told since refuses all orders that carry a token, for whoever sends one may have
slept through its death.
"""

from __future__ import annotations

from .._errors import NovaliteError
from .._healing.actions import accepted, newest
from .._healing.nouns import Token
from .._host import small_records
from .._host.module import HostCall, HostModuleError, Result
from .._json import JsonMapping

NAME = "epoch"  # the record, below small_records.RUN_DIR
UNSET, OLDER = "unset", "older"  # why an order is refused

ARGUMENT_SPEC = {
    "epoch": {"type": "int", "required": True},
    "term": {"type": "int", "required": True, "no_log": False},
    # `kept` raises what the host keeps. `checked` fails, and changes nothing, for a token that is older than that, or
    # where nothing is kept.
    "state": {"type": "str", "choices": ["kept", "checked"], "default": "kept"},
    # Whether `checked` lets an order pass where nothing is kept: nobody watches who would tell the host.
    "booted": {"type": "bool", "default": False},
}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `kept`: what the host keeps now, `epoch` and `term`
    * `refused`: of a token that was refused, `unset` (nothing is kept) or `older`
    """
    token = Token(call.params["epoch"], call.params["term"])
    if min(token.epoch, token.term) < 0:
        raise NovaliteError(f"epoch {token.epoch}, term {token.term}: neither is less than 0")
    if call.params["state"] == "checked":
        return _checked(token, bool(call.params.get("booted")))
    if call.check_mode:
        before = small_records.read(NAME)
        after = _newest(before, token)
    else:
        before, after = small_records.replace(NAME, lambda record: _newest(record, token))
    return {"changed": after != before, "kept": dict(after)}


def _checked(token: Token, booted: bool) -> Result:
    record = small_records.read(NAME)
    kept = _of_record(record)
    if accepted(kept, token) or (booted and kept is None):
        return {"changed": False, "kept": record}
    if kept is None:
        why = "this host was not told of any epoch since it booted: wait until the watcher has looked at it"
        raise HostModuleError(f"the order of epoch {token.epoch} is refused: {why}", kept=None, refused=UNSET)
    raise HostModuleError(
        f"the order of epoch {token.epoch} and term {token.term} is refused: this host has heard of epoch {kept.epoch} "
        f"and term {kept.term} since; look at what runs where now, and order anew",
        kept=record,
        refused=OLDER,
    )


def _of_record(record: JsonMapping | None) -> Token | None:
    if record is None:
        return None
    if not all(isinstance(record.get(field), int) for field in ("epoch", "term")):
        raise NovaliteError(f"{small_records.RUN_DIR}/{NAME} is damaged: remove it, and it is written again")
    return Token(record["epoch"], record["term"])


def _newest(record: JsonMapping | None, token: Token) -> JsonMapping:
    newer = newest(_of_record(record), token)
    return {"epoch": newer.epoch, "term": newer.term}
