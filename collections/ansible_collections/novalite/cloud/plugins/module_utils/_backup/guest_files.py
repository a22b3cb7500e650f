# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files in the file systems of a disk, for a process of its own that is confined: see saved_files.py.

The disk is a guest's, and hostile: it is read by the Sleuth Kit, which no kernel takes part in, through a descriptor of
an NBD server. What is a regular file or a directory goes into an archive; links, devices and the rest are only named.
Run as a program, whose words are the descriptors of the disk and of the archive; the request is what is left on its
standard input, in JSON. It answers in JSON, and needs nothing of this collection.
"""

from __future__ import annotations

import json
import sys
import tarfile
import typing as t

EXPORT = "disk"
NO_READER = 3  # exit code where the host has no Sleuth Kit
MOST_ENTRIES, DEEPEST, MOST_LINKS = 100_000, 100, 40  # of one answer; directories in each other; links on one way
_PIECE = 1 << 20
_LONGEST_NAME, _LONGEST_LINK = 255, 4096  # bytes
_SECTOR = 512
_FREE = 2  # a name that is not allocated: TSK_FS_NAME_FLAG_UNALLOC
_KINDS = {"REG": "file", "DIR": "directory", "LNK": "link", "CHR": "device", "BLK": "device", "FIFO": "pipe"}
_READS = "ext2, ext3, ext4, FAT, exFAT, NTFS, HFS+, UFS or ISO 9660"


class UnreadableError(Exception):
    """A wish that the disk does not fulfil; the message says why."""


class Entry(t.NamedTuple):
    """An entry of a directory. `shown` has no character that is not printed."""

    shown: str
    inode: int
    kind: str
    size: int
    mode: int
    modified: int
    link: str


def shown(name: bytes) -> str:
    """Return a name with what cannot be printed in escapes."""
    text = name.decode("utf-8", "backslashreplace")
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def open_disk(tsk: t.Any, descriptor: int) -> t.Any:
    """Open the disk behind a socket that an NBD server is connected to, as what the Sleuth Kit reads."""
    import nbd

    handle = nbd.NBD()
    handle.set_export_name(EXPORT)
    handle.connect_socket(descriptor)
    size = handle.get_size()

    class Disk(tsk.Img_Info):
        def __init__(self) -> None:
            super().__init__(url="", type=tsk.TSK_IMG_TYPE_EXTERNAL)

        def close(self) -> None:
            pass

        def read(self, offset: int, length: int) -> bytes:
            length = max(0, min(length, size - offset))
            pieces = range(offset, offset + length, _PIECE)
            return b"".join(bytes(handle.pread(min(_PIECE, offset + length - at), at)) for at in pieces)

        def get_size(self) -> int:
            return int(size)

    return Disk()


class FileSystem:
    """A file system on a disk: in the partition `number`, or, 0, on all of it."""

    def __init__(self, tsk: t.Any, disk: t.Any, number: int, offset: int) -> None:
        self.number = number
        self.fs = tsk.FS_Info(disk, offset=offset)  # OSError, where there is none that it knows
        info = self.fs.info
        self.size = int(info.block_size) * int(info.block_count)
        self.type = str(info.ftype).rpartition("TSK_FS_TYPE_")[2].lower()

    def entries(self, inode: int) -> t.Iterator[Entry | str]:
        """List a directory; of an entry with an impossible name, or that is damaged, only what to say of it."""
        for each in self.fs.open_dir(inode=inode):
            name = each.info.name
            if name is None or name.name is None or int(name.flags) & _FREE or name.name in (b".", b".."):
                continue
            text = shown(name.name)
            if str(name.type).endswith(("VIRT", "VIRT_DIR")):
                continue  # what the Sleuth Kit makes up, such as $OrphanFiles
            if each.info.meta is None:
                yield f"{text[:_LONGEST_NAME]}: what it is cannot be read"
                continue
            if not text or "/" in text or len(text.encode()) > _LONGEST_NAME:
                yield f"{text[:_LONGEST_NAME]}: its name is not one of a file"
                continue
            yield self._entry(text, each.info.meta)

    def _entry(self, text: str, meta: t.Any) -> Entry:
        kind = _KINDS.get(str(meta.type).rpartition("TSK_FS_META_TYPE_")[2], "other")
        link = shown((meta.link or b"")[:_LONGEST_LINK]) if kind == "link" else ""
        return Entry(text, int(meta.addr), kind, int(meta.size), int(meta.mode) & 0o7777, int(meta.mtime or 0), link)

    def find(self, path: str) -> Entry:
        """Find what is at a path; links on the way are followed, within the file system. Raises UnreadableError."""
        root = Entry("", int(self.fs.info.root_inum), "directory", 0, 0o755, 0, "")
        way, todo, links = [root], path.split("/")[::-1], 0
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                way = way[:-1] or [root]
                continue
            if way[-1].kind != "directory":
                raise UnreadableError(f"{path} is not there: {way[-1].shown} is a {way[-1].kind}")
            entry = next((each for each in self._named(way[-1].inode) if each.shown == part), None)
            if entry is None:
                raise UnreadableError(f"{path} is not there: see what is, with `novalite backup files`")
            if entry.kind != "link":
                way.append(entry)
                continue
            links += 1
            if links > MOST_LINKS:
                raise UnreadableError(f"{path} goes through more than {MOST_LINKS} links: name a file without them")
            way = [root] if entry.link.startswith("/") else way
            todo += entry.link.split("/")[::-1]
        return way[-1]

    def _named(self, inode: int) -> t.Iterator[Entry]:
        return (each for each in self.entries(inode) if isinstance(each, Entry))

    def pieces(self, entry: Entry) -> t.Iterator[bytes]:
        """Read a file. Raises UnreadableError where it ends early."""
        file, offset = self.fs.open_meta(inode=entry.inode), 0
        while offset < entry.size:
            piece = file.read_random(offset, min(_PIECE, entry.size - offset))
            if not piece:
                raise UnreadableError(f"{entry.shown} ends after {offset} of {entry.size} bytes: it is damaged")
            offset += len(piece)
            yield piece


class Pieces:
    """Bytes as a file that can be read, for tarfile."""

    def __init__(self, pieces: t.Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, b""

    def read(self, length: int) -> bytes:
        while len(self._rest) < length:
            piece = next(self._pieces, b"")
            if not piece:
                break
            self._rest += piece
        data, self._rest = self._rest[:length], self._rest[length:]
        return data


class Archive:
    """Files and directories of a file system, as they go into an archive of at most `room` bytes of files."""

    def __init__(self, system: FileSystem, tar: tarfile.TarFile, room: int) -> None:
        self.system, self.tar, self.room = system, tar, room
        self.most = room
        self.count = 0
        self.skipped: list[str] = []
        self._seen: set[int] = set()
        self._names: set[str] = set()

    def add(self, path: str) -> None:
        """Add what is at a path, and what is below it. Raises UnreadableError."""
        entry = self.system.find(path)
        names = [part for part in path.split("/") if part not in ("", ".", "..")]
        for depth in range(1, len(names)):
            self._write("/".join(names[:depth]), Entry("", -depth, "directory", 0, 0, 0, ""))
        self._add("/".join(names), entry, len(names))

    def _add(self, name: str, entry: Entry, depth: int) -> None:
        if entry.kind == "file":
            self._write(name, entry)
            return
        if entry.kind != "directory":
            self._skip(f"/{name}: it is a {entry.kind}" + (f" to {entry.link}" if entry.link else ""))
            return
        if entry.inode in self._seen or depth > DEEPEST:
            self._skip(f"/{name}: it is below itself, or below {DEEPEST} directories")
            return
        self._seen.add(entry.inode)
        if name:
            self._write(name, entry)
        for each in self.system.entries(entry.inode):
            if isinstance(each, str):
                self._skip(f"/{name}/{each}")
            else:
                self._add(f"{name}/{each.shown}".lstrip("/"), each, depth + 1)

    def _skip(self, why: str) -> None:
        self._counted()
        self.skipped.append(why)

    def _counted(self) -> None:
        self.count += 1
        if self.count > MOST_ENTRIES:
            raise UnreadableError(f"there are more than {MOST_ENTRIES} files: name fewer directories")

    def _write(self, name: str, entry: Entry) -> None:
        if name in self._names:  # two of the paths have it
            return
        self._names.add(name)
        self._counted()
        member = tarfile.TarInfo(name)
        member.mtime, member.mode = max(0, entry.modified), 0o700
        if entry.kind == "directory":
            member.type = tarfile.DIRTYPE
            self.tar.addfile(member)
            return
        self.room -= entry.size
        if self.room < 0 or entry.size < 0:
            raise UnreadableError(f"what is up to /{name} has more than {self.most} bytes: allow more, or name fewer")
        member.mode, member.size = 0o600, entry.size
        self.tar.addfile(member, t.cast(t.IO[bytes], Pieces(self.system.pieces(entry))))


def systems_of(tsk: t.Any, disk: t.Any) -> list[FileSystem]:
    """List the file systems that can be read, the largest first. Raises UnreadableError."""
    try:
        parts = [part for part in tsk.Volume_Info(disk) if int(part.flags) & int(tsk.TSK_VS_PART_FLAG_ALLOC)]
        places = [(number, int(part.start) * _SECTOR) for number, part in enumerate(parts, start=1)]
    except OSError:  # it has no table of partitions
        places = [(0, 0)]
    systems = []
    for number, offset in places:
        try:
            systems.append(FileSystem(tsk, disk, number, offset))
        except OSError:
            continue
    if not systems:
        raise UnreadableError(
            f"the disk has no file system that can be read ({_READS}): make a volume of it with "
            "`novalite backup restore-volume`"
        )
    return sorted(systems, key=lambda each: -each.size)


def answer(tsk: t.Any, disk: t.Any, request: t.Mapping[str, t.Any], archive: t.IO[bytes]) -> dict[str, t.Any]:
    """Answer a request: of `paths` the first one is listed, or all go into the archive if there is a `room` for it."""
    systems = systems_of(tsk, disk)
    partition = request.get("partition")
    chosen = [each for each in systems if partition in (None, each.number)]
    if not chosen:
        has = ", ".join(str(each.number) for each in systems)
        raise UnreadableError(f"partition {partition} has no file system of {_READS}: name one of {has}")
    system = chosen[0]
    about = {
        "file_systems": [{"partition": each.number, "type": each.type, "size": each.size} for each in systems],
        "partition": system.number,
    }
    if request.get("room") is not None:
        with tarfile.open(fileobj=archive, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            adding = Archive(system, tar, request["room"])
            for path in request["paths"]:
                adding.add(path)
        return {**about, "count": adding.count - len(adding.skipped), "skipped": adding.skipped}
    entry = system.find(request["paths"][0])
    listed: list[Entry] = []
    skipped: list[str] = []
    for each in system.entries(entry.inode) if entry.kind == "directory" else [entry]:
        if len(listed) + len(skipped) >= MOST_ENTRIES:
            raise UnreadableError(f"there are more than {MOST_ENTRIES} entries: name another directory")
        if isinstance(each, str):
            skipped.append(each)
        else:
            listed.append(each)
    return {**about, "skipped": skipped, "entries": [each._asdict() for each in sorted(listed)]}


def main() -> None:
    """Answer the request on the standard input."""
    try:
        import pytsk3 as tsk
    except ImportError:
        raise SystemExit(NO_READER) from None
    source, target = (int(word.rpartition("/")[2]) for word in sys.argv[1:3])
    request = json.loads(sys.stdin.buffer.read())
    try:
        with open(target, "wb", closefd=False) as archive:
            said = answer(tsk, open_disk(tsk, source), request, archive)
    except UnreadableError as error:
        said = {"error": str(error)}
    except (OSError, ValueError, OverflowError, MemoryError, RecursionError, tarfile.TarError) as error:
        why = " ".join(str(error).split())[:300] or type(error).__name__
        said = {"error": f"its file system cannot be read: {why}"}
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main()
