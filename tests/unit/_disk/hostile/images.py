# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disk images that somebody might register to harm a host: each must be refused, and say why in one line."""

from __future__ import annotations

import dataclasses
import pathlib
import struct
import subprocess
import typing as t

from tests.unit._disk.hostile.headers import (
    CLUSTER,
    DATA_FILE,
    ENCRYPTION,
    FEATURES,
    MAGICS,
    MIB,
    at,
    extension,
    qcow2,
    qcow2_bomb,
)

GIB = 1 << 30
COPIED = 1 << 63
COMPRESSED = 1 << 62
SECRET = b"/etc/shadow"


@dataclasses.dataclass(frozen=True)
class HostileImage:
    """`make` gives the file's bytes, or writes the file itself; `refusal` is what the message must match."""

    name: str
    declared: str
    make: bytes | t.Callable[[pathlib.Path], None]
    refusal: str
    options: tuple[tuple[str, int], ...] = ()  # further declarations

    def write(self, path: pathlib.Path) -> None:
        if isinstance(self.make, bytes):
            path.write_bytes(self.make)
        else:
            self.make(path)


def _qemu_img(*words: str) -> t.Callable[[pathlib.Path], None]:
    def make(path: pathlib.Path) -> None:
        subprocess.run(["qemu-img", *(word.replace("@", str(path)) for word in words)], check=True, capture_output=True)

    return make


def _compressed_bomb(path: pathlib.Path) -> None:
    """1 GiB of the same byte, in less than 2 MiB."""
    raw = path.with_suffix(".raw")
    with open(raw, "wb") as handle:
        for _number in range(64):
            handle.write(b"x" * MIB)
        handle.truncate(GIB)
    subprocess.run(["qemu-img", "convert", "-c", "-f", "raw", "-O", "qcow2", raw, path], check=True)
    raw.unlink()


def _with_l2(entry: int, l1: int = COPIED | 4 * CLUSTER, length: int = 6 * CLUSTER) -> bytes:
    """A qcow2 file whose first L2 table says that the first cluster is at `entry`."""
    pieces = (
        (0, qcow2()),
        (3 * CLUSTER, struct.pack(">Q", l1)),
        (4 * CLUSTER, struct.pack(">Q", entry)),
        (2 * CLUSTER, struct.pack(">6H", 1, 1, 1, 1, 1, 1)),
    )
    return at(length, *pieces)


CONTROL = b"\x1b[2J\r\nroot::0:0\x07\x00"
FLAT_VMDK = (
    b'# Disk DescriptorFile\nversion=1\nCID=fffffffe\nparentCID=ffffffff\ncreateType="monolithicFlat"\n'
    b'RW 16 FLAT "' + SECRET + b'" 0\nddb.virtualHWVersion = "4"\n'
)

