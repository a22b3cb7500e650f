# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps of hosts while they happen, of all runs of the ledger on this machine, as lines for people or as JSON.

Runs of the API's jobs are among them, if their worker is here: whoever follows has a FIFO in the ledger's home, into
which the processes that have hosts work write (plugin_utils/_events.py).
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import time

import click

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping
from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import without_controls
from ansible_collections.novalite.cloud.plugins.plugin_utils import _events
from ansible_collections.novalite.cloud.plugins.plugin_utils._progress import StepNow

from . import looking
from .tables import padded

NAMED = 3  # servers of a trip that a line names
_BYTES = 40  # characters for bytes, their rate and the rest of the time


def follow(uuid: str | None, output: str) -> None:
    """Print each event of a step as it comes, until Ctrl-C: of all, or of the server with this UUID. Raises
    click.ClickException for a home in which nobody can wait for them."""
    place = looking.home()
    teller = Teller()
    try:
        with _events.following(place) as events:
            for event in events:
                if uuid is None or uuid in event.uuids:
                    line = teller.in_json(event) if output == "json" else teller.in_words(event)
                    click.echo(line)
                    sys.stdout.flush()
    except OSError as error:
        raise click.ClickException(f"{place}: {error.strerror}: follow as who may write there") from None
    except KeyboardInterrupt:
        return


class Teller:
    """Knowledge that lines need of what came before them: names of servers, and bytes of steps."""

    def __init__(self) -> None:
        self._names: dict[str, str | None] = {}
        self._steps: dict[tuple[str, str], StepNow] = {}

    def in_json(self, event: _events.Event) -> str:
        """Return the event as an object in one line: `at` is seconds since the epoch, `servers` are names."""
        record: JsonMapping = {
            **dataclasses.asdict(event),
            "at": round(_when(event), 3),
            "servers": self._servers(event),
        }
        return json.dumps({name: value for name, value in record.items() if name != "uuids"})

    def in_words(self, event: _events.Event) -> str:
        """Return a line for people, which fits the terminal."""
        names = self._servers(event)
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        whom = f"  {', '.join(names[:NAMED])}{more}" if names else ""
        clock = time.strftime("%H:%M:%S", time.localtime(_when(event)))
        said = self._said(event)
        left = without_controls(f"{clock}  {event.host}{whom}  {event.step}")
        if sys.stdout.isatty():
            left = padded(left, max(shutil.get_terminal_size().columns - len(said) - 2, 1)).rstrip()
        return f"{left}: {said}"

    def _said(self, event: _events.Event) -> str:
        if event.kind == "begin":
            self._steps.pop((event.host, event.step), None)
            return "begins"
        if event.kind == "moving":
            step = self._steps.setdefault((event.host, event.step), StepNow(event.step, event.at))
            step.moved(event)
            return step.words(_BYTES)
        self._steps.pop((event.host, event.step), None)
        failed = "failed, and the host goes on" if event.may_fail else "failed"
        return f"{event.seconds:.1f} s, {failed if event.failed else 'changed' if event.changed else 'ok'}"

    def _servers(self, event: _events.Event) -> list[str]:
        unknown = [uuid for uuid in event.uuids if uuid not in self._names]
        if unknown:  # new servers, or what is none, such as a volume
            self._names.update(dict.fromkeys(unknown) | looking.names_of(unknown))
        return [name for uuid in event.uuids if (name := self._names[uuid]) is not None]


def _when(event: _events.Event) -> float:
    """The time of an event, in seconds since the epoch."""
    return time.time() - time.monotonic() + event.at
