#!/bin/bash
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
#
# inject_reference.sh BACKEND KEY_FILE DISK ...: a key into each qcow2 disk, one after another, with the bare commands:
# connect, mount, write, unmount, disconnect. No locks, no checks, no undo.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

BACKEND=$1 KEY_FILE=$2
shift 2
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
mkdir "$WORK/root"

write_key() {
  mkdir -p "$WORK/root/root/.ssh"
  chmod 700 "$WORK/root/root/.ssh"
  printf '\n# The following ssh key was injected by Nova\n%s\n' "$(<"$KEY_FILE")" >>"$WORK/root/root/.ssh/authorized_keys"
  chmod 600 "$WORK/root/root/.ssh/authorized_keys"
}

fuse() {
  : >"$WORK/raw"
  qemu-storage-daemon --blockdev "driver=file,node-name=file,filename=$1" --blockdev driver=qcow2,node-name=disk,file=file \
    --export "type=fuse,id=export,node-name=disk,mountpoint=$WORK/raw,writable=on,allow-other=off" --pidfile "$WORK/pid" &
  until [[ -e $WORK/pid ]]; do sleep 0.01; done
  mount -o loop,nosuid,nodev,noexec "$WORK/raw" "$WORK/root"
  write_key
  umount "$WORK/root"
  while [[ -n $(losetup -j "$WORK/raw") ]]; do sleep 0.01; done
  kill "$!"
  wait "$!"
  rm -f "$WORK/raw" "$WORK/pid"
}

nbd() {
  qemu-nbd --format=qcow2 --connect=/dev/nbd0 "$1"
  until [[ -e /sys/block/nbd0/pid && $(</sys/block/nbd0/size) != 0 ]]; do sleep 0.01; done
  tune2fs -c 0 -i 0 /dev/nbd0 >/dev/null
  mount -o nosuid,nodev,noexec /dev/nbd0 "$WORK/root"
  write_key
  umount "$WORK/root"
  blockdev --flushbufs /dev/nbd0
  qemu-nbd --disconnect /dev/nbd0 >/dev/null
  while [[ -e /sys/block/nbd0/pid ]]; do sleep 0.01; done
}

for disk in "$@"; do
  "$BACKEND" "$disk"
done
