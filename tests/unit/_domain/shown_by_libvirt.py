# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A domain's XML as libvirt shows it while its guest runs, with all that it adds."""

from __future__ import annotations

# What libvirt 9.0 answers as the live XML of a guest like EXAMPLE.
LIVE = """<domain type='qemu' id='1'>
  <name>instance-00000007</name>
  <uuid>6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11</uuid>
  <metadata>
    <novalite:instance xmlns:novalite="urn:novalite:instance:1">
      <novalite:uuid>6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11</novalite:uuid>
      <novalite:name>web</novalite:name>
      <novalite:project id="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa">demo</novalite:project>
      <novalite:flavor>m1.nano</novalite:flavor>
      <novalite:image id="8b">ami-tiny</novalite:image>
    </novalite:instance>
  </metadata>
  <memory unit='KiB'>98304</memory>
  <currentMemory unit='KiB'>98304</currentMemory>
  <vcpu placement='static'>1</vcpu>
  <os>
    <type arch='x86_64' machine='pc-i440fx-7.2'>hvm</type>
    <kernel>/i/kernel</kernel>
    <initrd>/i/ramdisk</initrd>
    <cmdline>root=/dev/vda console=ttyS0</cmdline>
    <boot dev='hd'/>
  </os>
  <features>
    <acpi/>
    <apic/>
  </features>
  <cpu mode='custom' match='exact' check='full'>
    <model fallback='forbid'>qemu64</model>
    <feature policy='require' name='hypervisor'/>
  </cpu>
  <clock offset='utc'/>
  <on_poweroff>destroy</on_poweroff>
  <on_reboot>restart</on_reboot>
  <on_crash>destroy</on_crash>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' cache='none'/>
      <source file='/i/disk' index='1'/>
      <backingStore/>
      <target dev='vda' bus='virtio'/>
      <alias name='virtio-disk0'/>
      <address type='pci' domain='0x0000' bus='0x00' slot='0x03' function='0x0'/>
    </disk>
    <controller type='usb' index='0' model='piix3-uhci'>
      <alias name='usb'/>
    </controller>
    <interface type='bridge'>
      <mac address='fa:16:3e:00:00:01'/>
      <source bridge='br100'/>
      <target dev='vnet0'/>
      <model type='virtio'/>
      <filterref filter='nova-instance-instance-00000007'>
        <parameter name='IP' value='10.20.0.5'/>
      </filterref>
      <mtu size='1450'/>
      <alias name='net0'/>
      <address type='pci' domain='0x0000' bus='0x00' slot='0x02' function='0x0'/>
    </interface>
    <serial type='pty'>
      <source path='/dev/pts/3'/>
      <log file='/i/console.log'/>
      <target type='isa-serial' port='0'>
        <model name='isa-serial'/>
      </target>
      <alias name='serial0'/>
    </serial>
    <console type='pty' tty='/dev/pts/3'>
      <source path='/dev/pts/3'/>
      <log file='/i/console.log'/>
      <target type='serial' port='0'/>
      <alias name='serial0'/>
    </console>
    <input type='mouse' bus='ps2'/>
    <audio id='1' type='none'/>
    <memballoon model='virtio'>
      <stats period='10'/>
      <alias name='balloon0'/>
    </memballoon>
    <rng model='virtio'>
      <backend model='random'>/dev/urandom</backend>
      <alias name='rng0'/>
    </rng>
  </devices>
  <seclabel type='dynamic' model='dac' relabel='yes'>
    <label>+64055:+64055</label>
  </seclabel>
</domain>
"""
