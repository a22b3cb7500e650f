# shellcheck shell=bash
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
#
# One hypervisor of either kind: register, start, wait, examine, stop. Which processes are its own is asked of the
# kernel (who is in its network namespace), never of a pid file: pids are used again.
# $STATE/hosts has a line for each: its name, its index, and who logs in there (root, or LOGIN_USER with sudo).
# A kind (lib/kind-*.sh) gives host_start NAME, host_exec NAME COMMAND..., and the settings of a kind.

host_index() { awk -v name="$1" '$1 == name { print $2 }' "$STATE/hosts" 2>/dev/null; }
host_login() { awk -v name="$1" '$1 == name { print $3 }' "$STATE/hosts" 2>/dev/null; }
# shellcheck disable=SC2153  # LINK: lib/lab.sh
host_namespace() { printf '%s-%s' "$LINK" "$1"; }
host_port() { cat "$STATE/$1.port" 2>/dev/null || echo 22; }
host_address() { printf '%s.%d' "$(<"$STATE/subnet")" "$((10 + $(host_index "$1")))"; }

# host_register NAME: gives it an index (for its address and links), a host key and, where nobody logs in as root, the
# password that sudo wants there; they stay while the lab does.
host_register() {
  local name=$1 index login=root
  [[ ,$LOGINS, != *",$name,"* ]] || login=$LOGIN_USER
  if [[ -z $(host_index "$name") ]]; then
    index=$(($(wc -l <"$STATE/hosts") + 1))
    ((index <= 200)) || die "a lab has at most 200 hypervisors"
    echo "$name $index $login" >>"$STATE/hosts"
  fi
  [[ $(host_login "$name") == root || -s $STATE/$name.password ]] ||
    (umask 077 && openssl rand -hex 16 >"$STATE/$name.password")
  [[ -s $STATE/$name.hostkey && -s $STATE/$name.hostkey.pub ]] || {
    rm -f "$STATE/$name".hostkey{,.pub}
    ssh-keygen -q -t ed25519 -N '' -C "$name" -f "$STATE/$name.hostkey"
  }
}

# namespace_init NAMESPACE: the pid, as seen from here, of its pid 1; nothing when there is none.
namespace_init() {
  local pid
  [[ -e /run/netns/$1 ]] || return 0
  for pid in $(ip netns pids "$1"); do
    # "NSpid: <here> <inside>": pid 1 inside a namespace that is one level below ours
    if awk '$1 == "NSpid:" && NF == 3 && $3 == 1 { is_init = 1 } END { exit !is_init }' "/proc/$pid/status" 2>/dev/null; then
      echo "$pid"
      return
    fi
  done
}

# host_healthy NAME: its sshd greets and its libvirtd answers, or its systemd. One with a stand-in has neither.
host_healthy() {
  local address banner=''
  address=$(host_address "$1")
  [[ -n $(namespace_init "$(host_namespace "$1")") ]] || return 1
  # a connection alone proves little; the subshell keeps the socket and the error to itself
  banner=$( (exec 3<>"/dev/tcp/$address/$(host_port "$1")" && read -r -t 5 line <&3 && echo "$line") 2>/dev/null) || return 1
  [[ $banner == SSH-* ]] || return 1
  [[ ! -e $STATE/$1.libvirt ]] || return 0
  if [[ -e $STATE/$1.systemd ]]; then
    host_exec "$1" timeout 20 systemctl show --property=Version </dev/null >/dev/null 2>&1
    return
  fi
  host_exec "$1" timeout 20 virsh -q -c qemu:///system uri </dev/null >/dev/null 2>&1
}

# host_links NAME: its namespace, with eth0 for the management network and eth1 for the wire.
host_links() {
  local namespace link index
  index=$(host_index "$1")
  namespace=$(host_namespace "$1")
  ip netns add "$namespace"
  link=${LINK}m$index
  ip link add "$link" type veth peer name eth0 netns "$namespace"
  ip link set "$link" master "$MANAGEMENT" up
  link=${LINK}w$index
  ip -n "$WIRE" link add "$link" type veth peer name eth1 netns "$namespace"
  ip -n "$WIRE" link set "$link" master wire up
}