IMAGES: tuple[HostileImage, ...] = (
    # what makes QEMU open another file
    HostileImage("backing file", "qcow2", qcow2(backing=SECRET), "names a backing file"),
    HostileImage("backing file that climbs", "qcow2", qcow2(backing=b"../../../../etc/shadow"), "names a backing"),
    HostileImage("backing json", "qcow2", qcow2(backing=b'json:{"driver":"file","filename":"/etc/shadow"}'), "backing"),
    HostileImage("backing nbd", "qcow2", qcow2(backing=b"nbd+unix:///?socket=/run/x"), "names a backing file"),
    HostileImage("backing http", "qcow2", qcow2(backing=b"http://169.254.169.254/"), "names a backing file"),
    HostileImage("backing with control characters", "qcow2", qcow2(backing=CONTROL), "names a backing file"),
    HostileImage("backing offset alone", "qcow2", qcow2(backing_offset=4096), "names a backing file"),
    HostileImage("backing size alone", "qcow2", qcow2(backing_size=7), "names a backing file"),
    HostileImage(
        "backing of qemu-img",
        "qcow2",
        _qemu_img("create", "-f", "qcow2", "-b", "/etc/passwd", "-F", "raw", "@", "8M"),
        "names a backing",
    ),
    HostileImage(
        "data file of qemu-img",
        "qcow2",
        _qemu_img("create", "-f", "qcow2", "-o", "data_file=@.data,data_file_raw=on", "@", "8M"),
        "external",
    ),
    HostileImage("data file", "qcow2", qcow2(incompatible=4, extensions=extension(DATA_FILE, SECRET)), "external"),
    HostileImage(
        "data file json", "qcow2", qcow2(incompatible=4, extensions=extension(DATA_FILE, b"json:{}")), "external"
    ),
    HostileImage("data file without its bit", "qcow2", qcow2(extensions=extension(DATA_FILE, SECRET)), "external"),
    HostileImage(
        "data file in version 2", "qcow2", qcow2(version=2, extensions=extension(DATA_FILE, SECRET)), "external"
    ),
    HostileImage(
        "data file behind another extension",
        "qcow2",
        qcow2(extensions=extension(FEATURES, b"f" * 3000) + extension(DATA_FILE, SECRET)),
        "external",
    ),
    # what is not what it is said to be
    HostileImage("qcow2 declared raw", "raw", qcow2(), "declared raw but its content is qcow2"),
    HostileImage("raw declared qcow2", "qcow2", bytes(MIB), "declared qcow2 but its content is raw"),
    HostileImage("qcow2 with a backing file declared raw", "raw", qcow2(backing=SECRET), "but its content is qcow2"),
    HostileImage("vmdk descriptor with a host path declared raw", "raw", FLAT_VMDK.ljust(MIB, b"\n"), "is vmdk"),
    HostileImage("vmdk descriptor with a host path declared qcow2", "qcow2", FLAT_VMDK, "is vmdk"),
    *(
        HostileImage(
            f"{name} at {offset} ({number}) declared raw", "raw", at(MIB, (offset, magic)), f"content is {name}"
        )
        for number, (name, offset, magic) in enumerate(MAGICS)
    ),
    *(
        HostileImage(
            f"{name} of qemu-img declared {declared}",
            declared,
            _qemu_img("create", "-f", name, "@", "8M"),
            f"content is {name}",
        )
        for name in ("vmdk", "vdi", "vhdx", "vpc", "qed", "parallels")
        for declared in ("raw", "qcow2")
    ),
    # what does not stop growing
    HostileImage("1 PiB", "qcow2", at(20 * MIB, (0, qcow2(1 << 50))), "virtual size of 1125899906842624 bytes"),
    HostileImage("2^63 bytes", "qcow2", qcow2(1 << 63, l1_entries=1 << 20), "impossible virtual size"),
    HostileImage(
        "compressed bomb beyond the flavor",
        "qcow2",
        _compressed_bomb,
        "at most 536870912 are accepted",
        (("max_virtual_size", 512 * MIB),),
    ),
    HostileImage(
        "one cluster a million times",
        "qcow2",
        qcow2_bomb(64 * GIB),
        "at most|takes up to|damaged",
        (("max_virtual_size", 20 * GIB),),
    ),
    HostileImage(
        "another virtual size than was registered",
        "qcow2",
        qcow2(),
        "but 1048576 was declared",
        (("virtual_size", MIB),),
    ),
    # what is broken, so that a reader of it may break
    HostileImage("nothing", "raw", b"", "is empty|empty disk"),
    HostileImage("half a header", "qcow2", qcow2()[:50], "cut off inside the header"),
    HostileImage("half a header of version 3", "qcow2", qcow2()[:90], "cut off inside the header"),
    HostileImage("header alone", "qcow2", qcow2()[:CLUSTER], "outside its"),
    HostileImage("clusters of a byte", "qcow2", qcow2(cluster_bits=0), "cluster size"),
    HostileImage("clusters of 4 GiB", "qcow2", qcow2(cluster_bits=32), "cluster size"),
    HostileImage("no L1 table", "qcow2", qcow2(l1_entries=0), "L1 table"),
    HostileImage("L1 table of 32 GiB", "qcow2", qcow2(l1_entries=(1 << 32) - 1), "L1 table"),
    HostileImage("L1 table outside", "qcow2", qcow2(l1_offset=1 << 62), "L1 table"),
    HostileImage("L1 table on the header", "qcow2", qcow2(l1_offset=0), "L1 table"),
    HostileImage("reference counts outside", "qcow2", qcow2(refcount_offset=1 << 62), "reference count table"),
    HostileImage("reference counts without end", "qcow2", qcow2(refcount_clusters=(1 << 32) - 1), "reference count"),
    HostileImage("reference counts of 2^255 bits", "qcow2", qcow2(refcount_order=255), "reference count width"),
    HostileImage("65537 snapshots", "qcow2", qcow2(snapshots=65537, snapshots_offset=3 * CLUSTER), "snapshots"),
    HostileImage("snapshots outside", "qcow2", qcow2(snapshots=1, snapshots_offset=1 << 40), "table of snapshots"),
    HostileImage(
        "snapshots that are none",
        "qcow2",
        at(5 * CLUSTER, (0, qcow2(snapshots=9, snapshots_offset=4 * CLUSTER)), (4 * CLUSTER, b"\xff" * 4096)),
        "damaged, or made to do harm",
    ),
    HostileImage("header length of 4 GiB", "qcow2", qcow2(header_length=(1 << 32) - 8), "header length"),
    HostileImage(
        "extension that does not end",
        "qcow2",
        qcow2(extensions=struct.pack(">II", FEATURES, (1 << 32) - 1)),
        "header extension",
    ),
    HostileImage("a thousand extensions", "qcow2", qcow2(extensions=extension(FEATURES, b"") * 1000), "more than 64"),
    HostileImage("LUKS in qcow2", "qcow2", qcow2(crypt=2, extensions=extension(ENCRYPTION, bytes(16))), "is encrypted"),
    HostileImage("AES in qcow2", "qcow2", qcow2(crypt=1), "is encrypted"),
    HostileImage("encryption header alone", "qcow2", qcow2(extensions=extension(ENCRYPTION, bytes(16))), "encrypted"),
    HostileImage("marked as corrupt", "qcow2", qcow2(incompatible=2), "marked as corrupt"),
    HostileImage(
        "unknown feature with a name of control characters",
        "qcow2",
        qcow2(incompatible=1 << 40, extensions=extension(FEATURES, b"\0\x28" + CONTROL.ljust(46, b"\0"))),
        "unknown features",
    ),
    HostileImage(
        "compression type that is none",
        "qcow2",
        qcow2(header_length=112, incompatible=8, extensions=b"\xff" + bytes(7)),
        "compression type",
    ),
    HostileImage(
        "subclusters of 16 bytes",
        "qcow2",
        qcow2(cluster_bits=9, incompatible=16, size=MIB, l1_entries=64, l1_offset=1024, refcount_offset=512),
        "subclusters",
    ),
    HostileImage("cluster outside the file", "qcow2", _with_l2(COPIED | 1 << 50), "damaged"),
    HostileImage("cluster between clusters", "qcow2", _with_l2(COPIED | 5 * CLUSTER + 512), "damaged"),
    HostileImage("cluster on the header", "qcow2", _with_l2(COPIED | 1 << 63 | 0x1000), "damaged"),
    HostileImage("cluster on the L1 table", "qcow2", _with_l2(COPIED | 3 * CLUSTER), "damaged"),
    HostileImage("L2 table outside the file", "qcow2", _with_l2(0, l1=COPIED | 1 << 50), "damaged"),
    HostileImage("L2 table that is the L1 table", "qcow2", _with_l2(0, l1=COPIED | 3 * CLUSTER), "damaged"),
    HostileImage("compressed cluster outside the file", "qcow2", _with_l2(COMPRESSED | 1 << 50), "damaged"),
    HostileImage("compressed cluster of garbage", "qcow2", _with_l2(COMPRESSED | 5 * CLUSTER), "damaged, or made"),
)
