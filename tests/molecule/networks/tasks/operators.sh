#!/bin/sh
# operators.sh make|show|remove: bridges of an operator's on a hypervisor, one with an uplink and an address, one empty.
set -eu

case $1 in
  make)
    ip link add up0 type veth peer name up0-far
    ip link add br140 type bridge stp_state 0 priority 4096 ageing_time 12300
    ip link add brop type bridge
    ip link set up0 master br140
    for device in up0 up0-far br140 brop; do ip link set "$device" up; done
    ip addr add 198.51.100.1/24 dev br140
    ;;
  show) # all that can be seen of them, without what only time changes
    for device in up0 br140 brop; do
      ip -d addr show dev "$device"
    done | sed -E 's/[a-z_]+_timer +[0-9.]+//g; s/valid_lft .*//; s/ tentative//'
    ip route show dev br140
    sysctl -a 2>/dev/null | grep -E '^net\.(bridge|ipv[46]\.(ip_forward|conf\.(all|default|eth[01]|up0|br140|brop)))' \
      | grep -v -E 'stable_secret|mc_forwarding'
    ;;
  remove)
    ip link del up0
    ip link del br140
    ip link del brop
    ;;
esac
