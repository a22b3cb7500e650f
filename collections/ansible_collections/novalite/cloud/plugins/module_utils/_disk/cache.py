# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""The image cache of a compute host: `_base/<sha256>` holds every image once, verified, disks as sparse raw files.

A base file is raw because a raw file has no header that could name another file, and a guest that writes one into
its own overlay gains nothing: `-F raw` is right for ever (Nova: force_raw_images).
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import http.client
import json
import os
import tempfile
import time
import typing as t
import urllib.error
import urllib.parse
import urllib.request

from .._command import run
from .._errors import ImageRefusedError, NovaliteError
from .._host import in_threads, locked
from . import layout
from .inspect import DEFAULT_LIMIT, inspect_image

KINDS = ("disk", "kernel", "ramdisk")
CHUNK = 1 << 20
CONNECT_TIMEOUT = 30.0  # seconds without a byte
CONVERT_TIMEOUT = 1800.0  # seconds; also how long another run waits for the one that converts
STAGING_PREFIX = ".incoming-"
STAGING_MAX_AGE = 3600.0  # seconds without a write: nobody pushes to it any more

# CVE-2015-5162: a crafted image makes qemu-img eat memory and CPU. Nova's limits for `info` (1 GiB, 30 s);
# a conversion reads everything, so only its time differs.
INFO_LIMITS = ("prlimit", "--as=1073741824", "--cpu=30", "--")
CONVERT_CPU = 900  # seconds


@dataclasses.dataclass(frozen=True)
class Image:
    """One image that must be in the cache. Sizes in bytes; `staged` is where a pushed file lies on this host."""

    checksum: str
    source: str
    size: int
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

    def __str__(self) -> str:
        parts = urllib.parse.urlsplit(self.source)
        # What stands before the @ of a URL, or in its query, may be a secret.
        shown = self.source if not self.is_url else f"{parts.scheme}://{parts.hostname}{parts.path}"
        return f"image '{shown}'"

    @property
    def is_url(self) -> bool:
        return self.source.startswith(("http://", "https://"))


def ensure_images(images: t.Sequence[Image], state_dir: str, check_mode: bool = False) -> dict[str, t.Any]:
    """Bring every image of `images` into the cache of this host.

    Returns `changed`, `diff`, `images` (checksum, path, status: cached, fetched, absent) and `missing`: those
    whose source is a path, thus on the controller, each with the `staged` path to push it to. Only one process of
    a host fetches and converts an image; the others wait for it. Raises NovaliteError; a failed image leaves nothing.
    """
    unique = list({image.checksum: image for image in images}.values())
    if not check_mode:
        layout.prepare_state_dir(state_dir)
        _remove_stale_staging(state_dir)
    try:
        statuses = in_threads(lambda image: _ensure(image, state_dir, check_mode), unique, workers=4)
    finally:
        _remove_staged(unique, state_dir)
    missing = [image for image, status in zip(unique, statuses) if status == "absent" and not image.is_url]
    changing = ("fetched", "absent") if check_mode else ("fetched",)
    changed = [image for image, status in zip(unique, statuses) if status in changing]
    return {
        "changed": bool(changed),
        "images": [{"checksum": image.checksum, "path": layout.cache_path(state_dir, image.checksum), "status": status}
                   for image, status in zip(unique, statuses)],
        "missing": [{"checksum": image.checksum, "source": image.source, "size": image.size,
                     "staged": None if check_mode else _make_staging(image, state_dir)} for image in missing],
        "diff": {"before": {image.checksum: "absent" for image in changed},
                 "after": {image.checksum: f"cached from {image}" for image in changed}},
    }


def _ensure(image: Image, state_dir: str, check_mode: bool) -> str:
    path = layout.cache_path(state_dir, image.checksum)
    if _is_cached(image, path):
        return "cached"
    if check_mode or not (image.is_url or image.staged):
        return "absent"
    with locked(f"image-{layout.cache_key(image.checksum)}", timeout=CONVERT_TIMEOUT):
        if _is_cached(image, path):
            return "cached"
        _fetch(image, path)
    return "fetched"


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


def _fetch(image: Image, path: str) -> None:
    part, converted = f"{path}.part", f"{path}.converted"
    # What a killed run left; unlinked, not truncated: an orphaned qemu-img may still be writing to it.
    _unlink(part, converted)
    try:
        if image.staged:
            _take(image, image.staged, part)
        else:
            _download(image, part)
        _verify(image, part)
        done = part
        if image.kind == "disk":
            _convert(image, part, converted)
            done = converted
        with open(done, "rb") as handle:
            os.fchmod(handle.fileno(), 0o444)
            os.fsync(handle.fileno())
        os.rename(done, path)
        _fsync_directory(os.path.dirname(path))
    except OSError as error:
        directory = os.path.dirname(path)
        raise NovaliteError(f"{image} cannot be stored in {directory}: {error.strerror or error}") from error
    finally:
        _unlink(part, converted)


