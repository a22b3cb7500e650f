#!/bin/bash
# launch_reference.sh up|answer|down COUNT KEY.PUB BASE KERNEL RAMDISK: what launch.yml does on one host, as a bare shell script
# that takes the instances one after another: overlay disk, key injection, DHCP entry, network filter, firewall chains,
# domain. BASE is the raw base disk in novalite's cache; the filter nova-base is there already. The reference of the
# benchmarks launch.*. `answer` waits, two minutes at most, until the ssh server of each guest sends its first word.
set -euo pipefail
ACTION=$1 COUNT=$2 KEY=$3 BASE=$4 KERNEL=$5 RAMDISK=$6
ROOT=/var/lib/reference BRIDGE=brref NET=10.99.0

bridge() {
    ip link show "$BRIDGE" >/dev/null 2>&1 || {
        ip link add "$BRIDGE" type bridge forward_delay 0 stp_state 0
        ip address add "$NET.1/24" dev "$BRIDGE"
        ip link set "$BRIDGE" up
    }
    sysctl -qw net.bridge.bridge-nf-call-iptables=1 net.ipv4.ip_forward=1
}

disk() { # DIR
    mkdir -p "$1"
    chmod 711 "$ROOT" "$1"
    qemu-img create -q -f qcow2 -b "$BASE" -F raw "$1/disk"
    cp "$KERNEL" "$1/kernel"
    cp "$RAMDISK" "$1/ramdisk"
}

inject() { # DIR NAME
    local raw=$1/raw mount=$1/mnt pid
    : >"$raw"
    mkdir "$mount"
    qemu-storage-daemon --blockdev driver=file,node-name=f,filename="$1/disk" \
        --blockdev driver=qcow2,node-name=q,file=f \
        --export type=fuse,id=e,node-name=q,mountpoint="$raw",writable=on,allow-other=off \
        --pidfile "$1/pid" --daemonize
    pid=$(cat "$1/pid")
    mount -o loop,nosuid,nodev,noexec "$raw" "$mount"
    mkdir -p "$mount/root/.ssh"
    chmod 700 "$mount/root/.ssh"
    cat "$KEY" >>"$mount/root/.ssh/authorized_keys"
    chmod 600 "$mount/root/.ssh/authorized_keys"
    echo "$2" >"$mount/etc/hostname"
    umount "$mount"
    while [ -n "$(losetup -j "$raw")" ]; do sleep 0.01; done
    kill "$pid"
    while grep -qs '^State:.[^ZX]' "/proc/$pid/status"; do sleep 0.01; done
    rm -f "$raw"
    rmdir "$mount"
}

dhcp() { # MAC NAME IP
    echo "$1,$2.novalocal,$3" >>"$ROOT/hosts"
    if [ -e "$ROOT/dnsmasq.pid" ]; then
        kill -HUP "$(cat "$ROOT/dnsmasq.pid")"
    else
        dnsmasq --conf-file=/dev/null --bind-interfaces --except-interface=lo --interface="$BRIDGE" \
            --pid-file="$ROOT/dnsmasq.pid" --listen-address="$NET.1" --dhcp-range="$NET.0,static,86400s" \
            --dhcp-hostsfile="$ROOT/hosts" --leasefile-ro --port=0
    fi
}

filter() { # NAME
    virsh -q nwfilter-define /dev/stdin >/dev/null <<XML
<filter name='nova-instance-$1' chain='root'><filterref filter='nova-base'/></filter>
XML
}

