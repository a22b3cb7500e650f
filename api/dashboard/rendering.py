# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Template filters, pure functions whose results are escaped like everything else; and the pages' own files: few,
small, read once, at addresses with a version, so that browsers may keep them."""

from __future__ import annotations

import datetime
import functools
import hashlib
import pathlib
import re
import time
import typing as t

from flask import Flask, Response, g
from markupsafe import Markup
from werkzeug.exceptions import NotFound

from ansible_collections.novalite.cloud.plugins.module_utils._graph.launch_steps import BY_OPERATION
from ansible_collections.novalite.cloud.plugins.module_utils._json import Json, JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._model.listed_hosts import Host
from ansible_collections.novalite.cloud.plugins.module_utils._rules.server_status import silence

from ..notices.matters import one_line
from ..web import policy
from ..web.context import Caller
from . import session
from .session import pages

DIRECTORY = pathlib.Path(__file__).parent / "static"
_SCRIPT = "text/javascript; charset=utf-8"
TYPES = {".css": "text/css; charset=utf-8", ".js": _SCRIPT, ".mjs": _SCRIPT, ".svg": "image/svg+xml"}
# noVNC and xterm.js: in what was built they lie here, in a checkout where tools/fetch-web has put them
PACKAGES = (DIRECTORY.with_name("packages"), pathlib.Path(__file__).resolve().parents[2] / ".cache/web")


def _read(directory: pathlib.Path) -> dict[str, bytes]:
    files = sorted(path for path in directory.rglob("*") if path.suffix in TYPES)
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


FILES = _read(DIRECTORY) | _read(next((place for place in PACKAGES if place.is_dir()), PACKAGES[0]))
HAS_CONSOLES = "novnc/core/rfb.js" in FILES and "xterm/lib/xterm.mjs" in FILES
VERSION = hashlib.sha256(b"\0".join(FILES.values())).hexdigest()[:12]

# A terminal would obey these; here they are noise
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles
    r"|\x1b[PX^_].*?(?:\x1b\\|$)"  # strings of other kinds
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
_OTHER_CONTROLS = re.compile(r"[^\S\n\t ]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
CONSOLE_CHARACTERS = 128 * 1024

TONES = {  # of words that say how something is
    **dict.fromkeys(("active", "available", "enabled", "in-use", "succeeded", "up", "ok"), "good"),
    **dict.fromkeys(("error", "failed", "down", "unreachable", "silent"), "bad"),
    **dict.fromkeys(("disabled", "differs", "unconfined"), "busy"),
    **dict.fromkeys(("building", "running", "queued", "changed"), "busy"),
}


# The pages that the head of each leads to, and the entry of the policy that it takes to see one
PAGES: tuple[tuple[str, str, str], ...] = (
    ("Instances", "pages.list_instances", "compute:servers:index"),
    ("Images", "pages.list_images", "image:read"),
    ("Volumes", "pages.list_volumes", "volume:read"),
    ("Backups", "pages.list_backup_ages", "compute:server-backups:read"),
    ("Networks", "pages.list_networks", "network:read"),
    ("Groups", "pages.list_security_groups", "network:security_groups:read"),
    ("Floating IPs", "pages.list_floating_ips", "network:floating_ips:read"),
    ("Keys", "pages.list_keys", "compute:keypairs:read"),
    ("Hosts", "pages.list_hosts", "compute:hypervisors:read"),
    ("Users", "pages.list_users", "identity:users:list"),
    ("Projects", "pages.list_projects", "identity:projects:list"),
    ("Jobs", "pages.list_jobs", "jobs:read"),
    ("Quotas", "pages.show_quotas", "compute:quotas:read"),
)
# Quotas that pages show, and their names
QUOTAS = {
    "instances": "Instances",
    "cores": "Cores",
    "ram": "Memory",
    "key_pairs": "Key pairs",
    "security_groups": "Security groups",
    "server_groups": "Server groups",
    "floating_ips": "Floating IPs",
    "networks": "Networks",
    "images": "Images",
    "volumes": "Volumes",
    "gigabytes": "Volumes, GiB",
    "snapshots": "Volume snapshots",
}


def register(app: Flask) -> None:
    filters: tuple[t.Callable[..., str | int], ...] = (
        *(
            moment,
            ago,
            duration,
            size,
            number,
            percent,
            fullness,
            tone,
            one_line,
            fill,
            fact,
            silence,
            quota_name,
            nova_step,
        ),
    )
    app.jinja_env.filters.update({function.__name__: function for function in filters}, console=console_text)
    app.context_processor(_context)


def _context() -> JsonObject:
    caller = g.get("caller")
    known = isinstance(caller, Caller)
    return {
        "me": caller if known else None,
        "is_member": known and "member" in caller.roles,
        "may": functools.partial(policy.may, caller) if known else None,
        "csrf": session.csrf() if known else "",
        "version": VERSION,
        "nav": [(label, endpoint) for label, endpoint, entry in PAGES if known and policy.may(caller, entry)],
        "page_names": {endpoint: label for label, endpoint, _entry in PAGES},
    }


def moment(seconds: float | None) -> Markup | str:
    if seconds is None:
        return "never"
    when = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return Markup('<time datetime="{0:%Y-%m-%dT%H:%M:%S}Z">{0:%Y-%m-%d %H:%M:%S} UTC</time>').format(when)


def ago(seconds: float | None, now: float | None = None) -> Markup | str:
    """Render how long ago `seconds` (since the epoch) was, with the time itself as a tool tip."""
    if seconds is None:
        return "never"
    when = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    passed = (time.time() if now is None else now) - seconds
    text = "just now" if passed < 10 else f"{duration(passed)} ago"
    return Markup('<time datetime="{0:%Y-%m-%dT%H:%M:%SZ}" title="{0:%Y-%m-%dT%H:%M:%SZ}">{1}</time>').format(
        when, text
    )


def duration(seconds: float | None) -> str:
    """The two largest units: 42 s, 3 min, 2 h 5 min, 4 d 3 h."""
    if seconds is None:
        return ""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{seconds:.1f} s" if 0.05 <= seconds < 10 and seconds != whole else f"{whole} s"
    for unit, inner, length, part in (("min", "s", 60, 1), ("h", "min", 3600, 60), ("d", "h", 86400, 3600)):
        if whole < length * (24 if unit == "h" else 60) or unit == "d":
            rest = whole % length // part
            return f"{whole // length} {unit} {rest} {inner}" if rest and unit != "min" else f"{whole // length} {unit}"
    return ""


def size(mebibytes: int) -> str:
    """Memory: 512 MiB, 2 GiB, 1.5 GiB."""
    if abs(mebibytes) < 1024:
        return f"{mebibytes} MiB"
    return f"{mebibytes / 1024:.1f}".removesuffix(".0") + " GiB"


def number(value: Json) -> str:
    if isinstance(value, (list, tuple)):
        return " / ".join(number(part) for part in value)
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def percent(used: float, limit: float) -> int:
    """Return `used` in percent of `limit`, from 0 to 100. Where there is no room, any use fills it."""
    if limit <= 0:
        return 100 if used > 0 else 0
    return round(100 * min(max(used, 0), limit) / limit)


def fill(host: Host) -> int:
    """Return how full the host is, in percent: of what it has least of."""
    return max(percent(amount["used"], amount["limit"]) for amount in host["capacity"].values())


def fact(value: Json, name: str) -> Markup | str:
    """Render what a host says of itself in words: times, libvirt's numbers of versions, truths."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and name.endswith("_at"):
        return moment(value)
    if isinstance(value, int) and name.endswith("_version"):  # 7.2.22 is 7002022
        return f"{value // 1_000_000}.{value // 1000 % 1000}.{value % 1000}" if value else "unknown"
    return str(value)


