# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that are taken for disk images and are none: compressed ones, archives, web pages; and signs of a raw disk.

Nothing is opened as what it looks like here: how a file is opened is declared, and what a guest may have written
decides nothing (CVE-2015-5163, CVE-2024-32498). What is found is for the message by which a file is refused.
"""

from __future__ import annotations

import codecs
import os
import tarfile
import typing as t

from ._model.plain_text import is_plain

Content = t.Literal["any", "unpacked", "disk"]  # what a raw file may hold
_COMPRESSED = "{0} file: unpack it first ({1})"
_ARCHIVE = "{0} archive: unpack it first ({1}), and register the disk in it"
_TAR = _ARCHIVE.format("a tar (such as an OVA)", "tar -xf")
# Frames of zstd and LZ4 that hold no data: those of parallel compressors begin with one (RFC 8878 3.1.2)
_SKIPPED = tuple(bytes([nibble]) + b"\x2a\x4d\x18" for nibble in range(0x50, 0x60))
# (offset, magic, what it is and the remedy)
_PACKED: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\xfd7zXZ\0", _COMPRESSED.format("an xz", "unxz")),
    (0, b"\x1f\x8b\x08", _COMPRESSED.format("a gzip", "gunzip")),
    (0, b"\x28\xb5\x2f\xfd", _COMPRESSED.format("a zstd", "unzstd")),
    (0, b"BZh", _COMPRESSED.format("a bzip2", "bunzip2")),
    (0, b"\x04\x22\x4d\x18", _COMPRESSED.format("an lz4", "unlz4")),
    (0, b"\x02\x21\x4c\x18", _COMPRESSED.format("an lz4", "unlz4")),
    (0, b"LZIP\x01", _COMPRESSED.format("an lzip", "lzip -d")),
    (0, b"\x89LZO\0\r\n\x1a\n", _COMPRESSED.format("an lzop", "lzop -d")),
    (0, b"\x5d\0\0", _COMPRESSED.format("an lzma", "unlzma")),
    (0, b"\x1f\x9d\x90", _COMPRESSED.format("a compress (.Z)", "uncompress")),
    (0, b"PK\x03\x04", _ARCHIVE.format("a ZIP", "unzip")),
    (0, b"PK\x07\x08", _ARCHIVE.format("a ZIP", "unzip")),  # of several parts
    (0, b"PK\x05\x06", _ARCHIVE.format("an empty ZIP", "unzip")),
    (0, b"7z\xbc\xaf\x27\x1c", _ARCHIVE.format("a 7z", "7z x")),
    (0, b"Rar!\x1a\x07", _ARCHIVE.format("a RAR", "unrar x")),
    (0, b"!<arch>\ndebian-binary", _ARCHIVE.format("a Debian package, an ar", "dpkg-deb -x")),
    (0, b"!<arch>\n", _ARCHIVE.format("an ar", "ar x")),
    (0, b"070701", _ARCHIVE.format("a cpio", "cpio -i")),
    (0, b"070702", _ARCHIVE.format("a cpio", "cpio -i")),
    (0, b"070707", _ARCHIVE.format("a cpio", "cpio -i")),
    (0, b"MSWIM\0\0\0", _ARCHIVE.format("a WIM", "wimapply")),
    (0, b"\xed\xab\xee\xdb", _ARCHIVE.format("an RPM", "rpm2cpio")),
    (0, b"MSCF\0\0\0\0", _ARCHIVE.format("a cabinet", "cabextract")),
    (0, b"xar!", _ARCHIVE.format("a xar (macOS package)", "xar -xf")),
    (2, b"-lh5-", _ARCHIVE.format("an LHA", "lha x")),
    (7, b"**ACE**", _ARCHIVE.format("an ACE", "unace x")),
    (0, b"VMA\0", _ARCHIVE.format("a VMA (Proxmox backup)", "vma extract")),
    (0, b"partclone-image", _ARCHIVE.format("a Partclone", "partclone.restore")),
    (0, b"PaRtImAgE-VoLuMe", _ARCHIVE.format("a Partimage", "partimage restore")),
    (0, b"\x3a\xff\x26\xed", _COMPRESSED.format("an Android sparse", "simg2img")),
    (0, b"sprs", _COMPRESSED.format("an Apple sparse image", "hdiutil convert")),
    (0, b"AFF10\r\n\0", _COMPRESSED.format("an AFF (forensic image)", "affconvert -r")),
    (0, b"EVF\t\r\n\xff\0", _COMPRESSED.format("an EWF (forensic image)", "ewfexport")),
    (0, b"EVF2\r\n\x81\0", _COMPRESSED.format("an EWF (forensic image)", "ewfexport")),
    (257, b"ustar", _TAR),
)
# Nor are these disks; but where somebody means to have any content, they are content
_OTHERS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x7fELF", "a program (ELF)"),
    (0, b"%PDF-", "a PDF document"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an MSI package or a document of an office"),
    (0, b"SQLite format 3\0", "an SQLite database"),
    (0, b"\x89PNG\r\n\x1a\n", "a picture (PNG)"),
    (0, b"\xff\xd8\xff", "a picture (JPEG)"),
    (0, b"GIF8", "a picture (GIF)"),
)
_PAGES = ("<!doctype", "<html", "<head", "<body", "<?xml", "<!--")
_PAGE = "a web page or XML: what was downloaded is not the image; fetch it by the link of the file itself"
_TEXT = "a text: what was downloaded is not the image, but perhaps an error or a pointer to it (Git LFS, metalink)"
_SIGNS: tuple[tuple[int, bytes], ...] = (
    (510, b"\x55\xaa"),  # of a partition table in the MBR, of GPT's protective one, of FAT and NTFS
    (512, b"EFI PART"),
    (4096, b"EFI PART"),  # of 4 KiB sectors
    (512, b"\x57\x45\x56\x82"),  # BSD disklabel
    (508, b"\xda\xbe"),  # Sun disklabel
    (0, b"ER\x02\0"),  # Apple partition map
    (0, b"ER\x08\0"),
    (0, b"\xc9\xc2\xd4\xf3"),  # IPL1, and volume labels of s390
    (8192, b"\xe5\xd6\xd3\xf1"),
    (0, b"zIPL"),
    (1080, b"\x53\xef"),  # ext2, ext3, ext4
    (0, b"XFSB"),
    (65600, b"_BHRfS_M"),  # Btrfs
    (1024, b"\x10\x20\xf5\xf2"),  # F2FS
    (1024, b"\xe2\xe1\xf5\xe0"),  # EROFS
    (1024, b"H+\0\x04"),  # HFS+
    (32, b"NXSB"),  # APFS
    (0, b"hsqs"),  # SquashFS
    (0, b"\x45\x3d\xcd\x28"),  # CramFS
    (0, b"-rom1fs-"),
    (32768, b"JFS1"),
    (65588, b"ReIsEr"),
    (32769, b"CD001"),  # ISO 9660
    (32769, b"BEA01"),  # UDF
    (3, b"EXFAT   "),
    (4086, b"SWAPSPACE2"),
    (0, b"LABELONE"),  # LVM, in one of the first four sectors
    (512, b"LABELONE"),
    (1024, b"LABELONE"),
    (1536, b"LABELONE"),
    (4096, b"\xfc\x4e\x2b\xa9"),  # MD RAID
    (0, b"\xfc\x4e\x2b\xa9"),
    (9564, b"\x19\x01\x54\x19"),  # UFS2, UFS1
    (65536 + 1372, b"\x19\x01\x54\x19"),
)
HEAD = max(offset + len(magic) for offset, magic in (*_SIGNS, *((at, magic) for at, magic, _what in _PACKED)))


def is_packed(head: bytes) -> str | None:
    """Return what the file that begins with `head` is, with the remedy, where it is compressed, an archive, or a page;
    None for everything else."""
    for offset, magic, what in _PACKED:
        if head[offset : offset + len(magic)] == magic:
            return what
    if head.startswith(_SKIPPED):
        return _COMPRESSED.format("a zstd or lz4", "unzstd or unlz4")
    if _is_tar(head[: tarfile.BLOCKSIZE]):
        return _TAR
    return _PAGE if (_text_of(head[:1024], "replace") or "").lstrip().lower().startswith(_PAGES) else None


def is_no_disk(head: bytes) -> str | None:
    """The same of one that is nothing but text, or of another kind that has a name."""
    for offset, magic, what in _OTHERS:
        if head[offset : offset + len(magic)] == magic:
            return what
    text = _text_of(head[:512])
    return _TEXT if text and is_plain(text, allowed="\t\n\r\f\x1b") else None


def _text_of(first: bytes, errors: t.Literal["strict", "replace"] = "strict") -> str | None:
    """The characters that these bytes are, as UTF-8, or as UTF-16 behind its mark; `strict`, None if they are not."""
    utf_16 = first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        # the last character may be cut off
        return codecs.getincrementaldecoder("utf-16" if utf_16 else "utf-8-sig")(errors).decode(first)
    except UnicodeDecodeError:
        return None


def _is_tar(block: bytes) -> bool:
    """Tell whether this is a header of tar, which has a checksum in all of its formats; the oldest has nothing else."""
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True


def shows_disk(head: bytes) -> bool:
    """Tell whether there is a partition table, a boot signature or a file system."""
    return any(head[offset : offset + len(magic)] == magic for offset, magic in _SIGNS)


def head_of(fd: int) -> bytes:
    """The part of a file that all of this is judged by."""
    return os.pread(fd, HEAD, 0)
