# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The image cache of a compute host: `_base/<sha256>.raw` holds every image once, verified, disks as sparse raw files.

A base file is raw because a raw file has no header that could name another file, and a guest that writes one into
its own overlay gains nothing: `-F raw` is right for ever (Nova: force_raw_images).
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import tempfile
import typing as t

from .._errors import ImageRefusedError, NovaliteError
from .._host import events
from .._host.command import CommandError
from .._host.confined import Limits, run_confined
from .._host.files import make_private, remove_file, remove_stale, sync
from .._host.locks import locked
from .._host.waiting import in_threads
from .._json import JsonObject
from .._likeness import Content
from . import layout
from .download_request import Report, Source, Transfer, remove_part
from .inspect import DEFAULT_LIMIT, DRIVERS, inspect_image
from .sparse import sha256_of

KINDS = ("disk", "kernel", "ramdisk")
CHUNK = 1 << 20
CONVERT_TIMEOUT = 1800.0  # seconds
STAGING_PREFIX = ".incoming-"
STAGING_MAX_AGE = 3600.0  # seconds without a write: the push was cut off with its controller

# CVE-2015-5162: a crafted image makes qemu-img eat memory and CPU. Nova's limits for `info` (1 GiB, 30 s) are the
# default ones of Limits; a conversion reads everything.
CONVERT_MEMORY = 2 << 30  # bytes
CONVERT_CPU = 900  # seconds


@dataclasses.dataclass(frozen=True)
class Image:
    """Image that must be in the cache. Sizes are in bytes, 0 or None where they are not known; `staged` is where a
    pushed file lies on this host."""

    checksum: str
    source: str
    size: int = 0
    kind: str = "disk"
    disk_format: str | None = None
    virtual_size: int | None = None
    max_virtual_size: int = 0  # 0: DEFAULT_LIMIT
    staged: str | None = None

    def __post_init__(self) -> None:
        layout.cache_key(self.checksum)
        if self.kind not in KINDS:
            raise NovaliteError(f"{self}: kind '{self.kind}' is none of {', '.join(KINDS)}")
        if self.kind == "disk" and not self.disk_format:
            raise NovaliteError(f"{self}: a disk needs its disk_format declared, it is never guessed")
        if min(self.size, self.virtual_size or 0, self.max_virtual_size) < 0:
            raise NovaliteError(f"{self}: a size cannot be negative")

    def __str__(self) -> str:
        if not self.is_url:
            return f"image '{self.source}'"
        # What stands before the @ of a URL, or in its query, may be a secret.
        scheme, _sep, rest = self.source.partition("://")
        host, slash, path = rest.partition("?")[0].partition("#")[0].partition("/")
        return f"image '{scheme}://{host.rpartition('@')[2]}{slash}{path}'"

    @property
    def is_url(self) -> bool:
        return self.source.startswith(("http://", "https://"))


@dataclasses.dataclass(frozen=True)
class Rules:
    """Rules for fetching images. `max_size` (bytes) bounds those of undeclared size, `timeout` (seconds) a download.
    With `pushed`, the controller brings even what URLs name: this host downloads nothing."""

    max_size: int = 64 << 30
    timeout: float = 3600.0
    pushed: bool = False
    report: Report = lambda _line: None

    def source_of(self, image: Image) -> Source:
        return Source(image.source, str(image), image.size or self.max_size, self.timeout)


class _Outcome(t.NamedTuple):
    status: str  # cached, fetched, absent
    transfer: Transfer | None = None


def ensure_images(
    images: t.Sequence[Image], state_dir: str, check_mode: bool = False, rules: Rules = Rules()
) -> JsonObject:
    """Bring every image of `images` into the cache of this host; only one process fetches and converts an image.

    Returns `changed`, `diff`, `images` (checksum, path, status: cached, fetched, absent; after a download also bytes,
    seconds, resumed_from) and `missing`: those that the controller has to push, each to its `staged` path. Files of the
    cache with former names get today's. Raises NovaliteError; a failed image leaves at most a part of its download.
    """
    unique = list({image.checksum: image for image in images}.values())
    renamed = layout.formerly_named(state_dir)
    if not check_mode:
        layout.prepare_state_dir(state_dir)
        remove_stale(layout.base_dir(state_dir), STAGING_MAX_AGE, STAGING_PREFIX)
    try:
        outcomes = in_threads(lambda image: _ensure(image, state_dir, check_mode, rules), unique, workers=4)
    finally:
        _remove_staged(unique, state_dir)
    missing = [
        image
        for image, outcome in zip(unique, outcomes)
        if outcome.status == "absent" and (rules.pushed or not image.is_url)
    ]
    changing = ("fetched", "absent") if check_mode else ("fetched",)
    changed = [image for image, outcome in zip(unique, outcomes) if outcome.status in changing]
    return {
        "changed": bool(changed or renamed),
        "images": [_entry(image, outcome, state_dir) for image, outcome in zip(unique, outcomes)],
        "missing": [
            {
                "checksum": image.checksum,
                "source": image.source,
                "size": image.size,
                "staged": None if check_mode else _make_staging(image, state_dir),
            }
            for image in missing
        ],
        "diff": {
            "before": {**{image.checksum: "absent" for image in changed}, **dict.fromkeys(renamed, "a file")},
            "after": {
                **{image.checksum: f"cached from {image}" for image in changed},
                **{key: f"a link to {key}{layout.RAW}" for key in renamed},
            },
        },
    }


