# shellcheck shell=bash
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
#
# Hypervisors that are virtual machines (QEMU without KVM) with Debian's cloud kernel.
# shellcheck source-path=SCRIPTDIR source=kernel.sh
. "$SHARED/lib/kernel.sh"

host_start() {
  local name=$1 namespace kernel
  namespace=$(host_namespace "$name")
  kernel=$(cloud_kernel)
  [[ -n $kernel ]] || die "no kernel for the machines in /boot (tools/bootstrap installs linux-image-cloud-amd64)"
  [[ -s $STATE/ramdisk ]] ||
    make_ramdisk "$STATE/ramdisk" "$kernel" "$SHARED/lib/machine-ramdisk-init" \
      virtio_pci virtio_blk virtio_net virtio-rng virtiofs overlay
  host_links "$name"
  namespace_of_frames "$namespace"
  # A bridge that knows nothing of VLANs carries tagged frames as they are.
  ip -n "$namespace" -batch - <<BATCH
link add management type bridge forward_delay 0 stp_state 0 mcast_snooping 0
link add wire type bridge forward_delay 0 stp_state 0 mcast_snooping 0
tuntap add dev management-tap mode tap
tuntap add dev wire-tap mode tap
link set eth0 master management up
link set eth1 master wire up
link set management-tap master management up
link set wire-tap master wire up
link set management up
link set wire up
BATCH
  host_spawn "$name" "$SHARED/lib/machine" "$name" "$STATE" "$DISK_GIB" "$SHARED" "$MEMORY_MIB" \
    "$(host_address "$name")" "$(<"$STATE/subnet").1" "$(host_mac "$name")" "$kernel"
}

# host_mac NAME: the first five bytes of its cards' addresses.
host_mac() { printf '52:54:%s:%s:%02x' "${RUN:0:2}" "${RUN:2:2}" "$(host_index "$1")"; }

host_exec() {
  local name=$1 user=root become=()
  shift
  [[ -n $(host_index "$name") ]] || die "no hypervisor $name in $STATE"
  [[ $(host_login "$name") == root ]] || { user=lab && become=(sudo -n -H); } # lib/machine
  [[ -n $(namespace_init "$(host_namespace "$name")") ]] || die "$name is not running"
  # ssh joins the words with blanks, for a shell on the other side
  ssh -F /dev/null -q -p "$(host_port "$name")" -i "$STATE/id_ed25519" -o IdentitiesOnly=yes \
    -o UserKnownHostsFile="$STATE/known_hosts" -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes \
    -o BatchMode=yes -o ConnectTimeout=20 \
    "$user@$(host_address "$name")" -- "$(printf '%q ' "${become[@]}" "$@")"
}
