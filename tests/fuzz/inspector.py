# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""`python -m tests.fuzz.inspector --inputs 1000000`: the image inspector against mutated headers.

Each input must be judged (accepted or refused) within a second, whatever it is; nothing may crash, take memory by what
a header says, or read more than a bounded part of the file. Prints one JSON line; a failure leaves its input in a file.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import struct
import sys
import time
import types
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._disk.inspect import (
    HEAD_BYTES,
    MAX_EXTENSIONS,
    inspect_image,
)
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from tests.unit._disk.hostile.headers import (
    BACKING_FORMAT,
    CLUSTER,
    DATA_FILE,
    ENCRYPTION,
    FEATURES,
    MAGICS,
    at,
    extension,
    qcow2,
)

HANG = 1.0  # seconds for one input
MEMORY = 256 << 20  # bytes of address space beyond what the interpreter has at the start
MOST_READ = HEAD_BYTES + 512 + 8 * MAX_EXTENSIONS  # bytes of one input
INTERESTING = (
    0,
    1,
    7,
    8,
    9,
    16,
    21,
    22,
    63,
    64,
    104,
    112,
    255,
    511,
    512,
    0x7FFF,
    0xFFFF,
    1 << 16,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
)
KINDS = (0, BACKING_FORMAT, DATA_FILE, ENCRYPTION, FEATURES, 0x23852875)
# where qcow2's header has its fields: (offset, size in bytes)
FIELDS = (
    (4, 4),
    (8, 8),
    (16, 4),
    (20, 4),
    (24, 8),
    (32, 4),
    (36, 4),
    (40, 8),
    (48, 8),
    (56, 4),
    (60, 4),
    (64, 8),
    (72, 8),
    (80, 8),
    (88, 8),
    (96, 4),
    (100, 4),
    (104, 1),
)


def seeds() -> list[bytes]:
    """Headers, without the zeros that fill up the file."""
    extensions = extension(BACKING_FORMAT, b"raw") + extension(FEATURES, b"f" * 384)
    made = [
        qcow2(),
        qcow2(version=2),
        qcow2(header_length=112, extensions=bytes(8) + extensions),
        qcow2(extensions=extensions),
        qcow2(extensions=extensions, backing=b"json:{}"),
        qcow2(size=1 << 44),
        qcow2(cluster_bits=21, l1_offset=2 << 21, refcount_offset=1 << 21, extensions=extensions),
        qcow2(cluster_bits=9, size=1 << 20, l1_entries=32, l1_offset=1536, refcount_offset=512),
        *(at(4096, (offset, magic)) for _name, offset, magic in MAGICS),
        bytes(4096),
    ]
    return [data[:4096] for data in made]


class Mutator:
    """Random, but the same inputs for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seeds = seeds()

    def next(self) -> tuple[bytes, int]:
        """The bytes at the start of a file, and how long that file is."""
        data = bytearray(self.random.choice(self.seeds))
        for _number in range(self.random.randrange(1, 6)):
            self.random.choice((self._field, self._field, self._bytes, self._flip, self._extension, self._splice))(data)
        if self.random.random() < 0.1:
            del data[self.random.randrange(len(data) + 1) :]
        length = self.random.choice((len(data), 4 * CLUSTER, 3 << 21, self.random.randrange(1 << 24), 1 << 44))
        return bytes(data), max(length, len(data))

    def _field(self, data: bytearray) -> None:
        offset, size = self.random.choice(FIELDS)
        value = self.random.choice((*INTERESTING, self.random.getrandbits(64), 1 << self.random.randrange(64)))
        data[offset : offset + size] = (value % (1 << 8 * size)).to_bytes(size, "big")

    def _bytes(self, data: bytearray) -> None:
        start = self.random.randrange(len(data) + 1)
        piece = self.random.randbytes(self.random.randrange(1, 33))
        data[start : start + len(piece)] = piece

    def _flip(self, data: bytearray) -> None:
        if data:
            data[self.random.randrange(len(data))] ^= 1 << self.random.randrange(8)

    def _extension(self, data: bytearray) -> None:
        start = self.random.choice((72, 104, 112, self.random.randrange(0, 512)))
        length = self.random.choice((0, 1, 8, 384, 65536, self.random.choice(INTERESTING) % (1 << 32)))
        piece = struct.pack(">II", self.random.choice(KINDS), length) * self.random.choice((1, 1, 2, 80))
        data[start : start + len(piece)] = piece

    def _splice(self, data: bytearray) -> None:
        other = self.random.choice(self.seeds)
        start = self.random.randrange(len(other))
        piece = other[start : start + self.random.randrange(1, 513)]
        data[start : start + len(piece)] = piece


def hung(_signal: int, _frame: types.FrameType | None) -> None:
    raise TimeoutError(f"no verdict within {HANG:g} s")


def bytes_read() -> int:
    with open("/proc/self/io", encoding="ascii") as handle:
        return int(handle.readline().split()[1])


def run(inputs: int, seed: int) -> dict[str, t.Any]:
    """Judge `inputs` inputs. Raises whatever the inspector raises besides its refusals."""
    mutator = Mutator(seed)
    fd = os.memfd_create("image")
    path = f"/proc/self/fd/{fd}"
    verdicts = {"accepted": 0, "refused": 0}
    with open("/proc/self/statm", encoding="ascii") as handle:
        size = int(handle.read().split()[0]) * os.sysconf("SC_PAGESIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    signal.signal(signal.SIGALRM, hung)
    slowest = 0.0
    started, read = time.perf_counter(), bytes_read()
    for number in range(inputs):
        data, length = mutator.next()
        declared = "raw" if number % 4 == 0 else "qcow2"
        os.ftruncate(fd, 0)
        os.pwrite(fd, data, 0)
        os.ftruncate(fd, length)
        signal.setitimer(signal.ITIMER_REAL, HANG)
        began = time.perf_counter()
        try:
            info = inspect_image(path, declared)
            assert info.disk_format == declared and info.size == length and 0 < info.virtual_size <= 16 << 40
            verdicts["accepted"] += 1
        except NovaliteError as error:
            assert str(error).startswith(f"image file '{path}'") and "\n" not in str(error) and len(str(error)) < 400
            verdicts["refused"] += 1
        except BaseException:
            with open(f"fuzz-{declared}-{seed}-{number}.img", "wb") as handle:
                handle.write(data)
                handle.truncate(length)
            raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        slowest = max(slowest, time.perf_counter() - began)
    seconds = time.perf_counter() - started
    most = (bytes_read() - read) / inputs
    assert most <= MOST_READ, f"{most:.0f} bytes read of each input, {MOST_READ} are the bound"
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "inputs": inputs,
        "seed": seed,
        **verdicts,
        "seconds": round(seconds, 1),
        "slowest_ms": round(slowest * 1e3, 1),
        "bytes_read_mean": round(most),
        "max_rss_mb": usage.ru_maxrss >> 10,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(json.dumps(run(arguments.inputs, arguments.seed)))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
