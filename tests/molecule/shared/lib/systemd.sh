# shellcheck shell=bash
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
#
# A host that boots systemd: no hypervisor, but what a service is installed on.

# systemd_make [ADDRESS GATEWAY]: what a small Debian has, and not what is enabled on this machine. Writes into ROOT.
systemd_make() {
  # shellcheck disable=SC2153  # ROOT: lib/root.sh
  local unit units=$ROOT/etc/systemd/system
  own /etc/systemd/system
  echo /lib/systemd/systemd >"$ROOT/run/hypervisor/init"
  : >"$ROOT/etc/fstab"
  mkdir -p "$units/multi-user.target.wants"
  ln -s /lib/systemd/system/multi-user.target "$units/default.target"
  ln -s /lib/systemd/system/ssh.service "$units/multi-user.target.wants/ssh.service"
  # what takes long without KVM, and serves nobody here
  for unit in systemd-udev-trigger.service systemd-udevd.service systemd-udevd-{control,kernel}.socket systemd-logind.service \
    getty@tty1.service serial-getty@ttyS0.service console-getty.service systemd-update-utmp.service \
    systemd-update-utmp-runlevel.service systemd-modules-load.service systemd-binfmt.service systemd-resolved.service \
    systemd-networkd.service dev-hugepages.mount sys-kernel-{debug,tracing}.mount sys-fs-fuse-connections.mount; do
    ln -s /dev/null "$units/$unit"
  done
  (($# == 0)) || systemd_network "$@"
}

systemd_network() {
  ln -s ../lab-network.service "$ROOT/etc/systemd/system/multi-user.target.wants/lab-network.service"
  cat >"$ROOT/etc/systemd/system/lab-network.service" <<UNIT
[Unit]
Description=The lab's network
DefaultDependencies=no
Before=network.target ssh.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/sbin/ip link set lo up
ExecStart=/sbin/ip link set eth0 up
ExecStart=/sbin/ip address add $1/24 dev eth0
ExecStart=/sbin/ip route add default via $2
UNIT
}

# systemd_cgroup NAME: the control group that is the root of all of a host's that is namespaces.
systemd_cgroup() {
  local root
  root=$(findmnt -n -o TARGET -t cgroup2 | head -n 1)
  [[ -n $root ]] || { echo "no cgroup2 is mounted on this machine" >&2 && return 1; }
  printf '%s/%s' "$root" "$1"
}
