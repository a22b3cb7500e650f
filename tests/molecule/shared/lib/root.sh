# shellcheck shell=bash
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
#
# A hypervisor's root file system, built in one tmpfs out of this machine's system directories (or another system's, where
# `up --root` names its tree). Runs as pid 1 of
# the hypervisor's namespaces: all mounts are private to them and vanish with them.
# Reads NAME, STATE, DISK_GIB, SHARED; sets CHECKOUT, TMPFS, ROOT, LOGIN, SYSTEM.

root_make() {
  CHECKOUT=$(readlink -f "$SHARED/../../..")
  # shellcheck disable=SC2153  # NAME: an argument of whoever includes this
  LOGIN=$(awk -v name="$NAME" '$1 == name { print $3 }' "$STATE/hosts")
  TMPFS=$STATE/$NAME.mnt
  ROOT=$TMPFS/root
  SYSTEM=$(cat "$STATE/$NAME.root" 2>/dev/null || true) # empty: this machine
  mount --make-rprivate /
  mount -t tmpfs -o "mode=755,size=${DISK_GIB}G" novalite-lab "$TMPFS"
  system_directories
  own_directories
  identity
  ssh_access
  modular_libvirt
  libvirt_stand_in
}

# libvirt's modular daemons in place of libvirtd, where `up --modular` asked for them
modular_libvirt() {
  [[ ! -s $STATE/$NAME.modular ]] || install -m 755 "$(<"$STATE/$NAME.modular")"/virt*d "$ROOT/usr/sbin/"
}

# a module in place of libvirt's binding, where `up --libvirt` asked for it: Debian's Python looks there first
libvirt_stand_in() {
  [[ -e $STATE/$NAME.libvirt ]] || return 0
  local first
  first=$(/usr/bin/python3 -c 'import site; print(site.getsitepackages()[0])')
  install -D -m 644 "$STATE/$NAME.libvirt" "$ROOT$first/libvirt.py"
  : >"$ROOT/run/hypervisor/no-libvirt"
}

# Only the system's own directories are taken from this machine; what else lies in / (/root, /home, /srv, a
# checkout ...) does not exist here. Upper layers lie in the tmpfs: lower and upper on one file system overlap.
system_directories() {
  local path name
  mkdir -p "$TMPFS"/{upper,work,root,own}
  mount --bind "$ROOT" "$ROOT" # pivot_root wants a mount point
  for path in /bin /boot /etc /lib /lib32 /lib64 /libx32 /sbin /usr /var; do
    name=${path#/}
    if [[ -L $SYSTEM$path ]]; then
      cp -P "$SYSTEM$path" "$ROOT$path"
    elif [[ -d $SYSTEM$path ]]; then
      mkdir -p "$TMPFS"/{upper,work}/"$name" "$ROOT$path"
      mount -t overlay overlay -o "lowerdir=$SYSTEM$path,upperdir=$TMPFS/upper/$name,workdir=$TMPFS/work/$name" "$ROOT$path"
    fi
  done
  mkdir -p "$ROOT"/{dev,home,media,mnt,opt,proc,run,srv/shared,sys}
  install -d -m 700 "$ROOT/root" "$ROOT/root/.ssh"
  install -d -m 1777 "$ROOT/tmp"
}

# own PATH [MODE]: an empty directory of this hypervisor in place of the machine's.
own() {
  install -d -m "${2:-755}" "$TMPFS/own$1"
  mkdir -p "$ROOT$1"
  mount --bind "$TMPFS/own$1" "$ROOT$1"
}

own_directories() {
  local path
  for path in /usr/local /var/lib/libvirt /var/lib/novalite /var/log /var/cache/libvirt /var/spool \
    /etc/libvirt/qemu /etc/libvirt/storage /etc/libvirt/secrets /etc/libvirt/hooks /etc/ssh; do
    own "$path"
  done
  own /var/tmp 1777
  for path in "$CHECKOUT" "$STATE"; do
    [[ ! -d $ROOT$path ]] || own "$path"
  done
  mkdir -p "$ROOT"/var/lib/libvirt/{boot,dnsmasq,images,network,qemu} "$ROOT"/var/log/libvirt/qemu \
    "$ROOT"/etc/libvirt/qemu/networks "$ROOT"/run/{lock,sshd,user,hypervisor}
  touch "$ROOT"/var/log/lastlog
  chmod 1777 "$ROOT/run/lock" # as Debian's: what root keeps there, others can have put there
  chmod 711 "$ROOT"/var/lib/libvirt/{boot,images}
  chmod 700 "$ROOT"/var/log/libvirt
  chown --reference="$SYSTEM/var/lib/libvirt/qemu" "$ROOT/var/lib/libvirt/qemu"
}

identity() {
  local daemon
  # without this all hypervisors have the DMI's uuid, and libvirt takes them for one
  rm -f "$ROOT/etc/machine-id"
  tr -d - </proc/sys/kernel/random/uuid >"$ROOT/etc/machine-id"
  for daemon in libvirtd virtqemud; do
    echo 'host_uuid_source = "machine-id"' >>"$ROOT/etc/libvirt/$daemon.conf"
  done
  echo "$NAME" >"$ROOT/etc/hostname"
  cp "$STATE/etc-hosts" "$ROOT/etc/hosts"
  rm -f "$ROOT/etc/resolv.conf"
  : >"$ROOT/etc/resolv.conf"
}

# user NAME HASH [GROUP]: somebody with a home whom the lab's key lets in. HASH is of the password, `*` for none.
user() {
  useradd --root "$ROOT" --create-home --user-group --groups "${3:-}" --shell /bin/bash --key UID_MIN=2000 "$1"
  chpasswd --root "$ROOT" --encrypted <<<"$1:$2"
  install -d -m 700 "$ROOT/home/$1/.ssh"
  install -m 600 "$STATE/id_ed25519.pub" "$ROOT/home/$1/.ssh/authorized_keys"
  chown -R --reference="$ROOT/home/$1" "$ROOT/home/$1/.ssh"
}

# Who logs in: root, or somebody who has sudo and a password, as on most hosts that people look after.
login() {
  local root_login=prohibit-password
  if [[ $LOGIN == root ]]; then
    install -m 600 "$STATE/id_ed25519.pub" "$ROOT/root/.ssh/authorized_keys"
  else
    root_login=no
    user "$LOGIN" "$(openssl passwd -6 -stdin <"$STATE/$NAME.password")" sudo
    # as installers leave it that ask for no password of root's
    sed -i 's/^root:[^:]*:/root:!:/' "$ROOT/etc/shadow"
  fi
  echo "PermitRootLogin $root_login" >>"$ROOT/etc/ssh/sshd_config"
}

ssh_access() {
  install -m 600 "$STATE/$NAME.hostkey" "$ROOT/etc/ssh/ssh_host_ed25519_key"
  install -m 644 "$STATE/$NAME.hostkey.pub" "$ROOT/etc/ssh/ssh_host_ed25519_key.pub"
  # Without PAM sshd refuses an account whose password field begins with "!".
  sed -i 's/^root:[^:]*:/root:*:/' "$ROOT/etc/shadow"
  cat >"$ROOT/etc/ssh/sshd_config" <<'CONFIG'
HostKey /etc/ssh/ssh_host_ed25519_key
PidFile none
UsePAM no
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
AcceptEnv LANG LC_*
MaxStartups 100
MaxSessions 100
Subsystem sftp internal-sftp
CONFIG
  [[ ! -s $STATE/$NAME.port ]] || echo "Port $(<"$STATE/$NAME.port")" >>"$ROOT/etc/ssh/sshd_config"
  login
}
