#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests the Python package on CPython 3.13 without the GIL. Debian packages no such interpreter, so this builds one from the
# source package of Debian 13; then it compiles the extension for it and runs the tests that need no torch.
#   scripts/free_threaded.sh                 all of it
#   scripts/free_threaded.sh --interpreter   only build/free-threaded/bin/python3.13t, which scripts/wheels.sh takes
# Needs the packages of scripts/packages.txt, an archive of Debian and a package index for pip; changes nothing outside build/.
# Exit status 77: the archive cannot be reached.
set -euo pipefail
cd "$(dirname "$0")/.."
place=$PWD/build/free-threaded
python=$place/bin/python3.13t
venv=$place/venv
# Beside build/python, so that the compiler cache has the objects of the library.
build=$PWD/build/python3.13t

# Only the part of apt's configuration that names this archive: the machine's own lists stay as they are.
download_sources() {
  local apt=$place/apt key=/usr/share/keyrings/debian-archive-keyring.gpg
  mkdir -p "$apt"/{lists,cache}
  echo "deb-src [signed-by=$key] http://deb.debian.org/debian trixie main" >"$apt/sources.list"
  printf '%s "%s";\n' Dir::State::Lists "$apt/lists" Dir::Cache "$apt/cache" Dir::Etc::SourceList "$apt/sources.list" \
    Dir::Etc::SourceParts /dev/null Dir::State::Status /dev/null APT::Sandbox::User "$(id -un)" >"$apt/apt.conf"
  export APT_CONFIG=$apt/apt.conf
  { apt-get -qq update && (cd "$apt" && apt-get -qq source --download-only python3.13); } || {
    echo "No interpreter without the GIL: the archive of Debian gave no sources." >&2
    exit 77
  }
}

make_interpreter() {
  [ ! -x "$python" ] || return 0
  rm -rf "$place"
  download_sources
  tar -xJf "$place"/apt/python3.13_*.orig.tar.xz -C "$place"
  (
    cd "$place"/Python-3.13*
    ./configure --quiet --disable-gil --prefix="$place" >"$place/configure.log"
    make -j "$(nproc)" >"$place/make.log" 2>&1
    make altinstall >"$place/install.log" 2>&1
  )
  rm -rf "$place"/Python-3.13*
}

# Versions as pinned, but for ml_dtypes: 0.5.4 is the last one for this interpreter. The pip is that of another interpreter.
make_environment() {
  [ ! -x "$venv/bin/python" ] || return 0
  rm -rf "$venv.part" "$place/pip"
  "$python" -m venv --without-pip "$venv.part"
  python3 -m venv "$place/pip"
  grep -E '^(nanobind|numpy|pytest)==' python/requirements.txt |
    xargs "$place/pip/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: --python-version 3.13 \
      --implementation cp --abi cp313t --platform "manylinux_2_28_$(uname -m)" --platform "manylinux_2_27_$(uname -m)" \
      --target "$venv.part/lib/python3.13t/site-packages" ml_dtypes==0.5.4
  mv "$venv.part" "$venv"
}

case ${1:-} in
  '' | --interpreter) ;;
  *)
    sed -n '3,9s/^# *//p' "$0"
    [[ $1 = -h || $1 = --help ]]
    exit
    ;;
esac
make_interpreter
[ -z "${1:-}" ] || exit 0
make_environment
cmake --preset python -B "$build" -D Python_EXECUTABLE="$venv/bin/python"
cmake --build "$build" --target sealpoint_python ckpt
# In one process: this interpreter yields at each class that it makes, so that imports take long on a busy machine.
PYTHONPATH=$build/python SEALPOINT_SOURCE_DIR=$PWD SEALPOINT_BINARY_DIR=$build PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0 \
  "$venv/bin/python" -m pytest -q -ra -p no:cacheprovider -k "not path_takers" \
  tests/python/test_{threads,arguments,command,damage,dlpack,errors,interrupt,mapped,pickle,places,promote,read,repack,save}.py
