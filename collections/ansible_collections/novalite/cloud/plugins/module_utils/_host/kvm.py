# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Test of KVM on this host. A /dev/kvm that opens proves nothing, nor does a guest that halts at once.

A KVM without hardware virtualization behind it (kvm_pvm, or one nested in a cloud VM) takes every call and runs a
one-instruction guest in a millisecond, but it interprets a stock guest's kernel instruction by instruction: about a
million a second, so that Linux appears to hang in its decompressor. Speed tells the two apart. The probe is a guest in
64-bit mode that counts down from ten million and halts: some 5 ms of CPU time on hardware, 10 s interpreted.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import pwd
import resource
import select
import signal
import struct

COUNT = 10_000_000
CPU_SECONDS = 1  # a hundred times what hardware takes; of CPU time, so that a busy host does not fail the probe
WALL_SECONDS = 10.0  # for one that hangs without using the CPU

# ioctls and structures of linux/kvm.h for x86_64
_CREATE_VM, _CREATE_VCPU, _GET_VCPU_MMAP_SIZE, _SET_TSS_ADDR, _RUN = 0xAE01, 0xAE41, 0xAE04, 0xAE47, 0xAE80
_SET_USER_MEMORY_REGION, _GET_SREGS, _SET_SREGS, _SET_REGS = 0x4020AE46, 0x8138AE83, 0x4138AE84, 0x4090AE82
_SREGS_SIZE, _REGS_SIZE = 312, 144
_RSP, _RIP, _RFLAGS = 6, 16, 17  # places in struct kvm_regs, in words of 8 bytes
_CR0_AT = 224  # in struct kvm_sregs, after eight segments and two descriptor tables
_EXIT_HLT = 5
_WORKS = "works"

_CODE_AT, _PML4_AT, _PDPT_AT, _PD_AT, _STACK_AT, _MEMORY = 0x1000, 0x2000, 0x3000, 0x4000, 0x8000, 0x10000
_SPARE_PAGES = 0x7FFBD000  # anywhere outside the memory, and no more than fcntl.ioctl's C int
_CODE = b"\xb9" + struct.pack("<I", COUNT) + b"\xff\xc9\x75\xfc\xf4"  # mov ecx, COUNT; 1: dec ecx; jnz 1b; hlt


def kvm_fault(arch: str, user: tuple[int, int] | None = None) -> str | None:
    """Return why KVM cannot be used on this host, in words; None when it works.

    On x86_64 this runs the probe, in a child process that is killed when it does not end. On other architectures
    it creates a VM only. `user` is the uid and gid that QEMU runs as: what root can open is not always theirs.
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if user is not None and os.geteuid() == 0:
                _become(*user)
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
            os.write(write_end, (_probe_x86_64() if arch == "x86_64" else _probe_any()).encode())
        except Exception as error:  # whatever it is: it means no, and the parent says it
            os.write(write_end, f"/dev/kvm does not run a virtual machine: {error}".encode())
        finally:
            os._exit(0)  # never back into the module, whatever was raised
    os.close(write_end)
    with open(read_end, encoding="utf-8") as answers:
        ended, _writable, _failed = select.select([answers], [], [], WALL_SECONDS)
        if not ended:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        answer = answers.read()
    if not ended:
        return f"a guest that only counts did not end within {WALL_SECONDS:g} s"
    if not answer:  # RLIMIT_CPU killed it
        return (
            f"a guest that only counts to ten million did not end within {CPU_SECONDS} s of CPU time: "
            "this KVM interprets guests, it has no hardware virtualization behind it"
        )
    return None if answer == _WORKS else answer


def _become(uid: int, gid: int) -> None:
    try:
        entry = pwd.getpwuid(uid)
        os.setgroups(os.getgrouplist(entry.pw_name, entry.pw_gid))  # as libvirt does: on Debian these hold kvm
    except KeyError:
        os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def _probe_any() -> str:
    kvm = os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC)
    fcntl.ioctl(kvm, _CREATE_VM, 0)
    return _WORKS


def _probe_x86_64() -> str:
    kvm = os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC)
    vm = fcntl.ioctl(kvm, _CREATE_VM, 0)
    fcntl.ioctl(vm, _SET_TSS_ADDR, _SPARE_PAGES)  # Intel without "unrestricted guest" wants three of them
    memory = mmap.mmap(-1, _MEMORY)
    memory[_CODE_AT : _CODE_AT + len(_CODE)] = _CODE
    present_writable, large_page = 0x3, 0x80
    struct.pack_into("<Q", memory, _PML4_AT, _PDPT_AT | present_writable)
    struct.pack_into("<Q", memory, _PDPT_AT, _PD_AT | present_writable)
    struct.pack_into("<Q", memory, _PD_AT, present_writable | large_page)  # the first 2 MiB, as they are
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    fcntl.ioctl(vm, _SET_USER_MEMORY_REGION, struct.pack("IIQQQ", 0, 0, 0, _MEMORY, address))
    vcpu = fcntl.ioctl(vm, _CREATE_VCPU, 0)
    run = mmap.mmap(vcpu, fcntl.ioctl(kvm, _GET_VCPU_MMAP_SIZE, 0))

    sregs = bytearray(_SREGS_SIZE)
    fcntl.ioctl(vcpu, _GET_SREGS, sregs)
    # base, limit, selector, type, present, dpl, db, s, l, g, avl, unusable, padding
    code_64 = struct.pack("<QIHBBBBBBBBBB", 0, 0xFFFFFFFF, 8, 11, 1, 0, 0, 1, 1, 1, 0, 0, 0)
    flat_data = struct.pack("<QIHBBBBBBBBBB", 0, 0xFFFFFFFF, 16, 3, 1, 0, 1, 1, 0, 1, 0, 0, 0)
    segments = code_64 + 5 * flat_data  # cs ds es fs gs ss
    sregs[: len(segments)] = segments
    cr0 = 0x80050033  # PG AM WP NE ET MP PE
    cr4, efer = 0x20, 0x500  # PAE; LMA LME
    struct.pack_into("<QQQQQQ", sregs, _CR0_AT, cr0, 0, _PML4_AT, cr4, 0, efer)
    fcntl.ioctl(vcpu, _SET_SREGS, bytes(sregs))
    regs = bytearray(_REGS_SIZE)
    for word, value in ((_RSP, _STACK_AT), (_RIP, _CODE_AT), (_RFLAGS, 0x2)):
        struct.pack_into("<Q", regs, word * 8, value)
    fcntl.ioctl(vcpu, _SET_REGS, bytes(regs))
    fcntl.ioctl(vcpu, _RUN, 0)
    (reason,) = struct.unpack_from("<I", run, 8)
    return _WORKS if reason == _EXIT_HLT else f"a guest that only counts ended with KVM's exit reason {reason}"
