#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages, looks at them with lintian, and uses them in a new Debian 12 that has nothing else.
#   scripts/debian.sh             the packages come into build/debian
#   scripts/debian.sh --wheels    uses what scripts/wheels.sh made, too: the wheel of Python 3.11 there, that of later ones in Debian 13
# DEB_BUILD_OPTIONS=nocheck leaves the conformance tests out. Needs the packages of scripts/packages.txt, an archive of Debian
# for apt, a package index for pip unless build/wheelhouse is there, and root or user namespaces for the new systems.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/build/debian
source=$out/sealpoint
tools=$out/python
use=$out/use

# What Debian 12 lacks to build the Python package, for its own interpreter.
make_python_tools() {
  [ ! -d "$tools" ] || return 0
  local from=()
  [ ! -d build/wheelhouse ] || from=(--no-index --find-links build/wheelhouse)
  /usr/bin/python3 -m venv "$out/venv"
  grep -E '^(nanobind|scikit-build-core)==' python/requirements.txt |
    xargs "$out/venv/bin/pip" install --quiet --disable-pip-version-check "${from[@]}" --target "$tools"
}

# From a copy of what git knows: nothing is written among the sources.
build_packages() {
  rm -rf "$source" "$out"/*.{deb,changes,buildinfo}
  mkdir -p "$source"
  git ls-files -z | xargs -0 cp --parents -t "$source"
  (
    cd "$source"
    export DEB_BUILD_OPTIONS="parallel=$(nproc) ${DEB_BUILD_OPTIONS:-}" PYTHONPATH=$tools
    export CCACHE_DIR=${CCACHE_DIR:-$HOME/.cache/ccache} CCACHE_BASEDIR=$source  # debhelper takes HOME away
    dpkg-buildpackage -us -uc -b
  )
  lintian --fail-on error "$out"/*.changes
}

# in_new_system SUITE: makes a minimal system with the folder $use as /use, runs what standard input says in it, and removes it.
in_new_system() {
  { echo 'export DEBIAN_FRONTEND=noninteractive; install="apt-get -q install -y --no-install-recommends"'; cat; } >"$use/run"
  mmdebstrap --quiet --variant=apt --format=null --customize-hook="copy-in $use /" \
    --customize-hook='chroot "$1" sh -eux /use/run' "$1" /dev/null
}

# Each test of debian/tests, tools before programs, with what it says that it needs and nothing else.
use_packages() {
  rm -rf "$use"
  mkdir "$use"
  cp -r "$out"/*.deb "$source/debian" "$source/tests" "$use"
  (cd "$use" && dpkg-scanpackages . >Packages 2>scan.log)
  in_new_system bookworm <<'COMMANDS'
cd /use
echo 'deb [trusted=yes] file:/use ./' >/etc/apt/sources.list.d/sealpoint.list
apt-get -q update
for test in $(sed -n 's/^Tests: //p' debian/tests/control); do
  $install $(sed -n "/^Tests: $test$/{n;s/^Depends: //;s/,//gp}" debian/tests/control)
  debian/tests/$test
done
COMMANDS
}

use_wheel() {  # suite, wheel
  [ -e "$2" ] || { echo "There is no $2: run scripts/wheels.sh, with that Python."; return 1; }
  rm -rf "$use"
  mkdir "$use"
  cp "$2" "$use"
  in_new_system "$1" <<'COMMANDS'
$install python3-venv
python3 -m venv /venv
/venv/bin/pip install --no-index /use/*.whl
cd /tmp
/venv/bin/python -c 'import sealpoint; sealpoint.save({"w": b"abcd"}, "checkpoint")'
/venv/bin/ckpt verify checkpoint
COMMANDS
}

case ${1:-} in
  '' | --wheels) ;;
  *)
    sed -n '3,8s/^# *//p' scripts/debian.sh
    [[ $1 = -h || $1 = --help ]]
    exit
    ;;
esac
mkdir -p "$out"
make_python_tools
build_packages
use_packages
if [ "${1:-}" = --wheels ]; then
  use_wheel bookworm build/wheels/sealpoint-*-cp311-*.whl
  use_wheel trixie build/wheels/sealpoint-*-abi3-*.whl
fi
ls -l "$out"/*.deb
