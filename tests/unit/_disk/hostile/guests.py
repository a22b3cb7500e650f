# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Root file systems that somebody might make to harm the host that writes a key into them."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
import socket
import stat
import struct
import subprocess
import typing as t

MIB = 1 << 20
SIZE = 4 * MIB  # with a journal, and room for a file that is too large
BLOCK = 1024  # bytes, of the file systems made here
VICTIM = "/victim"  # a directory on the host that every escape aims at
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKeyOfTheOwner me@example.org"
INJECTED = ""  # an expectation: all went well

Make = t.Callable[[pathlib.Path], None]


@dataclasses.dataclass(frozen=True)
class HostileGuest:
    """`tree` changes the directory that the file system is made from, `spoil` the file system's bytes afterwards.

    `expected` is what the refusal must match, INJECTED when the key must have gone into the guest (as far as it can be
    seen from outside), or None when either is right. `options` are for mke2fs, `files` are injected, too.
    """

    name: str
    expected: str | None
    tree: Make = lambda _tree: None
    spoil: Make = lambda _image: None
    options: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    user: str = "root"

    def build(self, directory: pathlib.Path) -> pathlib.Path:
        """Make the file system in `directory`; returns its path."""
        root = directory / "tree"
        for name in ("etc", "root/.ssh", "var", f"{VICTIM[1:]}/.ssh"):  # a link to the victim leads somewhere here, too
            (root / name).mkdir(parents=True)
        (root / "root").chmod(0o700)
        (root / "etc/passwd").write_text("root:*:0:0:root:/root:/bin/sh\nme:x:1000:1000::/home/me:/bin/sh\n")
        (root / "etc/hostname").write_text("image\n")
        self.tree(root)
        image = directory / "image.raw"
        with open(image, "wb") as handle:
            handle.truncate(SIZE)
        options = ["mke2fs", "-q", "-F", "-t", "ext4", "-b", str(BLOCK), *self.options, "-d", str(root), str(image)]
        subprocess.run(options, check=True, capture_output=True)
        self.spoil(image)
        return image


def _replaced(path: str, make: Make) -> Make:
    """`make` gets the path of something that is not there any more."""

    def change(tree: pathlib.Path) -> None:
        target = tree / path
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
        make(target)

    return change


def _link(path: str, to: str) -> Make:
    return _replaced(path, lambda target: os.symlink(to, target))


def _all(*changes: Make) -> Make:
    def change(tree: pathlib.Path) -> None:
        for make in changes:
            make(tree)

    return change


def _node(kind: int, major: int = 0, minor: int = 0) -> Make:
    return lambda target: os.mknod(target, kind | 0o600, os.makedev(major, minor))