# host_spawn NAME COMMAND...: pid 1 of new namespaces, in the host's network namespace; what it says is logged.
host_spawn() {
  local name=$1
  shift
  mkdir -p "$STATE/$name.mnt"
  # A clean environment, and nothing inherited: neither this run's lock nor one that its caller holds, which would then
  # be held as long as the hypervisor lives. setsid does not fork: a background job leads no process group.
  (
    cd /
    for fd in "/proc/$BASHPID/fd/"*; do
      fd=${fd##*/}
      ((fd <= 2)) || exec {fd}>&-
    done
    exec setsid nsenter --net="/run/netns/$(host_namespace "$name")" \
      unshare --mount --pid --uts --ipc --fork --kill-child \
      env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
      bash "$@"
  ) </dev/null >"$STATE/$name.log" 2>&1 &
  # once it was there, a namespace without processes is one whose host has died
  while [[ -z $(ip netns pids "$(host_namespace "$name")") ]] && kill -0 $! 2>/dev/null; do
    sleep 0.02
  done
}

# host_wait NAME: until it is up. One that does not come up is started again, START_TRIES times in all: under load, a
# machine has hung before its kernel said a word.
host_wait() {
  local name=$1 try
  for ((try = 1; try <= START_TRIES; try++)); do
    ((try == 1)) || host_start "$name"
    ! host_comes_up "$name" || return 0
    sed "s/^/$name: /" "$STATE/$name.log" >&2
    (host_exec "$name" sh -c 'tail -n 20 /var/log/libvirtd.log /var/log/virtqemud.log /var/log/sshd.log') >&2 </dev/null || true
    host_stop "$name"
    echo "$TOOL: $name did not come up within $START_TIMEOUT seconds (try $try of $START_TRIES); its last words are above" >&2
  done
  die "$name does not come up"
}

host_comes_up() {
  local end=$((SECONDS + START_TIMEOUT))
  until host_healthy "$1"; do
    ((SECONDS <= end)) && [[ -n $(ip netns pids "$(host_namespace "$1")") ]] || return 1
    sleep "$START_POLL"
  done
}

host_stop() {
  local index
  index=$(host_index "$1")
  namespace_end "$(host_namespace "$1")"
  nft delete table netdev "${LINK}m$index" 2>/dev/null || true # of a direction that was cut: it waits for the name
  # the root's ends first: deleting a namespace removes links some time later
  [[ ! -e /sys/class/net/${LINK}m$index ]] || ip link del "${LINK}m$index" 2>/dev/null || true
  ip -n "$WIRE" link del "${LINK}w$index" 2>/dev/null || true
}

# namespace_end NAMESPACE: its pid 1 takes all processes, mounts and memory with it.
namespace_end() {
  local namespace=$1 pid end=$((SECONDS + 30))
  [[ -e /run/netns/$namespace ]] || return 0
  pid=$(namespace_init "$namespace")
  [[ -z $pid ]] || kill -KILL "$pid" 2>/dev/null || true
  while pid=$(ip netns pids "$namespace") && [[ -n $pid ]]; do
    ((SECONDS <= end)) || die "processes in $namespace do not end: ${pid//$'\n'/ }"
    # what entered from outside (`ip netns exec`) is no child of that pid 1
    # shellcheck disable=SC2086  # one word per pid
    kill -KILL $pid 2>/dev/null || true
    sleep 0.02
  done
  ip netns del "$namespace"
  # of one that ran systemd (lib/systemd.sh); what has ended is in its group for a moment more
  until find /sys/fs/cgroup -depth -type d -path "*/$namespace*" -exec rmdir {} + 2>/dev/null; do
    ((SECONDS <= end)) || break
    sleep 0.1
  done
}

# host_link_mended NAME: its management link is whole.
host_link_mended() {
  local link
  link=${LINK}m$(host_index "$1")
  nft delete table netdev "$link" 2>/dev/null || true
  ip link set "$link" up
}

# host_pids NAME: all that runs on it, but for the two that keep its namespaces: pid 1, and what waits for that.
host_pids() {
  local pid
  for pid in $(ip netns pids "$(host_namespace "$1")"); do
    ! awk '$1 == "NSpid:" && NF > 2 && $3 != 1 { is_its_own = 1 } END { exit !is_its_own }' "/proc/$pid/status" 2>/dev/null ||
      echo "$pid"
  done
}

# host_unplug NAME: nothing runs on it, and nobody hears of it; its disks stay.
host_unplug() {
  local pids end=$((SECONDS + 30))
  [[ -e /run/netns/$(host_namespace "$1") ]] || return 0
  ip link set "${LINK}m$(host_index "$1")" down
  while pids=$(host_pids "$1") && [[ -n $pids ]]; do
    ((SECONDS <= end)) || die "processes of $1 do not end: ${pids//$'\n'/ }"
    # shellcheck disable=SC2086  # one word per pid
    kill -KILL $pids 2>/dev/null || true
    sleep 0.02
    # pid 1 keeps a child that sleeps: of one that is left, nothing is to be feared
    [[ $(wc -w <<<"$pids") -gt 1 ]] || break
  done
}

# host_plug NAME: it boots, with what was on its disks.
host_plug() {
  local pid
  pid=$(namespace_init "$(host_namespace "$1")")
  [[ -n $pid ]] || die "$1 has nothing to boot: \`up\` makes it anew"
  kill -CONT "$pid" # of one that was frozen
  host_link_mended "$1"
  kill -USR1 "$pid"
}
