# Shared by the scripts of this folder: sourced, never run.
# shellcheck shell=bash
set -euo pipefail
umask 022
unset CDPATH

# Where this checkout is, and where what all checkouts of one user share is kept.
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cache=${ROLLOUTD_CACHE:-${XDG_CACHE_HOME:-${HOME:?is not set}/.cache}/rolloutd}
# shellcheck disable=SC2034 # Used by the scripts that source this.
tools=$checkout/.tools

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() {
  say "$*"
  exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

# lock DIR: waits until no other script works in DIR and keeps others out until this one ends.
# The kernel drops a flock with its last holder, so a killed script leaves nothing to clean up.
# Without flock the lock is a link that names its owner, because making a link is atomic.
lock() {
  mkdir -p "$1" || die "$1 can't be written to; make it writable, or set ROLLOUTD_CACHE if it is the cache"
  if has flock; then
    exec 9>>"$1/lock"
    flock -n 9 || {
      say "waiting for another script that works in $1"
      flock 9
    }
    return
  fi
  local owner
  until ln -s "$$" "$1/lock.pid" 2>/dev/null; do
    owner=$(readlink "$1/lock.pid" || true)
    if [ -n "$owner" ] && ! kill -0 "$owner" 2>/dev/null; then rm -f "$1/lock.pid"; else sleep 0.2; fi
  done
  # shellcheck disable=SC2064 # The path of today is meant, not the one at exit.
  trap "rm -f '$1/lock.pid'" EXIT
}

# stage PATH: makes an empty directory beside PATH, to be renamed to it once complete, and prints it.
# Call it under the lock: what killed scripts left there is removed.
stage() {
  rm -rf "$(dirname "$1")"/*.tmp.*
  mkdir -p "$1.tmp.$$"
  printf '%s\n' "$1.tmp.$$"
}

# recipe FILE [MORE]: a short name for what FILE builds; another recipe gets another name.
recipe() {
  { cat "$1" && printf '%s' "${2-}"; } | sha256sum | cut -c1-12
}

# quietly COMMAND...: shows the command's output only if it fails.
quietly() {
  local log
  log=$(mktemp)
  if "$@" >"$log" 2>&1; then
    rm -f "$log"
  else
    tail -n 15 "$log" >&2
    rm -f "$log"
    return 1
  fi
}

# apt_open NAME [SOURCE]: an apt state of our own, which needs no root and changes no system file.
# It reads the machine's package sources, or only SOURCE (a sources.list line), and assumes that
# nothing is installed, so that dependencies are resolved in full. Sets apt_conf and apt_debs.
apt_open() {
  has apt-get && has dpkg-deb || return 1
  local dir=$cache/apt/$1
  apt_conf=$dir/apt.conf
  apt_debs=$dir/archives
  mkdir -p "$dir/state/lists/partial" "$apt_debs/partial"
  : >"$dir/state/status"
  # The machine's update hooks clean system directories, which fails without root.
  cat >"$apt_conf" <<END
#clear APT::Update;
#clear DPkg;
#clear APT::Architectures;
APT::Architectures { "amd64"; };
APT::Sandbox::User "";
APT::Install-Recommends "false";
APT::Get::Assume-Yes "true";
Dir::State "$dir/state";
Dir::State::status "$dir/state/status";
Dir::Cache "$dir";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
END
  if [ $# -gt 1 ]; then
    printf '%s\n' "$2" >"$dir/sources.list"
    cat >>"$apt_conf" <<END
Dir::Etc::sourcelist "$dir/sources.list";
Dir::Etc::sourceparts "/dev/null";
END
  fi
  # One unreachable source of several is no reason to stop: a missing package is noticed later.
  apt_run apt-get update || true
}

apt_run() {
  local program=$1
  shift
  quietly "$program" -qq -c "$apt_conf" "$@"
}

# apt_fetch PACKAGE...: leaves the packages, without their dependencies, as files in $apt_debs.
apt_fetch() {
  rm -f "$apt_debs"/*.deb
  (cd "$apt_debs" && apt_run apt-get download "$@")
}

# apt_open_unstable: like apt_open, for Debian's unstable suite at the mirror that this machine uses.
# Call it after `apt_open own`; fails where the package sources name no Debian mirror.
apt_open_unstable() {
  local mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  # shellcheck disable=SC2016 # apt-get replaces it.
  mirror=$(apt-get -c "$apt_conf" indextargets --format '$(REPO_URI)' \
    'Origin: Debian' 'Label: Debian' 'Component: main' | sed -n 1p)
  [ -n "$mirror" ] || return 1
  [ -e "$keyring" ] || keyring=
  apt_open unstable "deb ${keyring:+[signed-by=$keyring] }$mirror unstable main"
}

# unpack DEB DIR [TAR OPTION...]: like dpkg -x, but follows a linked /bin or /lib and gives every
# file to us.
unpack() {
  local deb=$1 dir=$2
  shift 2
  dpkg-deb --fsys-tarfile "$deb" |
    tar -x --keep-directory-symlink --no-same-owner "$@" -C "$dir"
}
