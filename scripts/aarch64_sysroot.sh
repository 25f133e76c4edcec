#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes build/aarch64-sysroot: the headers and libraries of scripts/packages.txt from Debian 12 for arm64, and its Python with
# packages of python/requirements.txt, unpacked and not installed. The preset aarch64 compiles with them, and qemu runs programs
# with them; build/aarch64-sysroot/usr/bin/python is that Python. Does nothing if it is there already.
# Needs mmdebstrap, an archive of Debian and a package index for pip; changes nothing outside build/. Exit status 77: the archive
# cannot be reached.
set -euo pipefail
cd "$(dirname "$0")/.."
sysroot=$PWD/build/aarch64-sysroot

packages=$(grep -E '^(lib|nlohmann|python3).*-dev$' scripts/packages.txt | grep -v clang)
python_packages=$(grep -E '^(nanobind|numpy|ml_dtypes|pytest)==' python/requirements.txt)
stamp=$(cat - "$0" <<<"$packages $python_packages" | sha256sum)
[ "$stamp" != "$(cat "$sysroot/stamp" 2>/dev/null)" ] || exit 0

rm -rf "$sysroot" "$sysroot.part"
mmdebstrap --quiet --variant=extract --architectures=arm64 --include="${packages//$'\n'/,}" bookworm "$sysroot.part" || {
  echo "No sysroot for aarch64: the archive of Debian gave no packages." >&2
  exit 77
}
# Absolute links would lead to the libraries of this machine.
find "$sysroot.part" -type l -lname '/*' -printf '%p %l\n' | while read -r link target; do
  ln -sfnr "$sysroot.part$target" "$link"
done

python3 -m venv "$sysroot.part/venv"
# shellcheck disable=SC2086  # a list of words
"$sysroot.part/venv/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: --python-version 3.11 --implementation cp \
  --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux2014_aarch64 \
  --target "$sysroot.part/usr/lib/python3/dist-packages" $python_packages
rm -r "$sysroot.part/venv"
# By the name that sys.executable then is, so that it starts itself again.
printf '#!/bin/sh\nexec qemu-aarch64-static -L %s -0 "$0" %s/usr/bin/python3.11 "$@"\n' "$sysroot" "$sysroot" \
  >"$sysroot.part/usr/bin/python"
chmod +x "$sysroot.part/usr/bin/python"
echo "$stamp" >"$sysroot.part/stamp"
mv "$sysroot.part" "$sysroot"
echo "Sysroot for aarch64: $(wc -w <<<"$packages $python_packages") packages and what they need, in $sysroot."
