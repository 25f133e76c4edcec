#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages, looks at them with lintian, and uses them in a new Debian 12 that has nothing else.
#   scripts/debian.sh             the packages come into build/debian
#   scripts/debian.sh --wheels    uses what scripts/wheels.sh made, too: the wheel of Python 3.11 there, that of later ones in Debian 13
#   scripts/debian.sh --arm64     those for arm64 as well, cross-built in a new Debian 12
# What is for arm64 is used where the kernel can give its programs to qemu (binfmt_misc).
# DEB_BUILD_OPTIONS=nocheck leaves the conformance tests out. Needs the packages of scripts/packages.txt, an archive of Debian
# for apt, a package index for pip unless build/wheelhouse is there, and root or user namespaces for the new systems.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/build/debian
source=$out/sealpoint
tools=$out/python
use=$out/use
binfmt=/proc/sys/fs/binfmt_misc

# What Debian 12 lacks to build the Python package, for its own interpreter.
make_python_tools() {
  [ ! -d "$tools" ] || return 0
  local from=()
  [ ! -d build/wheelhouse ] || from=(--no-index --find-links build/wheelhouse)
  /usr/bin/python3 -m venv "$out/venv"
  grep -E '^(nanobind|scikit-build-core)==' python/requirements.txt |
    xargs "$out/venv/bin/pip" install --quiet --disable-pip-version-check "${from[@]}" --target "$tools"
}

# A copy of what git knows: nothing is written among the sources.
copy_sources() {
  rm -rf "$1"
  mkdir -p "$1"
  git ls-files -z | xargs -0 cp --parents -t "$1"
}

build_packages() {
  rm -f "$out"/*.{deb,changes,buildinfo}
  copy_sources "$source"
  (
    cd "$source"
    export DEB_BUILD_OPTIONS="parallel=$(nproc) ${DEB_BUILD_OPTIONS:-}" PYTHONPATH=$tools
    export CCACHE_DIR=${CCACHE_DIR:-$HOME/.cache/ccache} CCACHE_BASEDIR=$source  # debhelper takes HOME away
    dpkg-buildpackage -us -uc -b
  )
  lintian --fail-on error "$out"/*.changes
}

# in_new_system SUITE [OPTION...]: makes a minimal system with the folder $use as /use, runs what standard input says in it, and
# removes it. The options are mmdebstrap's.
in_new_system() {
  local suite=$1
  shift
  { echo 'export DEBIAN_FRONTEND=noninteractive; install="apt-get -q install -y --no-install-recommends"'; cat; } >"$use/run"
  mmdebstrap --quiet --variant=apt --format=null --customize-hook="copy-in $use /" \
    --customize-hook='chroot "$1" sh -eux /use/run' "$@" "$suite" /dev/null
}

# Where Debian has not arranged for it, the kernel gives programs for arm64 to qemu for as long as this script runs.
runs_arm64() {
  [ ! -e "$binfmt/qemu-aarch64" ] || return 0
  local undo="echo -1 >$binfmt/qemu-aarch64"
  if [ ! -e "$binfmt/register" ] && mount -t binfmt_misc binfmt_misc "$binfmt" 2>/dev/null; then
    undo="$undo; umount $binfmt"
  fi
  if cat /usr/lib/binfmt.d/qemu-aarch64.conf 2>/dev/null >"$binfmt/register"; then
    # shellcheck disable=SC2064  # the value of now
    trap "$undo" EXIT
    return 0
  fi
  echo "What is for arm64 is not used: the kernel takes no qemu-aarch64 in $binfmt."
  return 1
}

# With a stub of the Python module from the packages for this processor.
build_arm64() {
  rm -rf "$use"
  copy_sources "$use/sealpoint"
  cp -r "$tools" "$source"/obj-*/python/sealpoint/_sealpoint.pyi "$use"
  in_new_system bookworm --architectures=amd64,arm64 "--customize-hook=sync-out /use/packages $out" <<'COMMANDS'
cd /use/sealpoint
$install crossbuild-essential-arm64 qemu-user-static
apt-get -q build-dep -y --no-install-recommends -aarm64 -Pcross,nocheck .
export DEB_BUILD_OPTIONS="parallel=$(nproc) nocheck" PYTHONPATH=/use/python SEALPOINT_PYTHON_STUB=/use/_sealpoint.pyi
dpkg-buildpackage -aarm64 -Pcross,nocheck -us -uc -b
mkdir /use/packages
mv /use/*.deb /use/packages
COMMANDS
}

# Each test of debian/tests, tools before programs, with what it says that it needs and nothing else.
use_packages() {  # architecture
  rm -rf "$use"
  mkdir "$use"
  cp -r "$out"/*_"$1".deb "$source/debian" "$source/tests" "$use"
  (cd "$use" && dpkg-scanpackages . >Packages 2>scan.log)
  in_new_system bookworm --architectures="$1" <<'COMMANDS'
cd /use
echo 'deb [trusted=yes] file:/use ./' >/etc/apt/sources.list.d/sealpoint.list
apt-get -q update
for test in $(sed -n 's/^Tests: //p' debian/tests/control); do
  $install $(sed -n "/^Tests: $test$/{n;s/^Depends: //;s/,//gp}" debian/tests/control)
  debian/tests/$test
done
COMMANDS
}

use_wheel() {  # suite, architecture, wheel
  [ -e "$3" ] || { echo "There is no $3: run scripts/wheels.sh, with that Python."; return 1; }
  rm -rf "$use"
  mkdir "$use"
  cp "$3" "$use"
  in_new_system "$1" --architectures="$2" <<'COMMANDS'
$install python3-venv
python3 -m venv /venv
/venv/bin/pip install --no-index /use/*.whl
cd /tmp
/venv/bin/python -c 'import sealpoint; sealpoint.save({"w": b"abcd"}, "checkpoint")'
/venv/bin/ckpt verify checkpoint
/venv/bin/ckpt convert checkpoint model.safetensors
/venv/bin/python -c '
import sealpoint
assert bytes(sealpoint.open("checkpoint")["w"].tobytes()) == b"abcd"
assert open("model.safetensors", "rb").read().endswith(b"abcd")'
COMMANDS
}

case ${1:-} in
  '' | --wheels | --arm64) ;;
  *)
    sed -n '3,10s/^# *//p' scripts/debian.sh
    [[ $1 = -h || $1 = --help ]]
    exit
    ;;
esac
mkdir -p "$out"
make_python_tools
build_packages
use_packages "$(dpkg --print-architecture)"
if [ "${1:-}" = --wheels ]; then
  use_wheel bookworm amd64 build/wheels/sealpoint-*-cp311-*x86_64.whl
  use_wheel trixie amd64 build/wheels/sealpoint-*-abi3-*x86_64.whl
  if runs_arm64; then
    use_wheel bookworm arm64 build/wheels/sealpoint-*-cp311-*aarch64.whl
    use_wheel trixie arm64 build/wheels/sealpoint-*-abi3-*aarch64.whl
  fi
elif [ "${1:-}" = --arm64 ]; then
  build_arm64
  if runs_arm64; then use_packages arm64; fi
fi
ls -l "$out"/*.deb
