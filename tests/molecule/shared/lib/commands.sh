# shellcheck shell=bash
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
#
# The commands up, down, exec, wire and status, the same for both kinds of hypervisors.

usage() {
  cat <<USAGE
usage: $TOOL up     --state DIR [--count N | --names ${PREFIX}1,${PREFIX}2] [--inventory FILE] [--disk GIB] [--memory MIB]
                    [--login ${PREFIX}1,${PREFIX}2] [--port NAME=PORT]
                    [--modular NAME=DIR] [--root NAME=DIR] [--systemd NAME] [--numa NAME] [--libvirt FILE]
       $TOOL down   --state DIR
       $TOOL off    --state DIR NAME        (also: unplug, plug, cut, mend, freeze, thaw)
       $TOOL cut    --state DIR NAME in|out
       $TOOL exec   --state DIR NAME COMMAND [ARGUMENT ...]
       $TOOL wire   --state DIR COMMAND [ARGUMENT ...]
       $TOOL status --state DIR

up      makes what is missing and prints one line per hypervisor: name, address, state.
        Hypervisors of an earlier \`up\` stay. --inventory writes an Ansible inventory (group \`compute\`).
        --disk bounds what one hypervisor may store (default 64 GiB, in memory, taken only when written).
        --memory is what a virtual machine has (default 1024 MiB).
        --login names the hypervisors whose sshd refuses root: a user logs in who has sudo, with a password that the
        inventory knows (default "${LOGINS:-none}"; the word \`none\` for none).
        --port has NAME's sshd listen on PORT, which the inventory says.
        --modular makes NAME run libvirt's modular daemons, which lie in DIR (modular-libvirt builds them).
        --root takes NAME's system directories out of DIR, a tree of another system, instead of this machine's.
        --systemd has NAME run systemd and sshd, and nothing of libvirt's.
        --numa gives NAME, a virtual machine, two NUMA nodes: CPU 0 on the first; CPUs 1 and 2 and 64 huge pages of 2 MiB
        on the second.
        --libvirt has all that it makes run sshd alone; their Python imports FILE in place of libvirt's binding.
down    ends the hypervisors and everything in them, and removes all that \`up\` made.
off     ends one hypervisor and everything in it at once, with its disks; \`up\` makes it anew.
unplug  kills all that runs on it, and takes its management link away, as a power cut does; \`plug\` boots it, with its disks.
cut     takes its management link away, or what comes in or goes out alone; \`mend\` gives it back. freeze stops all its processes, \`thaw\` lets them go on; its
        kernel, which is this machine's, still answers a ping.
exec    runs a command as root on one hypervisor.
wire    runs a command of this machine where the guests' wire is (a bridge named \`wire\`).
status  prints the lines of \`up\`; the return code is 3 when a hypervisor does not answer or none exists.
USAGE
}

parse_options() {
  STATE='' COUNT=2 NAMES='' INVENTORY='' DISK_GIB=64 MEMORY_MIB=1024 PORT='' MODULAR='' TREE='' SYSTEMD='' NUMA='' LIBVIRT=''
  REST=()
  while (($#)); do
    case $1 in
      --state | --count | --names | --inventory | --disk | --memory | --login | --port | --modular | --root | --systemd | --numa | --libvirt)
        (($# >= 2)) || die "$1 wants a value"
        case $1 in
          --state) STATE=$2 ;;
          --count) COUNT=$2 ;;
          --names) NAMES=$2 ;;
          --inventory) INVENTORY=$2 ;;
          --disk) DISK_GIB=$2 ;;
          --memory) MEMORY_MIB=$2 ;;
          --login) LOGINS=$2 ;;
          --port) PORT=$2 ;;
          --modular) MODULAR=$2 ;;
          --root) TREE=$2 ;;
          --systemd) SYSTEMD=$2 ;;
          --numa) NUMA=$2 ;;
          --libvirt) LIBVIRT=$2 ;;
        esac
        shift 2
        ;;
      -*) die "unknown option $1 (try: $TOOL help)" ;;
      *) REST=("$@") && break ;;
    esac
  done
  [[ -n $STATE ]] || die "--state DIR is missing"
  [[ $COUNT =~ ^([1-9][0-9]?|1[0-9][0-9]|200)$ ]] || die "--count $COUNT: want a number from 1 to 200"
  [[ $DISK_GIB =~ ^[1-9][0-9]{0,4}$ ]] || die "--disk $DISK_GIB: want a number of GiB"
  [[ $MEMORY_MIB =~ ^[1-9][0-9]{2,5}$ ]] || die "--memory $MEMORY_MIB: want a number of MiB, at least 100"
  [[ -z $PORT || $PORT =~ ^[a-z][a-z0-9-]*=[1-9][0-9]{0,4}$ ]] || die "--port $PORT: want NAME=PORT"
  [[ -z $MODULAR || $MODULAR =~ ^[a-z][a-z0-9-]*=/ ]] || die "--modular $MODULAR: want NAME=/DIRECTORY"
  [[ -z $MODULAR || -x ${MODULAR#*=}/virtqemud ]] || die "${MODULAR#*=} has no virtqemud (modular-libvirt builds it)"
  [[ -z $TREE || $TREE =~ ^[a-z][a-z0-9-]*=/ ]] || die "--root $TREE: want NAME=/DIRECTORY"
  [[ -z $LIBVIRT || -f $LIBVIRT ]] || die "--libvirt $LIBVIRT: no such file"
  [[ -z $TREE || -d ${TREE#*=}/usr ]] || die "${TREE#*=} holds no system: it has no /usr"
  STATE=$(realpath -m -- "$STATE")
  [[ -z $INVENTORY ]] || INVENTORY=$(realpath -m -- "$INVENTORY")
  local i
  HOSTS=()
  if [[ -n $NAMES ]]; then
    IFS=, read -r -a HOSTS <<<"$NAMES"
  else
    for ((i = 1; i <= COUNT; i++)); do HOSTS+=("$PREFIX$i"); done
  fi
  for i in "${HOSTS[@]}"; do
    [[ $i =~ ^[a-z][a-z0-9-]{0,30}$ ]] || die "name \"$i\": want lower case letters, digits and dashes, at most 31"
  done
}

command_up() {
  ((${#REST[@]} == 0)) || die "up: unexpected \"${REST[*]}\""
  require_tools ip nsenter unshare ssh-keygen sshd libvirtd virtlogd virsh flock openssl sudo "${TOOLS[@]}"
  lab_lock
  lab_make
  local name fresh=()
  for name in "${HOSTS[@]}"; do
    host_register "$name"
  done
  [[ -z $PORT ]] || echo "${PORT#*=}" >"$STATE/${PORT%%=*}.port"
  [[ -z $MODULAR ]] || echo "${MODULAR#*=}" >"$STATE/${MODULAR%%=*}.modular" # also when it is made again
  [[ -z $TREE ]] || echo "${TREE#*=}" >"$STATE/${TREE%%=*}.root"
  [[ -z $SYSTEMD ]] || : >"$STATE/$SYSTEMD.systemd"
  [[ -z $NUMA ]] || : >"$STATE/$NUMA.numa"
  lab_write_names
  for name in $(lab_hosts); do
    host_healthy "$name" && continue
    host_stop "$name" # what is left of one that died, or was made by half
    fresh+=("$name")
  done
  for name in "${fresh[@]}"; do
    [[ -z $LIBVIRT ]] || cp "$LIBVIRT" "$STATE/$name.libvirt"
    host_start "$name"
  done
  for name in "${fresh[@]}"; do
    host_wait "$name"
  done
  [[ -z $INVENTORY ]] || inventory_write "$INVENTORY"
  command_status
}

command_down() {
  ((${#REST[@]} == 0)) || die "down: unexpected \"${REST[*]}\""
  require_tools ip flock
  lab_lock
  lab_end_ssh_masters
  local namespace
  for namespace in $(lab_namespaces); do
    namespace_end "$namespace"
  done
  lab_remove
}

command_status() {
  local name answer=0
  for name in $(lab_hosts); do
    if host_healthy "$name"; then
      printf '%s %s up\n' "$name" "$(host_address "$name")"
    else
      printf '%s %s down\n' "$name" "$(host_address "$name")"
      answer=3
    fi
  done
  [[ -n ${name:-} ]] || answer=3
  return "$answer"
}

# known_name: the only argument, a hypervisor of this lab.
known_name() {
  if ((${#REST[@]} != 1)) || [[ -z $(host_index "${REST[0]}") ]]; then
    die "want the NAME of one hypervisor of $STATE"
  fi
}

command_off() {
  known_name
  host_stop "${REST[0]}"
}

command_unplug() {
  known_name
  host_unplug "${REST[0]}"
}

command_plug() {
  known_name
  host_plug "${REST[0]}"
  host_wait "${REST[0]}"
}

# cut_link LINK in|out: what goes to the host leaves by this end of its link, and what comes from it enters there.
cut_link() {
  local hook
  case $2 in
    in) hook=egress ;;
    out) hook=ingress ;;
    *) die "cut: want in or out, not \"$2\"" ;;
  esac
  nft -f - <<RULES
add table netdev $1
add chain netdev $1 cut { type filter hook $hook device "$1" priority 0; policy drop; }
RULES
}

command_cut() {
  local link direction=${REST[1]:-}
  REST=("${REST[@]:0:1}")
  known_name
  # shellcheck disable=SC2153  # LINK: lib/lab.sh
  link=${LINK}m$(host_index "${REST[0]}")
  if [[ -n $direction ]]; then
    cut_link "$link" "$direction"
  else
    ip link set "$link" down
  fi
}

command_mend() {
  known_name
  host_link_mended "${REST[0]}"
}

command_freeze() {
  known_name
  ip netns pids "$(host_namespace "${REST[0]}")" | xargs --no-run-if-empty kill -STOP
}

command_thaw() {
  known_name
  ip netns pids "$(host_namespace "${REST[0]}")" | xargs --no-run-if-empty kill -CONT
}

command_exec() {
  ((${#REST[@]} >= 2)) || die "exec: want NAME COMMAND"
  host_exec "${REST[@]}"
}

command_wire() {
  ((${#REST[@]} >= 1)) || die "wire: want COMMAND"
  [[ -e /run/netns/$WIRE ]] || die "there is no lab in $STATE"
  exec ip netns exec "$WIRE" "${REST[@]}"
}

main() {
  local command=${1:-help}
  (($# == 0)) || shift
  case $command in
    up | down | off | unplug | plug | cut | mend | freeze | thaw | exec | wire | status)
      parse_options "$@"
      ((EUID == 0)) || die "only root can do this"
      lab_names
      "command_$command"
      ;;
    help | -h | --help) usage ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
}