def _take(image: Image, staged: str, part: str) -> None:
    """Move a pushed file, or copy it when it lies in a directory that others than root may write to."""
    if os.path.dirname(staged) == os.path.dirname(part):
        os.rename(staged, part)
        return
    fd = os.open(staged, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as source, open(part, "xb") as target:
        _receive(image, source, target)


def _download(image: Image, part: str) -> None:
    try:
        # The scheme is http or https (is_url), and redirects are followed to nothing but those and ftp.
        opener = urllib.request.build_opener()
        with opener.open(image.source, timeout=CONNECT_TIMEOUT) as response, open(part, "xb") as target:
            _receive(image, response, target)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise NovaliteError(f"{image} cannot be downloaded: {error}") from error


def _receive(image: Image, source: t.Any, target: t.BinaryIO) -> None:
    """Copy, and stop once more than the declared size has come: a source may never end."""
    left = image.size
    for chunk in iter(lambda: source.read(CHUNK), b""):
        left -= len(chunk)
        if left < 0:
            raise ImageRefusedError(f"{image} is larger than the {image.size} bytes that were declared")
        target.write(chunk)


def _verify(image: Image, part: str) -> None:
    size = os.stat(part, follow_symlinks=False).st_size
    if size != image.size:
        raise ImageRefusedError(f"{image} has {size} bytes but {image.size} were declared")
    digest = hashlib.sha256()
    with open(part, "rb") as handle:
        for chunk in iter(lambda: handle.read(CHUNK), b""):
            digest.update(chunk)
    found = f"sha256:{digest.hexdigest()}"
    if found != image.checksum:
        raise ImageRefusedError(
            f"{image} is not what was registered: its checksum is {found} but {image.checksum} was declared"
        )


def _convert(image: Image, part: str, converted: str) -> None:
    disk_format = image.disk_format or ""
    limit = min(image.max_virtual_size or DEFAULT_LIMIT, DEFAULT_LIMIT)
    virtual_size = inspect_image(part, disk_format, limit=limit, name=str(image)).virtual_size
    _check_virtual_size(image, virtual_size)
    info = json.loads(run([*INFO_LIMITS, "qemu-img", "info", "--output=json", "-f", disk_format, part]).stdout)
    # Our own reader has refused these already; QEMU's opinion is asked because QEMU will open the file.
    data_file = info.get("format-specific", {}).get("data", {}).get("data-file")
    if info.get("backing-filename") or info.get("full-backing-filename") or data_file:
        raise ImageRefusedError(f"{image} refers to another file; flatten it first (qemu-img convert)")
    if info["virtual-size"] != virtual_size:
        raise ImageRefusedError(
            f"{image} has a virtual size of {info['virtual-size']} bytes for QEMU but {virtual_size} in its header"
        )
    # CVE-2013-4463: what comes out is bounded by the declared size. The default cache mode is fast, we fsync.
    run(["prlimit", "--as=2147483648", f"--cpu={CONVERT_CPU}", f"--fsize={virtual_size}", "--",
         "qemu-img", "convert", "-f", disk_format, "-O", "raw", part, converted], timeout=CONVERT_TIMEOUT)
    _check_virtual_size(image, inspect_image(converted, "raw", limit=virtual_size, name=str(image)).virtual_size)


def _make_staging(image: Image, state_dir: str) -> str:
    """An empty file that only root reads, of its own for every push: two at once would truncate each other."""
    prefix = f"{STAGING_PREFIX}{layout.cache_key(image.checksum)}-"
    fd, path = tempfile.mkstemp(prefix=prefix, dir=layout.base_dir(state_dir))
    os.close(fd)
    return path


def _remove_staged(images: t.Sequence[Image], state_dir: str) -> None:
    for image in images:
        # Only what _make_staging made: the path comes from the module's arguments.
        if image.staged and os.path.dirname(image.staged) == layout.base_dir(state_dir) \
                and os.path.basename(image.staged).startswith(STAGING_PREFIX):
            _unlink(image.staged)


def _remove_stale_staging(state_dir: str) -> None:
    """Pushes that were cut off with their controller."""
    with os.scandir(layout.base_dir(state_dir)) as entries:
        for entry in entries:
            if entry.name.startswith(STAGING_PREFIX):
                with contextlib.suppress(FileNotFoundError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > STAGING_MAX_AGE:
                        os.unlink(entry.path)


def _unlink(*paths: str) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _fsync_directory(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
