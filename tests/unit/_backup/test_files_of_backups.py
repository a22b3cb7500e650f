# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of backups by the step backup_files: file systems that are sound, hostile and damaged."""

from __future__ import annotations

import json
import os
import pathlib
import secrets
import shutil
import subprocess
import tarfile
import typing as t
import uuid

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._backup import saved_files
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from tests.support import examples
from tests.unit._backup import cheap_repository
from tests.unit._backup.hypervisor import PATIENCE, PYTHON, REPOSITORY, Guest, Hypervisor
from tests.unit._backup.test_backups_of_servers import state_dir

__all__ = ["state_dir"]
MIB = 1 << 20
BACKUP = "11111111-0000-4000-8000-000000000000"
KEY = "ab" * 32


def has_reader() -> bool:
    return subprocess.run([PYTHON, "-c", "import pytsk3, nbd"], capture_output=True, check=False).returncode == 0


pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(
        shutil.which("libvirtd") is None or shutil.which("restic") is None or not has_reader(),
        reason="needs libvirtd, restic, python3-libnbd and python3-tsk",
    ),
]


class Saved:
    """A backup of a server that has these images (raw) as its disks."""

    def __init__(self, host: Hypervisor, state_dir: str, images: t.Sequence[pathlib.Path]) -> None:
        self.host, self.state_dir = host, state_dir
        disks = {}
        for letter, image in zip("abcd", images):
            disk = image.with_suffix(".qcow2")
            subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", str(image), str(disk)], check=True)
            disks[f"vd{letter}"] = (disk, "qcow2")
        guest = Guest(host, disks)
        guest.start()
        self.server = guest.uuid
        try:
            asks = {"action": "take", "backup": BACKUP, "server": self.server, "key": KEY, "scratch": state_dir}
            cheap_repository.make(pathlib.Path(f"{state_dir}.store", self.server), KEY)
            host.engine({**asks, "store": f"{state_dir}.store/{self.server}", "cache": f"{state_dir}.cache"})
        finally:
            guest.kill()

    def do(self, state: str, *paths: str, **more: t.Any) -> JsonObject:
        """Return the step's result; whatever it says, nothing of the disk is left on the host."""
        params: JsonObject = {
            "state": state,
            "state_dir": self.state_dir,
            "key": KEY,
            "store": f"{self.state_dir}.store",
        }
        params |= {"backup_id": BACKUP, "chain": self.server, "paths": list(paths) or ["/"]}
        defaults = {"disk": None, "partition": None, "room": 0, "owner": 0, "archive": None}
        done = subprocess.run(
            self.host.inside(PYTHON, str(pathlib.Path(__file__).with_name("step.py")), "backup_files"),
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "collections"), "TMPDIR": str(self.host.path)},
            input=json.dumps({"params": {**defaults, **params, **more}, "check_mode": False}),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        result: JsonObject = json.loads(done.stdout)
        left = {str(path) for path in pathlib.Path(self.state_dir).rglob(".files-*")}
        assert left == ({result["archive"]} if "archive" in result else set())
        return result

    def extract(self, *paths: str, room: int = 16 * MIB, **more: t.Any) -> tuple[JsonObject, dict[str, bytes | None]]:
        """Return the result, and what the archive has: files with their data, directories with None."""
        result = self.do("extracted", *paths, room=room, **more)
        members: dict[str, bytes | None] = {}
        with tarfile.open(result["archive"]) as tar:
            for member in tar:
                assert member.isreg() or member.isdir()
                data = tar.extractfile(member)
                members[member.name] = None if data is None else data.read()
        assert self.do("absent", archive=result["archive"]).get("failed") is None
        assert not os.path.exists(result["archive"])
        return result, members


def ext4(path: pathlib.Path, fill: t.Callable[[pathlib.Path], object], size: int = 16 * MIB) -> pathlib.Path:
    """Make an image with an ext4 of what `fill` writes into a directory."""
    tree = path.with_suffix(".tree")
    tree.mkdir()
    fill(tree)
    subprocess.run(["mkfs.ext4", "-q", "-d", str(tree), str(path), f"{size >> 10}k"], check=True, capture_output=True)
    return path


def vfat(path: pathlib.Path, name: str, data: bytes) -> pathlib.Path:
    """Make an image with a FAT that has one file."""
    path.write_bytes(bytes(8 * MIB))
    subprocess.run(["mkfs.vfat", str(path)], check=True, capture_output=True)
    file = path.with_suffix(".file")
    file.write_bytes(data)
    subprocess.run(["mcopy", "-i", str(path), str(file), f"::{name}"], check=True)
    return path


