#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what scripts/packages.txt lists and this machine lacks. Needs no network if nothing is missing.
set -eu
list=$(dirname "$0")/packages.txt

if ! command -v apt-get >/dev/null 2>&1; then
  echo "No apt-get here. Install the equivalents of these packages yourself, then build:" >&2
  grep -v '^#' "$list" | xargs >&2
  exit 1
fi

missing=
for package in $(grep -v '^#' "$list"); do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
  echo "Packages: all that scripts/packages.txt lists are installed."
  exit 0
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "Run as root: apt-get install$missing" >&2
    exit 1
  fi
  as_root=sudo
fi
echo "Packages: installing$missing"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get -q update
# shellcheck disable=SC2086  # a list of words
$as_root apt-get -q install -y --no-install-recommends $missing
