# shellcheck shell=bash
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
#
# Hypervisors that are namespaces on this machine's kernel.

host_start() {
  host_links "$1"
  ip -n "$(host_namespace "$1")" -batch - <<BATCH
link set lo up
link set eth0 up
link set eth1 up
addr add $(host_address "$1")/24 dev eth0
route add default via $(<"$STATE/subnet").1
BATCH
  host_spawn "$1" "$SHARED/lib/hypervisor-root" "$1" "$STATE" "$DISK_GIB" "$SHARED" "$LINK"
}

host_exec() {
  local name=$1 pid
  shift
  [[ -n $(host_index "$name") ]] || die "no hypervisor $name in $STATE"
  pid=$(namespace_init "$(host_namespace "$name")")
  # with an empty pid nsenter would run the command on this machine
  [[ $pid =~ ^[0-9]+$ ]] || die "$name is not running"
  nsenter -t "$pid" -m -n -p -u -i -r -w env -i \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" "$@"
}
