# shellcheck shell=bash
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
#
# One lab (all hypervisors of one state directory): its names, its lock, its two bridges, its keys.
# Reads STATE, TOOL, KIND; sets LOGIN_USER, RUN, LINK, MANAGEMENT, WIRE, CONTROL_PATHS.

# shellcheck disable=SC2034  # for the other files
LOGIN_USER=deploy

# shellcheck disable=SC2153  # TOOL: set by the tool
die() {
  printf '%s: %s\n' "$TOOL" "$*" >&2
  exit 1
}

require_tools() {
  local tool
  PATH=$PATH:/usr/sbin:/sbin
  for tool in "$@"; do
    command -v "$tool" >/dev/null || die "$tool is not installed (tools/bootstrap installs what is needed)"
  done
}

# Everything visible outside the lab's own namespaces carries the run id, so that `make lab` and a test run
# can be up together. A link's name has at most 15 characters: nvl + 6 hex digits + m or w + 3 digits is 13.
lab_names() {
  RUN=$(printf '%s' "$STATE" | sha256sum)
  RUN=${RUN:0:6}
  LINK=nvl$RUN
  MANAGEMENT=${LINK}m
  WIRE=$LINK-wire
  # A unix socket's path has at most 107 bytes, and ssh adds about 30 to the directory's.
  CONTROL_PATHS=$STATE/cp
  ((${#STATE} <= 70)) || CONTROL_PATHS=/run/$LINK
}

# One lock for all labs of the machine: two of them must not choose the same subnet either. The lock is on a
# directory that exists anyway, so no lock file is left behind, and none can be removed under a waiter.
lab_lock() {
  exec 9</run/lock
  flock -w 400 9 || die "another run has been working on a lab for 400 seconds"
}

lab_hosts() {
  [[ ! -e $STATE/hosts ]] || cut -d' ' -f1 "$STATE/hosts"
}

lab_namespaces() {
  ip netns list | awk -v prefix="$LINK-" 'index($1, prefix) == 1 { print $1 }'
}

lab_make() {
  local owner
  [[ ! -s $STATE/kind || $(<"$STATE/kind") == "$KIND" ]] || die "the lab in $STATE is one of $(<"$STATE/kind")"
  install -d -m 700 "$STATE" "$CONTROL_PATHS"
  echo "$KIND" >"$STATE/kind"
  touch "$STATE/hosts"
  [[ -s $STATE/id_ed25519 && -s $STATE/id_ed25519.pub ]] || {
    rm -f "$STATE"/id_ed25519{,.pub}
    ssh-keygen -q -t ed25519 -N '' -C "novalite-lab-$RUN" -f "$STATE/id_ed25519"
  }
  owner=$(cat "/sys/class/net/$MANAGEMENT/ifalias" 2>/dev/null || true)
  [[ -z $owner || $owner == "$STATE" ]] || die "$MANAGEMENT belongs to the lab in $owner: choose another --state"
  [[ -s $STATE/subnet ]] || free_subnet >"$STATE/subnet"
  make_management "$(<"$STATE/subnet")"
  make_wire
}

# The first 10.192.0.0/11 /24 from a place derived from the run id on which no route overlaps.
free_subnet() {
  local place=$((16#$RUN)) try prefix
  for ((try = 0; try < 64; try++, place++)); do
    prefix=10.$((192 + (place >> 8) % 32)).$((place % 256))
    # `root` lists routes inside the /24, `match` those around it
    if [[ -z $(ip -4 route show table all root "$prefix.0/24") ]] &&
      ! ip -4 route show table all match "$prefix.0/24" | grep -qv '^default'; then
      echo "$prefix"
      return
    fi
  done
  die "no free /24 in 10.192.0.0/11: ip route show"
}

# The controller's way to the hypervisors: their eth0.
make_management() {
  local prefix=$1
  if ! ip link show "$MANAGEMENT" >/dev/null 2>&1; then
    ip link add "$MANAGEMENT" type bridge forward_delay 0 stp_state 0
  fi
  ip link set "$MANAGEMENT" alias "$STATE" up
  ip addr replace "$prefix.1/24" dev "$MANAGEMENT"
}

# namespace_of_frames NAMESPACE: bridges in it only pass frames on. In the root namespace bridge-nf would send guests'
# frames through this machine's own iptables (Docker's FORWARD policy is DROP), and IPv6 would put an address of this
# machine on the guests' network.
namespace_of_frames() {
  # shellcheck disable=SC2016  # for the inner shell
  ip netns exec "$1" bash -c '
    for key in /proc/sys/net/bridge/bridge-nf-call-*; do [ ! -e "$key" ] || echo 0 >"$key"; done
    for key in all default; do echo 1 >"/proc/sys/net/ipv6/conf/$key/disable_ipv6"; done 2>/dev/null || true'
}

# The guests' shared cable: the hypervisors' eth1.
make_wire() {
  [[ -e /run/netns/$WIRE ]] || ip netns add "$WIRE"
  namespace_of_frames "$WIRE"
  ip -n "$WIRE" link show wire >/dev/null 2>&1 ||
    ip -n "$WIRE" link add wire type bridge forward_delay 0 stp_state 0 mcast_snooping 0
  ip -n "$WIRE" link set wire up
}

# known_hosts for the controller, and the hosts file of every hypervisor: an unknown name would cost each
# of them seconds of waiting for a name server that is not there.
lab_write_names() {
  local name
  {
    echo '127.0.0.1 localhost'
    echo '::1 localhost ip6-localhost ip6-loopback'
    for name in $(lab_hosts); do
      printf '%s %s\n' "$(host_address "$name")" "$name"
    done
  } >"$STATE/etc-hosts"
  for name in $(lab_hosts); do
    # ssh looks for a host by its port, too, where that is not 22
    printf '%s,%s,[%s]:%s %s\n' "$name" "$(host_address "$name")" "$(host_address "$name")" "$(host_port "$name")" \
      "$(cut -d' ' -f1,2 "$STATE/$name.hostkey.pub")"
  done >"$STATE/known_hosts.new"
  mv "$STATE/known_hosts.new" "$STATE/known_hosts"
}

# ssh connections that Ansible keeps open outlive their playbook, and would outlive the lab.
lab_end_ssh_masters() {
  local socket
  for socket in "$CONTROL_PATHS"/*; do
    [[ ! -S $socket ]] || timeout 5 ssh -O exit -o ControlPath="$socket" lab >/dev/null 2>&1 || true
  done
}

# Removes by name what `up` makes, and nothing else: STATE may hold other people's files.
lab_remove() {
  local inventory name link
  for link in /sys/class/net/"$LINK"[mw]*; do
    [[ ! -e $link ]] || ip link del "${link##*/}" 2>/dev/null || true
  done
  [[ ! -s $STATE/inventory ]] || while read -r inventory; do rm -f -- "$inventory"; done <"$STATE/inventory"
  for name in $(lab_hosts); do
    rm -f "$STATE/$name".{hostkey,hostkey.pub,password,log,port,modular,root,systemd,numa,libvirt}
    [[ ! -d $STATE/$name.mnt ]] || rmdir "$STATE/$name.mnt"
  done
  rm -f "$STATE"/{kind,ramdisk,hosts,subnet,etc-hosts,known_hosts,known_hosts.new,id_ed25519,id_ed25519.pub,inventory}
  rm -rf "$CONTROL_PATHS" "$STATE/shared"
  rmdir --ignore-fail-on-non-empty "$STATE" 2>/dev/null || true
}
