# shellcheck shell=bash
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
#
# The Ansible inventory of a lab.

# inventory_write FILE: all hypervisors of the lab in group GROUP (virtual machines: in `virtual`, which `compute` has
# as a child, so that both kinds fit in one inventory); replaces FILE only when it differs.
inventory_write() {
  local file=$1 name
  mkdir -p "$(dirname "$file")"
  {
    cat <<YAML
# Written by tests/molecule/shared/$TOOL, removed by its \`down\`. Do not edit.
$GROUP:
  vars:
    ansible_user: root
    ansible_python_interpreter: /usr/bin/python3
    ansible_ssh_private_key_file: $STATE/id_ed25519
    ansible_ssh_common_args: >-
      -o UserKnownHostsFile=$STATE/known_hosts -o GlobalKnownHostsFile=/dev/null
      -o StrictHostKeyChecking=yes -o IdentitiesOnly=yes
    ansible_control_path_dir: $CONTROL_PATHS
    # for raw: with a terminal, what it says is mixed with what sshd says
    ansible_ssh_use_tty: false
    novalite_zone: nova
  hosts:
YAML
    for name in $(lab_hosts); do
      cat <<YAML
    $name:
      ansible_host: $(host_address "$name")
      novalite_bridge_interface: eth1
YAML
      [[ ! -s $STATE/$name.port ]] || echo "      ansible_port: $(host_port "$name")"
      [[ $(host_login "$name") == root ]] || cat <<YAML
      ansible_user: $(host_login "$name")
      ansible_become: true
      compute_node_reach_users: [$(host_login "$name")]
      ansible_become_password: "{{ lookup('ansible.builtin.file', '$STATE/$name.password') }}"
YAML
    done
    [[ $GROUP == compute ]] || printf 'compute:\n  children:\n    %s:\n' "$GROUP"
  } >"$file.new"
  if cmp -s "$file.new" "$file"; then rm "$file.new"; else mv "$file.new" "$file"; fi
  grep -qxF -- "$file" "$STATE/inventory" 2>/dev/null || echo "$file" >>"$STATE/inventory"
}