def _entry(image: Image, outcome: _Outcome, state_dir: str) -> JsonObject:
    path, taken = layout.cache_path(state_dir, image.checksum), outcome.transfer
    entry: JsonObject = {"checksum": image.checksum, "path": path, "status": outcome.status}
    if taken:
        entry |= {"bytes": taken.size, "seconds": round(taken.seconds, 3), "resumed_from": taken.resumed_from}
    return entry


def _ensure(image: Image, state_dir: str, check_mode: bool, rules: Rules) -> _Outcome:
    key = layout.cache_key(image.checksum)
    path = layout.base_path(state_dir, key)
    if check_mode:
        return _Outcome("cached" if _is_cached(image, layout.cached_path(state_dir, key)) else "absent")
    # Held while it is looked up as well: an eviction would take away what is said to be there.
    with locked(layout.lock_name(key), timeout=rules.timeout + CONVERT_TIMEOUT):
        if _is_cached(image, path):
            os.utime(path)
            return _Outcome("cached")
        if not image.staged and (rules.pushed or not image.is_url):
            return _Outcome("absent")
        return _Outcome("fetched", _fetch(image, path, rules))


def _is_cached(image: Image, path: str) -> bool:
    if not os.path.lexists(path):
        return False
    if image.kind == "disk":
        # As Nova since CVE-2024-32498: a base is checked every time it is used, not only when it came.
        _check_virtual_size(image, inspect_image(path, "raw", name=f"{image} in the cache, {path}").virtual_size)
    return True


def _check_virtual_size(image: Image, virtual_size: int) -> None:
    if image.virtual_size and virtual_size != image.virtual_size:
        raise ImageRefusedError(
            f"{image} has a virtual size of {virtual_size} bytes but {image.virtual_size} was declared"
        )


def _fetch(image: Image, path: str, rules: Rules) -> Transfer | None:
    part, converted = f"{path}.part", f"{path}.converted"
    # What a killed run left; unlinked, not truncated: an orphaned qemu-img may still be writing to it.
    remove_file(converted)
    transfer = None
    try:
        if image.staged:
            remove_part(part)
            _take(image, image.staged, part, rules)
            _verify(image, part)
        else:
            transfer = fetch_verified(image, part, rules)
        done = part
        if image.kind == "disk":
            _convert(image, part, converted)
            done = converted
        sync(done, 0o444)
        os.rename(done, path)
        sync(os.path.dirname(path))
    except ImageRefusedError:
        remove_part(part)
        raise
    except OSError as error:
        remove_part(part)  # it may be what filled the disk
        directory = os.path.dirname(path)
        raise NovaliteError(f"{image} cannot be stored in {directory}: {error.strerror or error}") from error
    finally:
        remove_file(converted)
        if not os.path.exists(f"{part}.json"):  # else it is the beginning of a download
            remove_part(part)
    return transfer


def fetch_verified(image: Image, part: str, rules: Rules) -> Transfer:
    """Download `image` into the file `part`, from where the last run stopped. Raises NovaliteError, also for a wrong
    checksum, and OSError."""
    from .download import download  # an HTTP client costs more than a look at images that are there

    while True:
        transfer = download(rules.source_of(image), part, rules.report)
        try:
            _verify(image, part)
            return transfer
        except ImageRefusedError:
            remove_part(part)
            if not transfer.resumed_from:
                raise
            # The file on the server may have changed between the two halves: once more, in one piece.