def quota_name(resource: str) -> str:
    return QUOTAS[resource]


def nova_step(operation: str) -> str:
    """Return what of Nova's takes a step of a launch that we call `operation`; "" for any other step."""
    steps = BY_OPERATION.get(operation, ())
    return f"{steps[0].component}: {steps[0].method}" if steps else ""


def rule_text(rule: t.Mapping[str, t.Any], names: t.Mapping[str, str]) -> str:
    """Render a rule in words: in tcp 22 from 0.0.0.0/0."""
    inwards = rule["direction"] == "ingress"
    low, high = rule["port_min"], rule["port_max"]
    ports = "" if low is None else f" {low}" if high in (None, low) else f" {low}-{high}"
    group = rule.get("remote_group_uuid")
    other = names.get(group, group) if group else rule["said_cidr"] or "anywhere"
    protocol = "everything" if rule["protocol"] in (None, "any") else rule["protocol"]
    return f"{'in' if inwards else 'out'} {rule['ethertype']} {protocol}{ports} {'from' if inwards else 'to'} {other}"


def fullness(share: int) -> str:
    return "bad" if share >= 90 else "busy" if share >= 75 else "good"


def tone(word: Json) -> str:
    return TONES.get(str(word), "plain")


def console_text(raw: str) -> str:
    """Return a guest's console output as text: without terminal control sequences, and only its end if it is long."""
    text = raw[-CONSOLE_CHARACTERS:].replace("\r\n", "\n").replace("\r", "\n")
    return _OTHER_CONTROLS.sub("", _ESCAPES.sub("", text))


def type_of(name: str) -> str:
    return TYPES[pathlib.PurePath(name).suffix]


@pages.get("/static/<version>/<path:name>", "pages:files")
def show_file(version: str, name: str) -> Response:
    if name not in FILES:
        raise NotFound
    kept = "public, max-age=31536000, immutable" if version == VERSION else "no-cache"
    return Response(FILES[name], content_type=type_of(name), headers={"Cache-Control": kept})