chains() { # ID IP
    iptables-restore --noflush -w <<RULES
*filter
:ref-local - [0:0]
:ref-inst-$1 - [0:0]
:ref-new-$1 - [0:0]
:ref-sg-1 - [0:0]
-A ref-sg-1 -p tcp -m tcp --dport 22 -j ACCEPT
-A ref-sg-1 -p icmp -j ACCEPT
-A ref-new-$1 -j ref-sg-1
-A ref-new-$1 -s $NET.1/32 -p udp -m udp --sport 67 --dport 68 -j ACCEPT
-A ref-new-$1 -j DROP
-A ref-inst-$1 -m conntrack --ctstate INVALID -j DROP
-A ref-inst-$1 -m conntrack --ctstate ESTABLISHED --ctdir ORIGINAL -j ref-new-$1
-A ref-inst-$1 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A ref-inst-$1 -j ref-new-$1
-A ref-local -d $2/32 -j ref-inst-$1
COMMIT
RULES
    ip6tables-restore --noflush -w <<RULES
*filter
:ref-inst-$1 - [0:0]
-A ref-inst-$1 -m conntrack --ctstate INVALID -j DROP
-A ref-inst-$1 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A ref-inst-$1 -j DROP
COMMIT
RULES
}

domain() { # NAME MAC IP DIR
    virsh -q define /dev/stdin <<XML
<domain type='qemu'><name>$1</name><memory unit='MiB'>96</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='pc'>hvm</type><kernel>$4/kernel</kernel><initrd>$4/ramdisk</initrd>
<cmdline>root=/dev/vda console=ttyS0 quiet cryptomgr.notests no_timer_check</cmdline></os><features><acpi/></features><on_crash>destroy</on_crash>
<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
<disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='none'/><source file='$4/disk'/>
<target dev='vda' bus='virtio'/></disk>
<interface type='bridge'><source bridge='$BRIDGE'/><mac address='$2'/><model type='virtio'/>
<filterref filter='nova-instance-$1'><parameter name='IP' value='$3'/>
<parameter name='DHCPSERVER' value='$NET.1'/></filterref></interface>
<serial type='file'><source path='$4/console.log'/></serial><serial type='pty'/>
<rng model='virtio'><backend model='random'>/dev/urandom</backend></rng></devices></domain>
XML
    virsh -q start "$1"
}

up() {
    mkdir -p "$ROOT"
    bridge
    local number name mac
    for number in $(seq 1 "$COUNT"); do
        name=reference-$number mac=$(printf 'fa:16:3e:99:00:%02x' "$number")
        disk "$ROOT/$name"
        inject "$ROOT/$name" "$name"
        dhcp "$mac" "$name" "$NET.$((number + 1))"
        filter "$name"
        chains "$number" "$NET.$((number + 1))"
        domain "$name" "$mac" "$NET.$((number + 1))" "$ROOT/$name"
    done
    iptables -w -C FORWARD -j ref-local 2>/dev/null || iptables -w -I FORWARD -j ref-local
}

answer() {
    local number deadline=$((SECONDS + 120)) word
    for number in $(seq 1 "$COUNT"); do
        # shellcheck disable=SC2016  # the inner shell expands it
        until word=$(timeout 1 bash -c 'exec 3<>"/dev/tcp/$1/22" && read -rN 4 word <&3 && echo "$word"' - "$NET.$((number + 1))" 2>/dev/null) &&
            [[ $word == SSH- ]]; do
            ((SECONDS < deadline)) || exit 1
            sleep 0.1
        done
    done
}

down() {
    local number name
    for number in $(seq 1 "$COUNT"); do
        name=reference-$number
        virsh -q destroy "$name" || true
        virsh -q undefine "$name" || true
        virsh -q nwfilter-undefine "nova-instance-$name" || true
    done
    [ ! -e "$ROOT/dnsmasq.pid" ] || kill "$(cat "$ROOT/dnsmasq.pid")"
    iptables -w -D FORWARD -j ref-local || true
    local tool verb
    for tool in iptables ip6tables; do
        for verb in -F -X; do
            "$tool-save" -t filter | sed -n 's/^:\(ref-[^ ]*\) .*/\1/p' |
                while read -r chain; do "$tool" -w "$verb" "$chain"; done
        done
    done
    ip link delete "$BRIDGE" || true
    rm -rf "$ROOT"
}

"$ACTION"
