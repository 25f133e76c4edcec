#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the site of the documentation: pages of docs/ and spec/, and a reference of the public names of Python, C++ and C.
#   scripts/site.sh     build/site/html, to be opened from the disk or served as files; it loads nothing from elsewhere
# Fails for a dead link, and for a public name without an entry. Types of the native module are described if the stage python has
# built the package. What python/requirements-site.txt pins is installed once into build/site/venv, for which pip needs its index.
# PYTHON names another interpreter (3.11 or later) than python3.
set -euo pipefail
cd "$(dirname "$0")/.."
site=build/site
venv=$site/venv
python=${PYTHON:-python3}

mkdir -p "$site"
stamp=$({ "$python" --version; cat python/requirements-site.txt; } | sha256sum)
if [ "$stamp" != "$(cat "$venv/stamp" 2>/dev/null || true)" ]; then
  rm -rf "$venv"
  "$python" -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: -r python/requirements-site.txt
  echo "$stamp" >"$venv/stamp"
fi

rm -rf "$site/doxygen" && mkdir "$site/doxygen"
doxygen scripts/site/Doxyfile
"$venv/bin/python" scripts/site/pages.py "$site"
# Not the advertisement that the theme prints. With --quiet MkDocs would count no warnings.
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --strict --config-file "$site/mkdocs.yml"
"$venv/bin/python" scripts/site/check.py "$site/html"