def partitioned(path: pathlib.Path, *images: pathlib.Path) -> pathlib.Path:
    """Make an image with a partition for each of these."""
    table, data, start = "label: gpt\n", bytearray(MIB), 2048
    for image in images:
        sectors = image.stat().st_size // 512
        table += f"start={start},size={sectors}\n"
        data += image.read_bytes()
        start += sectors
    path.write_bytes(bytes(data) + bytes(MIB))
    subprocess.run(["sfdisk", "-q", str(path)], input=table, text=True, check=True, capture_output=True)
    return path


SECRET = secrets.token_bytes(3 * MIB + 5)


SLASHES = "../../tmp/escaped"


def hostile(tree: pathlib.Path) -> None:
    """Write what must never come out as it is, among good files."""
    (tree / "etc").mkdir()
    (tree / "etc" / "hostname").write_text("web\n")
    (tree / "etc" / "big").write_bytes(SECRET)
    (tree / "etc" / "line\nbreak\x1b[31m").write_text("x")
    os.symlink("/etc/shadow", tree / "etc" / "absolute")
    os.symlink("../../../../../etc/shadow", tree / "etc" / "above")
    os.symlink("loop", tree / "loop")
    os.symlink("etc", tree / "conf")
    os.mknod(tree / "etc" / "device", 0o600 | 0o020000, os.makedev(1, 3))
    os.mkfifo(tree / "etc" / "pipe")
    (tree / "etc" / "setuid").write_text("s")
    os.chmod(tree / "etc" / "setuid", 0o6755)
    os.link(tree / "etc" / "hostname", tree / "etc" / "second")
    (tree / "etc" / "sub").mkdir()
    (tree / "etc" / "sub" / SLASHES.replace("/", "S").replace(".", "D")).write_text("x")
    (tree / "etc" / "sub" / "again").mkdir()
    (tree / "sparse").touch()
    os.truncate(tree / "sparse", 1 << 36)


def with_impossible_names(image: pathlib.Path) -> pathlib.Path:
    """Give a file a name that leads out of its directory, and a directory a name below itself."""
    data, name = bytearray(image.read_bytes()), SLASHES.replace("/", "S").replace(".", "D").encode()
    assert data.count(name) == 1
    data = data.replace(name, SLASHES.encode())
    # An entry of ext4: the inode in 4 bytes, the entry's length in 2, the name's in 1, and 2 for a directory
    above, again = data.index(b"\x03\x02etc"), data.index(b"\x05\x02again")
    data[again - 6 : again - 2] = data[above - 6 : above - 2]
    image.write_bytes(data)
    return image


@pytest.fixture(scope="module")
def saved(host: Hypervisor, state_dir: str) -> Saved:
    directory = host.path / "images"
    directory.mkdir()
    first, second = (
        with_impossible_names(ext4(directory / "root", hostile)),
        vfat(directory / "esp", "LOADER.EFI", b"loader"),
    )
    third = directory / "noise"
    third.write_bytes(os.urandom(2 * MIB))
    return Saved(host, state_dir, [partitioned(directory / "vda", second, first), second, third])


def test_a_directory_is_listed_as_it_was(saved: Saved) -> None:
    listed = saved.do("listed", "/etc")
    assert (listed["disks"], listed["disk"], listed["partition"]) == (["vda", "vdb", "vdc"], "vda", 2)
    assert [(each["partition"], each["type"]) for each in listed["file_systems"]] == [(2, "ext4"), (1, "fat12")]
    entries = {entry["shown"]: entry for entry in listed["entries"]}
    assert (entries["big"]["size"], entries["setuid"]["mode"], entries["sub"]["kind"]) == (
        len(SECRET),
        0o6755,
        "directory",
    )
    assert (entries["absolute"]["kind"], entries["absolute"]["link"]) == ("link", "/etc/shadow")
    assert (entries["device"]["kind"], entries["pipe"]["kind"]) == ("device", "pipe")
    assert "line\\nbreak\\x1b[31m" in entries
    (linked,) = saved.do("listed", "/conf/hostname")["entries"]  # a link on the way
    assert (linked["shown"], linked["size"]) == ("hostname", 4)
    assert [entry["shown"] for entry in saved.do("listed", partition=1)["entries"]] == ["LOADER.EFI"]
    assert saved.do("listed", disk="vdb")["partition"] == 0