def _take(image: Image, staged: str, part: str, rules: Rules) -> None:
    """Move a pushed file, or copy it when it lies in a directory that others than root may write to."""
    if os.path.dirname(staged) == os.path.dirname(part):
        os.rename(staged, part)
        return
    fd = os.open(staged, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as source, open(part, "xb") as target:
        left = limit = image.size or rules.max_size
        while chunk := source.read(CHUNK):
            left -= len(chunk)
            if left < 0:
                raise ImageRefusedError(f"{image} is larger than the {limit} bytes that were declared")
            target.write(chunk)


def _verify(image: Image, part: str) -> None:
    size = os.stat(part, follow_symlinks=False).st_size
    if image.size and size != image.size:
        raise ImageRefusedError(f"{image} has {size} bytes but {image.size} were declared")
    checksum = checksum_of(part)
    if checksum != image.checksum:
        raise ImageRefusedError(
            f"{image} is not what was registered: its checksum is {checksum} but {image.checksum} was declared"
        )


def checksum_of(path: str) -> str:
    """The "sha256:<hex>" of the file `path`."""
    with open(path, "rb", buffering=0) as handle:
        return f"sha256:{sha256_of(handle.fileno())}"


def _convert(image: Image, part: str, converted: str) -> None:
    disk_format = image.disk_format or ""
    limit = min(image.max_virtual_size or DEFAULT_LIMIT, DEFAULT_LIMIT)
    content: Content = "unpacked" if image.is_url else "any"  # what lies on the controller was looked at there
    virtual_size = inspect_image(part, disk_format, limit=limit, name=str(image), content=content).virtual_size
    _check_virtual_size(image, virtual_size)
    driver = DRIVERS.get(disk_format, disk_format)
    info = _ask_qemu(image, ["info", "--output=json", "-f", driver, part])
    # Our own reader has refused these already; QEMU's opinion is asked because QEMU will open the file.
    data_file = info.get("format-specific", {}).get("data", {}).get("data-file")
    if info.get("backing-filename") or info.get("full-backing-filename") or data_file:
        raise ImageRefusedError(
            f"{image} refers to another file; flatten it first (qemu-img convert -f {disk_format} -O qcow2)"
        )
    if info["virtual-size"] != virtual_size:
        raise ImageRefusedError(
            f"{image} has a virtual size of {info['virtual-size']} bytes for QEMU but {virtual_size} in its header"
        )
    _check_room(image, _unfolded(image, part, virtual_size), converted)
    # CVE-2013-4463: what comes out is bounded by the declared size. The default cache mode is fast, we fsync.
    try:
        make_private(converted)
        with events.growing(converted, events.size_on_disk(part)):
            run_confined(
                ["qemu-img", "convert", "-f", driver, "-O", "raw", part, converted],
                reads=[part],
                writes=[converted],
                limits=Limits(CONVERT_MEMORY, CONVERT_CPU, virtual_size),
                timeout=CONVERT_TIMEOUT,
            )
    except CommandError as error:
        # The file is on this host and has its checksum: what cannot be read in it cannot be read anywhere.
        if "error while reading" in error.stderr or -error.rc in (signal.SIGXCPU, signal.SIGXFSZ):
            raise _damaged(image, error) from error
        raise NovaliteError(f"{image} cannot be converted: {error}") from error
    _check_virtual_size(image, inspect_image(converted, "raw", limit=virtual_size, name=str(image)).virtual_size)


def _ask_qemu(image: Image, arguments: t.Sequence[str]) -> JsonObject:
    """Return what `qemu-img info` or `check` reports on a file, within narrow limits of time and memory."""
    try:
        # 3: clusters are leaked, which harms nobody
        answer = json.loads(run_confined(["qemu-img", *arguments], reads=arguments[-1:], ok=(0, 3)).stdout)
    except CommandError as error:
        if error.rc in (124, 127):  # a slow disk, no qemu-img: the host's fault
            raise
        raise _damaged(image, error) from error
    except ValueError as error:
        raise ImageRefusedError(f"{image}: qemu-img {arguments[0]} cannot describe it") from error
    return t.cast(JsonObject, answer)


def _damaged(image: Image, error: CommandError) -> ImageRefusedError:
    return ImageRefusedError(f"{image} is damaged, or made to do harm: {str(error)[:500]}")


def _unfolded(image: Image, part: str, virtual_size: int) -> int:
    """The most bytes that the raw file can take. An image of a few KB can hold its whole virtual size, compressed."""
    if image.disk_format != "qcow2":
        return min(os.stat(part).st_blocks * 512, virtual_size)
    report = _ask_qemu(image, ["check", "--output=json", "-f", "qcow2", part])
    if report.get("corruptions") or report.get("check-errors"):
        raise ImageRefusedError(f"{image} is damaged; repair it first (qemu-img check -f qcow2 -r all)")
    clusters, total = report.get("allocated-clusters", 0), report.get("total-clusters", 0)
    return int(virtual_size * clusters / total) if total else 0


def _check_room(image: Image, size: int, converted: str) -> None:
    directory = os.path.dirname(converted)
    free = shutil.disk_usage(directory).free
    if size > free:
        raise NovaliteError(
            f"{image} cannot be stored in {directory}: it takes up to {size} bytes there, {free} are free"
        )


def _make_staging(image: Image, state_dir: str) -> str:
    """An empty file that only root reads, of its own for every push: two at once would truncate each other."""
    prefix = f"{STAGING_PREFIX}{layout.cache_key(image.checksum)}-"
    fd, path = tempfile.mkstemp(prefix=prefix, dir=layout.base_dir(state_dir))
    os.close(fd)
    return path


def _remove_staged(images: t.Sequence[Image], state_dir: str) -> None:
    for image in images:
        # Only what _make_staging made: the path comes from the module's arguments.
        if (
            image.staged
            and os.path.dirname(image.staged) == layout.base_dir(state_dir)
            and os.path.basename(image.staged).startswith(STAGING_PREFIX)
        ):
            remove_file(image.staged)
