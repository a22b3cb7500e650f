# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host's end of a trip: the steps that the controller sent, run one after another in one process.

plugin_utils/_trip.py is the other end. It brings this code once, as one archive, which is kept below the state
directory under its SHA-256, compiled. Nothing of it runs on between two trips.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import os
import sys
import time
import typing as t

from .._json import JsonMapping, JsonObject
from . import asker, deadlines, events
from .mark import Expected, meet
from .module import HostCall, Result, call_module
from .own_directory import NotOwnError, opened_own, own_entry

PLUGINS = __package__.rsplit(".", 2)[0]
MARK = "NOVALITE-TRIP "  # before the answer: logins may print what they like
BEGUN = "begun"  # the answer to a trip that is sent again, and has begun before
TOKENS = "/run/novalite-trips"
TOKENS_KEPT = 3600  # seconds; a trip is sent again at once, or never


class Step(t.TypedDict):
    """Call of a module, or of a step, that the controller has run here. `place` is its file, by the package of the
    plug-ins; `paths` are the options that are paths on this host."""

    name: str
    module: str
    place: str
    args: JsonObject
    paths: list[str]
    may_fail: bool


class Request(t.TypedDict):
    """A trip. `token` names it, when it is sent `again`, too; empty where it changes nothing (check mode). `expected`
    is what its ledger has of the host, None without a ledger; marks are in `state_dir`. With `events` somebody
    follows its steps while they happen."""

    steps: list[Step]
    expected: JsonObject | None
    state_dir: str
    check_mode: bool
    diff: bool
    token: str
    again: bool
    events: bool


class Done(t.TypedDict):
    """The outcome of a step."""

    name: str
    module: str
    seconds: float
    result: Result


class Reply(t.TypedDict):
    """The answer to a trip: what was met on the `host`, None without a ledger, and the steps that were run."""

    host: JsonObject | None
    steps: list[Done]


def take(request: Request) -> Reply:
    """Compare the host with what is expected, then run the steps of `request` until one fails, or says what is
    `missing`, which the controller has to bring, or nobody waits for them any more; return how each went that was
    run."""
    if request["expected"] is None:
        return {"host": None, "steps": _take(request)}
    state_dir = _on_this_host({"state_dir": request["state_dir"]}, ["state_dir"])["state_dir"]
    seen = meet(Expected.of(request["expected"]), state_dir, request["check_mode"])
    return {"host": dataclasses.asdict(seen), "steps": [] if seen.refused else _take(request)}


def _take(request: Request) -> list[Done]:
    steps: list[Done] = []
    for number, step in enumerate(request["steps"]):
        if asker.has_gone():
            break
        events.begun(number)
        steps.append(_run(step, request))
        result = steps[-1]["result"]
        events.ended(bool(result.get("changed")), bool(result.get("failed")))
        if result.get("missing") or (result.get("failed") and not step["may_fail"]):
            break
    return steps


def _run(step: Step, request: Request) -> Done:
    began = time.monotonic()
    call = HostCall(_on_this_host(step["args"], step["paths"]), request["check_mode"], request["diff"])
    try:
        module = importlib.import_module(f"{PLUGINS}.{step['place']}")
        result = call_module(module.run, call, deadlines.of_step(step["module"], step["args"]))
    except Exception as error:  # a defect of ours: the steps before it have happened, and have to be told of
        import traceback  # costs each trip more than all that it asks for

        message = f"module {step['module']} ended with {type(error).__name__}: {error}"
        result = {"changed": False, "failed": True, "msg": message, "exception": traceback.format_exc()}
    seconds = round(time.monotonic() - began, 3)
    return {"name": step["name"], "module": step["module"], "seconds": seconds, "result": result}


def _on_this_host(args: JsonMapping, paths: t.Sequence[str]) -> JsonObject:
    """`args` with `~` and variables in its `paths` replaced by what they mean here, as Ansible's type `path` has it."""
    return {
        name: os.path.expanduser(os.path.expandvars(value)) if name in paths and isinstance(value, str) else value
        for name, value in args.items()
    }


def may_begin(token: str, again: bool, directory: str = TOKENS) -> bool:
    """Tell whether this process is the one that takes the trip `token`, the first that asks. Raises NotOwnError.

    ssh can be lost before the host has read a request, or after it (ansible/ansible#81777: pipelining while a shared
    connection expires). The controller cannot tell, and sends the trip again: only one of the two may change the host.
    """
    try:
        with opened_own(directory, make=True) as fd:
            with own_entry(token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, fd):
                pass
            old = time.time() - TOKENS_KEPT
            for name in os.listdir(fd):
                with contextlib.suppress(OSError):
                    if os.stat(name, dir_fd=fd, follow_symlinks=False).st_mtime < old:
                        os.unlink(name, dir_fd=fd)
    except FileExistsError:
        return False
    except OSError:  # not root: nobody can say whether the first one has begun
        return not again
    return True


def answer(text: str) -> None:
    """Take the trip that `text`, JSON, asks for, and print its answer; what modules print goes to stderr."""
    request: Request = json.loads(text)
    try:
        begins = not request["token"] or may_begin(request["token"], request["again"])
    except NotOwnError as error:
        refusal: Result = {"changed": False, "failed": True, "msg": str(error)}
        steps = [
            Done(name=step["name"], module=step["module"], seconds=0.0, result=refusal) for step in request["steps"]
        ]
        reply = json.dumps(Reply(host=None, steps=steps[:1]))
    else:
        reply = _reply(request) if begins else BEGUN
    sys.stdout.write(f"{MARK}{reply}\n")
    sys.stdout.flush()


def _reply(request: Request) -> str:
    follows = request["events"] and request["token"]
    kept = events.kept(TOKENS, request["token"]) if follows else contextlib.nullcontext()
    with kept, contextlib.redirect_stdout(sys.stderr):
        return json.dumps(take(request))