def test_only_files_and_directories_come_and_the_rest_is_named(saved: Saved) -> None:
    result, members = saved.extract("/etc", "/conf/hostname", "/etc/hostname")
    assert members["etc/big"] == SECRET and members["etc/hostname"] == members["etc/second"] == b"web\n"
    assert members["etc/sub"] is None and members["conf/hostname"] == b"web\n"
    assert members["etc/line\\nbreak\\x1b[31m"] == b"x"
    names = {"etc", "etc/sub", "conf", "conf/hostname"}
    names |= {f"etc/{name}" for name in ("big", "hostname", "second", "setuid", "line\\nbreak\\x1b[31m")}
    assert set(members) == names and result["count"] == len(names)
    assert sorted(why.split(":")[0] for why in result["skipped"]) == [
        "/etc/above", "/etc/absolute", "/etc/device", "/etc/pipe", f"/etc/sub/{SLASHES}", "/etc/sub/again",
    ]  # fmt: skip
    assert "it is a link to /etc/shadow" in " ".join(result["skipped"])


@pytest.mark.parametrize(
    ("paths", "more", "words"),
    [
        (["/nosuch"], {}, "/nosuch is not there"),
        (["/etc/hostname/x"], {}, "hostname is a file"),
        (["/loop"], {}, "goes through more than 40 links"),
        (["/../../etc/above"], {}, "is not there"),  # within the file system, and there is none
        (["/etc"], {"room": MIB}, "has more than 1048576 bytes"),
        (["/sparse"], {}, "has more than 16777216 bytes"),
        (["/"], {"partition": 7}, "partition 7 has no file system of ext2"),
        (["/"], {"disk": "vdz"}, "has no disk vdz: name one of vda, vdb, vdc"),
        (["/"], {"disk": "vdc"}, "no file system that can be read"),
    ],
)
def test_what_cannot_be_had_is_an_error(saved: Saved, paths: list[str], more: dict[str, t.Any], words: str) -> None:
    result = saved.do("extracted", *paths, **{"room": 16 * MIB, **more})
    assert result["failed"] and words in result["msg"] and "Traceback" not in result["msg"]


def test_no_other_file_is_removed(saved: Saved) -> None:
    for name in ("/etc/passwd", f"{saved.state_dir}/.files-0123456789abcdef.tar"):
        assert "is not an archive of files of a backup" in saved.do("absent", archive=name)["msg"]


def test_a_damaged_file_system_ends_in_an_error_or_in_files(host: Hypervisor, state_dir: str) -> None:
    """Whatever is written over its metadata: no traceback, and nothing is left."""
    directory = host.path / f"damaged-{uuid.uuid4()}"
    directory.mkdir()
    sound = ext4(directory / "sound", hostile).read_bytes()
    images = []
    for number, seed in enumerate((b"\xff", b"\x41", b"\x00\x7f\x80")[: examples.part_of(3)]):
        image = directory / f"image{number}"
        data = bytearray(sound)
        for at in range(2048, 256 << 10, 997 + number * 31):  # group descriptors, inodes, directories
            data[at : at + len(seed)] = seed
        image.write_bytes(data)
        images.append(image)
    cut = directory / "cut"
    cut.write_bytes(sound[: 2 * MIB])
    damaged = Saved(host, state_dir, [*images, cut])
    for disk in ("vda", "vdb", "vdc", "vdd")[: len(images) + 1]:
        for state in ("listed", "extracted"):
            result = damaged.do(state, "/etc", disk=disk, room=16 * MIB)
            if result.get("failed"):
                assert f"disk {disk}" in result["msg"] and "Traceback" not in result["msg"], result
            if "archive" in result:
                damaged.do("absent", archive=result["archive"])


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("_MEMORY = 64 << 20", "64 MiB of memory"),
        ("_TIMEOUT = 0.01", "return code 124"),
        ("PYTHON = '/bin/false'", "return code 1"),
        ("_BOOT = 'pass'", "gave no answer"),
    ],
)
def test_what_reads_a_file_system_is_bounded(tmp_path: pathlib.Path, limit: str, words: str) -> None:
    """Whatever it does: an error follows, with what to do."""
    image = ext4(tmp_path / "image", hostile)
    program = (
        f"from {saved_files.__name__.rpartition('.')[0]} import saved_files\n"
        f"from {saved_files.__name__.rpartition('.')[0]}.domain_xml import Disk\n"
        f"saved_files.{limit}\n"
        "wish = saved_files.Wish('b', 'c', ['/etc'])\n"
        f"disk = Disk('vda', 'vda', {str(image)!r}, 'raw')\n"
        f"print(saved_files._read(wish, 'listed', disk, {str(tmp_path / 'archive')!r})['error'])\n"
    )
    done = subprocess.run(
        [PYTHON, "-c", program],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "collections")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert words in done.stdout and "make a volume of it, and look there" in done.stdout, done.stderr
