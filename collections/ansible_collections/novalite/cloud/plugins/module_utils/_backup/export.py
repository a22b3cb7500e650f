# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A disk that QEMU, or qemu-nbd, exports at a Unix socket: what changed in it, in requests of bounded size."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import typing as t

from .._errors import NovaliteError
from . import blocks
from .blocks import BLOCK, Block, Run, Span

try:
    import nbd
except ImportError as error:
    IMPORT_ERROR: str | None = str(error)
else:
    IMPORT_ERROR = None

_ALLOCATION = "base:allocation"
_ZERO, _DIRTY = 2, 1  # NBD_STATE_ZERO, and the flag in qemu:dirty-bitmap:*
_REQUEST = 16  # blocks
_AHEAD = 16  # requests that QEMU answers while what came before is stored


@dataclasses.dataclass
class Export:
    """An open export, and the number of bytes that were read of it."""

    handle: t.Any  # nbd.NBD, which has no types
    size: int
    bitmap: str | None
    read: int = 0

    def blocks(self) -> t.Iterator[Block]:
        """Read the blocks that are dirty in the bitmap, or, without one, those that hold data. Raises NovaliteError."""
        with _clear("it cannot be read"):
            asked: collections.deque[tuple[Run, t.Callable[[], memoryview] | None]] = collections.deque()
            for run in self._runs():
                asked.append((run, self._ask(run) if run.is_data else None))
                if len(asked) > _AHEAD:
                    yield from self._answered(*asked.popleft())
            while asked:
                yield from self._answered(*asked.popleft())

    def _runs(self) -> t.Iterator[Run]:
        """List what is to be read, or is zero, in runs of bounded length."""
        for start in range(0, self.size, blocks.WINDOW):
            length = min(blocks.WINDOW, self.size - start)
            for run in blocks.changed(start, length, *self._extents(start, length)):
                for first in range(run.first, run.first + run.length, _REQUEST):
                    yield Run(first, min(_REQUEST, run.first + run.length - first), run.is_data)

    def _extents(self, start: int, length: int) -> tuple[list[Span], list[Span] | None]:
        data: list[Span] = []
        dirty: list[Span] = []
        if self.bitmap is not None:
            self._look(self.bitmap, start, length, dirty, lambda flags: bool(flags & _DIRTY))
            if not any(span.flag for span in dirty):
                return data, dirty
        self._look(_ALLOCATION, start, length, data, lambda flags: not flags & _ZERO)
        return data, None if self.bitmap is None else dirty

    def _look(self, name: str, start: int, length: int, spans: list[Span], is_set: t.Callable[[int], bool]) -> None:
        """Add what the server says of the context `name`, in this window."""
        end = start + length
        offset = start
        while offset < end:
            seen = offset

            def tell(context: str, at: int, entries: t.Sequence[int], _error: object) -> int:
                nonlocal seen
                if context == name:
                    for size, flags in zip(entries[::2], entries[1::2]):
                        if at < end:
                            spans.append(Span(at, min(size, end - at), is_set(flags)))
                        at += size
                    seen = at
                return 0

            self.handle.block_status(end - offset, offset, tell)
            if seen <= offset:
                raise NovaliteError(f"QEMU says nothing of {name} at {offset}: back up again")
            offset = seen

    def _ask(self, run: Run) -> t.Callable[[], memoryview]:
        """Begin to read a run; returns what waits for its bytes."""
        offset = run.first * BLOCK
        buffer = nbd.Buffer(min(run.length * BLOCK, self.size - offset))
        cookie = self.handle.aio_pread(buffer, offset)

        def wait() -> memoryview:
            while not self.handle.aio_command_completed(cookie):
                self.handle.poll(-1)
            return memoryview(buffer.to_buffer())

        return wait

    def _answered(self, run: Run, wait: t.Callable[[], memoryview] | None) -> t.Iterator[Block]:
        if wait is None:
            yield from (Block(number, None) for number in range(run.first, run.first + run.length))
            return
        data = wait()
        self.read += len(data)
        for start in range(0, len(data), BLOCK):
            yield Block(run.first + start // BLOCK, bytes(data[start : start + BLOCK]))

    def write(self, rows: t.Iterable[Block], is_new: bool = True) -> None:
        """Write blocks; those of zeros are left as they are on a disk that `is_new`. Raises NovaliteError."""
        with _clear("it cannot be written"):
            for block in rows:
                if block.data is not None:
                    self.handle.pwrite(block.data, block.number * BLOCK)
                elif not is_new:
                    self.handle.zero(blocks.length_of(block.number, self.size), block.number * BLOCK)
            self.handle.flush()


@contextlib.contextmanager
def opened(socket: str, name: str, bitmap: str | None = None) -> t.Iterator[Export]:
    """Connect to the export `name` at `socket`, with this one of its bitmaps. Raises NovaliteError."""
    if IMPORT_ERROR is not None:
        raise NovaliteError(
            f"libnbd cannot be used by this interpreter ({IMPORT_ERROR}); install python3-libnbd on the host"
        )
    handle = nbd.NBD()
    try:
        with _clear(f"the export {name} cannot be opened"):
            handle.set_export_name(name)
            context = None if bitmap is None else f"qemu:dirty-bitmap:{bitmap}"
            for each in (_ALLOCATION, *([context] if context else ())):
                handle.add_meta_context(each)
            handle.connect_unix(socket)
            for each in (_ALLOCATION, *([context] if context else ())):
                if not handle.can_meta_context(each):
                    raise NovaliteError(f"QEMU does not tell {each} of {name}: install a newer one")
            export = Export(handle, handle.get_size(), context)
        yield export
    finally:
        with contextlib.suppress(nbd.Error):  # it never came to a connection, or lost it
            handle.shutdown()


@contextlib.contextmanager
def _clear(problem: str) -> t.Iterator[None]:
    try:
        yield
    except nbd.Error as error:
        raise NovaliteError(f"{problem}: {error.string}") from None
