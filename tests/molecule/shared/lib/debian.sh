# shellcheck shell=bash
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
#
# Systems of Debian's own packages, from the mirrors that this machine's apt uses. In: $WORK, a directory to work in.

# install_packages TREE PACKAGE,...
install_packages() {
  # the same mirrors as the machine's, in the form that every apt reads
  # shellcheck disable=SC2016  # for apt
  apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
    'Created-By: Packages' 'Origin: Debian' 'Component: main' | sort -u >"$WORK/sources.list"
  [[ -s $WORK/sources.list ]] || die "apt knows no Debian mirror: run apt-get update"
  # unsafe-io: whoever loses power builds it anew
  mmdebstrap --quiet --mode=root --variant=minbase --include="$2" --aptopt='Acquire::Languages "none"' --dpkgopt=force-unsafe-io \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/i18n/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$1" "$WORK/sources.list" >"$WORK/log" 2>&1 || {
    tail -n 30 "$WORK/log" >&2
    die "mmdebstrap failed"
  }
}
