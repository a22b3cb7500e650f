# libvirt's Python binding for what QEMU alone has, as far as this tree uses it

import libvirt as libvirt

def qemuAgentCommand(domain: libvirt.virDomain, cmd: str, timeout: int, flags: int) -> str: ...
