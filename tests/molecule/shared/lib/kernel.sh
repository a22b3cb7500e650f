# shellcheck shell=bash
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
#
# Debian's cloud kernel, which virtual machines run whatever kernel this machine has, and a ramdisk for it.

# The newest one's version; nothing when there is none.
cloud_kernel() {
  local modules
  modules=$(printf '%s\n' /lib/modules/*-cloud-amd64 | sort -V | tail -n 1)
  [[ ! -r /boot/vmlinuz-${modules##*/} ]] || echo "${modules##*/}"
}

# make_ramdisk FILE KERNEL INIT MODULE...: busybox, INIT as /init, and the modules in /modules, numbered in the order
# in which modprobe would load them. Debian 13 has them compressed, which busybox does not load.
make_ramdisk() {
  local file=$1 kernel=$2 init=$3 tree number=10 module path name
  shift 3
  tree=$(mktemp -d "$file.XXXXXX")
  mkdir -p "$tree"/{bin,proc,sys,dev,newroot,modules,lower,disk}
  cp "$(command -v busybox)" "$tree/bin/busybox"
  install -m 755 "$init" "$tree/init"
  for module in "$@"; do
    while read -r path; do
      name=$(basename "$path" .xz)
      ! compgen -G "$tree/modules/*-$name" >/dev/null || continue
      xz --decompress --stdout --force "$path" >"$tree/modules/$number-$name"
      number=$((number + 1))
    done < <(modprobe -S "$kernel" --show-depends "$module" | awk '$1 == "insmod" { print $2 }')
  done
  (cd "$tree" && find . | sort | cpio -o -H newc -R 0:0 --quiet | gzip -n -1) >"$file.new"
  rm -rf "$tree"
  mv "$file.new" "$file"
}
