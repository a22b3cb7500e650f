# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""SELinux's labels of what guests use below the state directory.

libvirt labels what a domain's XML names when the guest starts (svirt_image_t with the guest's own categories), and
gives it its default label back when it ends. The default is said here; else it is /var/lib's, which no guest may read.
"""

from __future__ import annotations

import dataclasses
import os
import re
import typing as t

from .._errors import NovaliteError
from .._host.command import run
from .._host.files import INSTANCES
from .._json import JsonObject
from . import layout

IMAGES = "virt_image_t"  # libvirt gives these to guests, and takes them back
CONTENT = "virt_content_t"  # every guest may read these, none may write to them
_LISTING = ("semanage", "fcontext", "-l", "-C", "-n")
_LOCAL = re.compile(r"(?P<pattern>\S+)\s+(?P<kind>\S.*?)\s+(?P<context>\S+)\Z")


@dataclasses.dataclass(frozen=True)
class Label:
    """The `type` of all files whose whole paths match the regular expression `pattern`."""

    pattern: str
    type: str


def labels(state_dir: str) -> tuple[Label, ...]:
    """The labels of what guests use below `state_dir`; of two that match, the later rule holds for SELinux."""
    top = re.escape(os.path.abspath(state_dir))
    read_only = "|".join(re.escape(name) for name in (layout.KERNEL, layout.RAMDISK, layout.CONFIG_DRIVE))
    return (
        *(Label(f"{top}/{name}(/.*)?", IMAGES) for name in (INSTANCES, "volumes", "snapshots", "incoming")),
        Label(f"{top}/{layout.BASE}(/.*)?", CONTENT),
        Label(f"{top}/{INSTANCES}/[^/]+/({read_only})({re.escape(layout.RESCUE)})?", CONTENT),
    )


def missing(desired_labels: t.Iterable[Label], listing: str) -> list[tuple[str, Label]]:
    """List those of `desired_labels` that the `listing` of `semanage fcontext -l -C -n` lacks, each with the option
    that sets it: -a adds a rule, -m changes an existing one."""
    known = {}
    for line in listing.splitlines():
        match = _LOCAL.match(line.strip())
        if match and match["kind"] == "all files":
            known[match["pattern"]] = ([*match["context"].split(":"), "", "", ""])[2]
    return [
        ("-m" if label.pattern in known else "-a", label)
        for label in desired_labels
        if known.get(label.pattern) != label.type
    ]


def ensure_labels(state_dir: str, check_mode: bool = False) -> JsonObject:
    """Have the labels of labels() in SELinux's local policy and on the files, but for those of guests that run:
    restorecon leaves svirt_image_t (a customizable type) alone. Returns `changed` and `diff`. Raises NovaliteError."""
    if not os.path.exists("/sys/fs/selinux/enforce"):
        raise NovaliteError("SELinux is not enabled on this host: there is nothing to label")
    changes = missing(labels(state_dir), run(_LISTING).stdout)
    if changes and not check_mode:
        for option, label in changes:
            run(["semanage", "fcontext", option, "-t", label.type, label.pattern])
        if os.path.isdir(state_dir):
            run(["restorecon", "-R", os.path.abspath(state_dir)], timeout=600)
    return {
        "changed": bool(changes),
        "diff": {"before": {}, "after": {label.pattern: label.type for _option, label in changes}},
    }


def present(own: t.Iterable[Label], listing: str) -> list[Label]:
    """List those of `own` that the `listing` of `semanage fcontext -l -C -n` has with the same type; a label with
    another type is an operator's."""
    own = list(own)
    lacking = {label for _option, label in missing(own, listing)}
    return [label for label in own if label not in lacking]


def remove_labels(state_dir: str, check_mode: bool = False) -> JsonObject:
    """Take what ensure_labels() said out of SELinux's local policy; files keep their labels. Returns `changed` and
    `diff`. Raises NovaliteError."""
    gone = present(labels(state_dir), run(_LISTING).stdout)
    for label in [] if check_mode else gone:
        run(["semanage", "fcontext", "-d", label.pattern])
    return {"changed": bool(gone), "diff": {"before": {label.pattern: label.type for label in gone}, "after": {}}}