def _socket(target: pathlib.Path) -> None:
    # the name of a socket must be short
    here = os.open(target.parent, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{here}/{target.name}")
    os.close(here)


def _hard_link(to: str) -> Make:
    def change(tree: pathlib.Path) -> None:
        (tree / to).write_text("shadow\n")
        os.link(tree / to, tree / "root/.ssh/authorized_keys")

    return change


def _file(path: str, content: bytes, mode: int = 0o644) -> Make:
    def change(tree: pathlib.Path) -> None:
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(content)
        (tree / path).chmod(mode)

    return change


def _text(path: pathlib.Path) -> None:
    path.write_text("x")


def _mode(path: str, mode: int) -> Make:
    return lambda tree: (tree / path).chmod(mode)


def _chain(tree: pathlib.Path) -> None:
    """60 links to links; Linux follows 40."""
    for number in range(60):
        os.symlink(f"/var/l{number + 1}", tree / f"var/l{number}")
    os.symlink(VICTIM, tree / "var/l60")
    _link("root/.ssh", "/var/l0")(tree)


def _names(tree: pathlib.Path) -> None:
    for name in (b"\x1b[2J", b"a\nb", b"\xff\xfe", b"$(touch " + VICTIM.encode().replace(b"/", b"_") + b")", b"-rf"):
        os.mkdir(os.path.join(os.fsencode(tree), name))
        os.mkdir(os.path.join(os.fsencode(tree / "root/.ssh"), name))


def _spoilt(name: str, expected: str | None, *fields: tuple[int, str, int]) -> HostileGuest:
    """With `fields` in its superblock, and no checksums, without which the kernel looks at them."""
    return HostileGuest(name, expected, spoil=_superblock(*fields), options=("-O", "^metadata_csum"))


def _superblock(*fields: tuple[int, str, int]) -> Make:
    """Write (offset in the superblock, struct format, value)."""

    def change(image: pathlib.Path) -> None:
        with open(image, "r+b") as handle:
            for offset, form, value in fields:
                handle.seek(1024 + offset)
                handle.write(struct.pack(f"<{form}", value))

    return change


def _bytes(offset: int, data: bytes) -> Make:
    def change(image: pathlib.Path) -> None:
        with open(image, "r+b") as handle:
            handle.seek(offset)
            handle.write(data)

    return change


def _debugfs(*commands: str) -> Make:
    def change(image: pathlib.Path) -> None:
        script = "".join(f"{command}\n" for command in commands)
        command = ["debugfs", "-w", "-f", "-", str(image)]
        subprocess.run(command, input=script, text=True, check=True, capture_output=True)

    return change


def _inode_tables(image: pathlib.Path) -> None:
    """Every inode from the first of the users' on is garbage."""
    dumped = subprocess.run(["dumpe2fs", str(image)], check=True, capture_output=True, text=True).stdout
    (first,) = [line.split()[3].split("-")[0] for line in dumped.splitlines() if "Inode table at" in line][:1]
    _bytes(int(first) * BLOCK + 256 * 10, b"\xa5" * 4096)(image)


def _no_inodes(image: pathlib.Path) -> None:
    _debugfs(*(f"write /dev/null var/{number}" for number in range(64)))(image)


def _no_blocks(image: pathlib.Path) -> None:
    filler = image.with_suffix(".filler")
    filler.write_bytes(b"x" * SIZE)
    _debugfs(f"write {filler} var/filler")(image)
    filler.unlink()


def _partition_outside(image: pathlib.Path) -> None:
    entry = struct.pack("<B3sB3sII", 0, b"", 0x83, b"", 2048, 0xFFFFFF)
    _bytes(446, entry.ljust(64, b"\0") + b"\x55\xaa")(image)


ESCAPES = (VICTIM, f"../../../../../../../..{VICTIM}", f"/proc/self/root{VICTIM}", "/proc/1/cwd", "/", "..", "/dev")
KEYS = "root/.ssh/authorized_keys"
NO_JOURNAL = ("-O", "^has_journal")
NO_EXTENTS = ("-O", "^has_journal,^extent,^64bit")

GUESTS: tuple[HostileGuest, ...] = (
    HostileGuest("as it should be", INJECTED),
    # a link at every component of every path that is written
    *(
        HostileGuest(f"{path} -> {to}", None, _link(path, to))
        for path in ("root", "root/.ssh", "etc")
        for to in ESCAPES
    ),
    *(HostileGuest(f"{KEYS} -> {to}", "symbolic link|directory", _link(KEYS, f"{to}/file")) for to in ESCAPES),
    *(
        HostileGuest(f"{path} -> nothing", "no /etc|leads nowhere", _link(path, "/nothing"))
        for path in ("root", "root/.ssh", "etc")
    ),
    HostileGuest("hostname is a link", "symbolic link", _link("etc/hostname", f"{VICTIM}/file")),
    HostileGuest("hostname is a link that climbs", "symbolic link", _link("etc/hostname", f"../../..{VICTIM}/file")),
    HostileGuest("passwd is a link", INJECTED, _link("etc/passwd", f"../..{VICTIM}/passwd")),
    HostileGuest(
        "passwd is a link to the host's, for a user of the host",
        "has no user",
        _link("etc/passwd", "/proc/self/root/etc/passwd"),
        user="daemon",
    ),
    HostileGuest(
        "rc.local is a link",
        "symbolic link",
        _all(lambda tree: (tree / "etc/selinux").mkdir(), _link("etc/rc.local", f"{VICTIM}/file")),
    ),
    HostileGuest("a chain of links", "symbolic link", _chain),
    HostileGuest("a link to itself", "symbolic link", _link("root", "/root")),
    HostileGuest("two links to each other", "symbolic link", _all(_link("root", "/roof"), _link("roof", "/root"))),
    HostileGuest("a link to a name of 900 bytes", None, _link("root", "/" + "x/" * 450)),
    HostileGuest("a hard link to shadow", "2 hard links", _hard_link("etc/shadow")),
    # what is no file
    *(
        HostileGuest(f"authorized_keys is a {name}", "not a regular file|device|directory", _replaced(KEYS, make))
        for name, make in (
            ("fifo", _node(stat.S_IFIFO)),
            ("kernel log", _node(stat.S_IFCHR, 1, 11)),
            ("memory device", _node(stat.S_IFCHR, 1, 1)),
            ("disk", _node(stat.S_IFBLK, 8, 0)),
            ("loop control", _node(stat.S_IFCHR, 10, 237)),
            ("socket", _socket),
            ("directory", lambda path: path.mkdir()),
        )
    ),
    *(
        HostileGuest(f"hostname is a {name}", "not a regular file|device|directory", _replaced("etc/hostname", make))
        for name, make in (("fifo", _node(stat.S_IFIFO)), ("tty", _node(stat.S_IFCHR, 5, 0)))
    ),
    HostileGuest("passwd is a fifo", "not a regular file", _replaced("etc/passwd", _node(stat.S_IFIFO))),
    HostileGuest("home is a device", "not a directory", _replaced("root", _node(stat.S_IFBLK, 8, 0))),
    HostileGuest("ssh directory is a file", "not a directory", _replaced("root/.ssh", _text)),
    # modes and owners
    HostileGuest(
        "setuid everywhere",
        INJECTED,
        _all(_file(KEYS, b"", 0o6777), _mode("root/.ssh", 0o7777), _file("etc/x", b"#!/bin/sh\n", 0o6755)),
    ),
    HostileGuest("nobody may read", INJECTED, _all(_file(KEYS, b"", 0), _mode("root/.ssh", 0), _mode("root", 0))),
    # what is in files
    HostileGuest("authorized_keys of 2 MiB", "larger than", _file(KEYS, b"x" * 2 * MIB)),
    HostileGuest("authorized_keys of zeros", INJECTED, _file(KEYS, bytes(4096))),
    HostileGuest("passwd of 2 MiB", "larger than", _file("etc/passwd", b"x" * 2 * MIB)),
    HostileGuest("home that climbs", "not an absolute path", _file("etc/passwd", b"root:x:0:0::/../../victim:/sh\n")),
    HostileGuest("home that is relative", "not an absolute path", _file("etc/passwd", b"root:x:0:0::victim:/bin/sh\n")),
    HostileGuest("home of control characters", None, _file("etc/passwd", b"root:x:0:0::/\x1b[2J\x07:/bin/sh\n")),
    HostileGuest("home with a zero byte", "not an absolute path", _file("etc/passwd", b"root:x:0:0::/a\0b:/bin/sh\n")),
    HostileGuest(
        "ids beyond all ids",
        "impossible ids",
        _file("etc/passwd", b"me:x:99999999999999999999:0::/home/me:/bin/sh\n"),
        user="me",
    ),
    HostileGuest(
        "ids that mean nobody",
        "impossible ids",
        _file("etc/passwd", b"me:x:4294967295:4294967295::/home/me:/bin/sh\n"),
        user="me",
    ),
    HostileGuest("names of control characters", INJECTED, _names),
    # paths that are asked for
    *(
        HostileGuest(f"file {path!r}", "not an absolute path", files=(path,))
        for path in (f"/../../..{VICTIM}/x", f"/etc/../../..{VICTIM}/x", "etc/x", "/", "", "/etc/a\0b")
    ),
    HostileGuest("file under a link", None, _link("etc/cron.d", VICTIM), files=("/etc/cron.d/x",)),
    HostileGuest("file under a file", "not a directory", files=("/etc/passwd/x",)),
    # the file system itself
    HostileGuest("label of control characters", INJECTED, options=("-L", "\x1b[2J\n$(id)")),
    HostileGuest("last mounted on the victim", INJECTED, options=("-M", VICTIM)),
    HostileGuest("no journal, 128 byte inodes", INJECTED, options=(*NO_JOURNAL, "-I", "128")),
    _spoilt("panic on errors", INJECTED, (0x3C, "H", 3)),
    _spoilt("panic on errors, in error", None, (0x3C, "H", 3), (0x3A, "H", 2)),
    _spoilt(
        "journal on another device",
        "journal on another device",
        (0x60, "I", 0x2C2 | 8),
        (0xE0, "I", 0),
        (0xE4, "I", 0x700),
    ),
    HostileGuest("wrong checksum of the superblock", "damaged", spoil=_superblock((0x64, "I", 0x80000000))),
    HostileGuest(
        "a volume of 64 KiB that says it has megabytes",
        "damaged|refused",
        spoil=lambda image: os.truncate(image, 64 << 10),
    ),
    _spoilt("journal in an inode that is none", "damaged|refused", (0xE0, "I", 0xFFFFFF)),
    _spoilt("journal in the root directory", "damaged|refused", (0xE0, "I", 2)),
    _spoilt("features that nobody knows", "damaged|refused", (0x60, "I", 0x80000000 | 0x2C2)),
    _spoilt("writing needs features that nobody knows", None, (0x64, "I", 0x80000000)),
    _spoilt("2^32 blocks", "damaged|refused", (0x4, "I", 0xFFFFFFFF)),
    _spoilt("blocks of 2^32 KiB", "damaged|refused", (0x18, "I", 32)),
    _spoilt("no blocks in a group", "damaged|refused", (0x20, "I", 0)),
    _spoilt("no inodes in a group", "damaged|refused", (0x28, "I", 0)),
    _spoilt("inodes of 3 bytes", "damaged|refused", (0x58, "H", 3)),
    _spoilt("group descriptors of 8 KiB", "damaged|refused", (0xFE, "H", 8192)),
    HostileGuest("group descriptors of garbage", "damaged|refused", spoil=_bytes(2048, b"\xa5" * BLOCK)),
    HostileGuest("group descriptors of zeros", "damaged|refused", spoil=_bytes(2048, bytes(BLOCK))),
    HostileGuest("inodes of garbage", ".", spoil=_inode_tables),
    HostileGuest("the root is a file", ".", spoil=_debugfs("set_inode_field <2> mode 0100644")),
    HostileGuest("the root is its own journal", ".", spoil=_debugfs("set_inode_field <2> block[0] 1")),
    HostileGuest("a directory in itself", None, spoil=_debugfs("link <2> root/.ssh/loop", "link <2> etc/loop")),
    HostileGuest("home has the inode of etc", None, spoil=_debugfs("unlink root", "link <2> root")),
    HostileGuest("authorized_keys is the journal", None, spoil=_debugfs(f"link <8> {KEYS}")),
    HostileGuest("authorized_keys is the root directory", None, spoil=_debugfs(f"link <2> {KEYS}")),
    HostileGuest(
        "authorized_keys of 2^60 bytes",
        "larger than|damaged|refused|cannot|not touched",
        _file(KEYS, b"x"),
        spoil=_debugfs(f"set_inode_field {KEYS} size 1152921504606846976"),
        options=NO_JOURNAL,
    ),
    HostileGuest(
        "authorized_keys on the superblock",
        None,
        _file(KEYS, b"x"),
        spoil=_debugfs(f"set_inode_field {KEYS} flags 0", f"set_inode_field {KEYS} block[0] 1"),
        options=NO_EXTENTS,
    ),
    HostileGuest(
        "immutable files",
        "not touched|.",
        _file(KEYS, b"x"),
        spoil=_debugfs(f"set_inode_field {KEYS} flags 0x80010", "set_inode_field etc/hostname flags 0x80010"),
    ),
    HostileGuest("every block is free", None, spoil=_debugfs(f"freeb 1 {SIZE // BLOCK - 192}")),
    HostileGuest("no room for blocks", "full", spoil=_no_blocks, options=("-m", "0")),
    HostileGuest("no room for inodes", "full", spoil=_no_inodes, options=("-N", "32")),
    # behind it is a whole file system, as behind a boot loader whose code reads as a table
    HostileGuest("a partition that lies outside", INJECTED, spoil=_partition_outside),
    HostileGuest("nothing at all", "no ext2", spoil=_bytes(0, bytes(64 * 1024))),
    HostileGuest("XFS that is none", ".", spoil=_bytes(0, b"XFSB" + b"\xff" * 508)),
    HostileGuest("squashfs", "no ext2", spoil=_bytes(0, b"hsqs".ljust(8192, b"\0"))),
    HostileGuest("qcow2 in the disk", "content is qcow2", spoil=_bytes(0, b"QFI\xfb\0\0\0\3")),
)
