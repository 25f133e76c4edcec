#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Saves, verifies, loads and prunes over NFS, in a guest kernel that is server and client. Build first (preset check).
#   scripts/nfs.sh             the kernel's server and nfs-ganesha, each with NFS 3, 4.0, 4.1 and 4.2
#   scripts/nfs.sh RUN...      some of: knfsd-3 knfsd-4.0 knfsd-4.1 knfsd-4.2 and ganesha-3 to ganesha-4.2
# BUILD=path names another build folder; ACCEL=kvm is faster than the emulation, which takes half an hour, if it works.
# Wants Debian's packages by apt-get: qemu-system-x86 is installed if root runs this, kernel and servers are unpacked in
# build/nfs. Prints what each step of tests/system/nfs_guest.sh came to. Exit status: 1 if one is WRONG, 77 if the
# machine does not allow it.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${BUILD:-build/check}
work=$PWD/build/nfs
root=$work/root
seconds=${SECONDS_MAX:-3000}
servers=(nfs-kernel-server nfs-common nfs-ganesha nfs-ganesha-vfs rpcbind)
probe=$build/tests/system/system_save_probe
ckpt=$build/tools/ckpt/ckpt

skip() {
  echo "skipped: $1"
  exit 77
}

# What Debian has of these packages and this machine lacks, unpacked.
unpack_packages() {
  mkdir -p "$work/archives/partial"
  apt-get -q install -y --no-install-recommends --download-only -o Dir::Cache::archives="$work/archives" \
    "${servers[@]}" linux-image-cloud-amd64 busybox-static kmod libtirpc-common >"$work/apt.log" 2>&1 ||
    skip "apt-get has not all packages ($work/apt.log)"
  local archive
  rm -rf "$work/unpacked"
  for archive in "$work"/archives/*.deb; do dpkg-deb -x "$archive" "$work/unpacked"; done
}

# A program or library, and what it links.
put() {
  local file=$1 one
  mkdir -p "$root/$(dirname "$file")"
  for one in "$work/unpacked/$file" "$file"; do
    if [ -e "$one" ]; then break; fi
  done
  cp -L "$one" "$root/$file"
  put_libraries "$one"
}

put_libraries() {
  local library
  for library in $(LD_LIBRARY_PATH="$libraries" ldd "$1" | grep -o '/[^ ]*'); do
    mkdir -p "$root/lib/x86_64-linux-gnu" "$root/lib64"
    case $library in
      */ld-linux*) cp -L "$library" "$root/lib64/" ;;
      *) cp -L "$library" "$root/lib/x86_64-linux-gnu/" ;;
    esac
  done
}

make_root() {
  rm -rf "$root"
  mkdir -p "$root"/{bin,sbin,etc,proc,sys,dev,run,tmp,var/lib/nfs/v4recovery,var/lib/nfs/ganesha,var/log/ganesha}
  mkdir -p "$root/usr/lib/x86_64-linux-gnu"
  local busybox program
  busybox=$work/unpacked/bin/busybox
  for program in $("$busybox" --list); do ln -s busybox "$root/bin/$program"; done
  cp --remove-destination "$busybox" "$root/bin/busybox"
  for program in rpcbind rpc.mountd rpc.nfsd exportfs mount.nfs ganesha.nfsd; do
    program=$(cd "$work/unpacked" && find . -path "*bin/$program" -type f)
    put "${program#./}"
    ln -sf "/${program#./}" "$root/bin/$(basename "$program")"
  done
  cp "$probe" "$ckpt" "$root/bin/"
  put_libraries "$probe"
  put_libraries "$ckpt"
  cp -r "$work"/unpacked/usr/lib/*/{ganesha,libnfsidmap} "$root/usr/lib/x86_64-linux-gnu/"
  for program in "$root"/usr/lib/x86_64-linux-gnu/ganesha/*.so; do put_libraries "$program"; done
  cp tests/system/nfs_guest.sh "$root/init"
  write_settings
}

write_settings() {
  cp "$work/unpacked/etc/netconfig" "$root/etc/" 2>/dev/null || cp /etc/netconfig "$root/etc/"
  printf '%s\n' 'root:x:0:0::/:/bin/sh' '_rpc:x:100:65534::/run:/bin/false' >"$root/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
  printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
  printf '[General]\nDomain = localdomain\n[Translation]\nMethod = nsswitch\n' >"$root/etc/idmapd.conf"
  ln -s /proc/self/mounts "$root/etc/mtab"
  printf 'tcp 6 TCP\nudp 17 UDP\n' >"$root/etc/protocols"
  printf 'sunrpc 111/tcp portmapper\nsunrpc 111/udp portmapper\nnfs 2049/tcp\n' >"$root/etc/services"
  printf '%s: files\n' passwd group hosts services protocols >"$root/etc/nsswitch.conf"
  cat >"$root/etc/ganesha.conf" <<'SETTINGS'
NFS_CORE_PARAM { Protocols = 3, 4; Enable_UDP = false; Enable_NLM = false; Enable_RQUOTA = false; }
NFS_KRB5 { Active_krb5 = false; }
NFSV4 {
  Grace_Period = 5; Lease_Lifetime = 5; Minor_Versions = 0, 1, 2; RecoveryBackend = fs;
  Only_Numeric_Owners = true; DomainName = localdomain;
}
EXPORT {
  Export_Id = 1; Path = /export; Pseudo = /export; Protocols = 3, 4; Transports = TCP;
  Access_Type = RW; Squash = No_Root_Squash; SecType = sys; FSAL { Name = VFS; }
}
LOG { Default_Log_Level = WARN; }
SETTINGS
}

# The modules that the guest loads; depmod writes what needs what.
put_modules() {
  local modules name
  modules=$(cd "$work/unpacked" && find . -path '*/lib/modules/*/kernel' -type d | head -n 1)
  kernel=$(basename "$(dirname "$modules")")
  mkdir -p "$root/lib/modules/$kernel/kernel"
  for name in fs/nfs fs/nfsd fs/nfs_common fs/lockd fs/ext4 fs/jbd2 fs/mbcache.ko fs/fscache fs/netfs fs/exportfs \
    net/sunrpc net/dns_resolver drivers/virtio drivers/block/virtio_blk.ko lib crypto arch/x86/crypto; do
    if [ -e "$work/unpacked/$modules/$name" ]; then
      mkdir -p "$root/lib/modules/$kernel/kernel/$(dirname "$name")"
      cp -r "$work/unpacked/$modules/$name" "$root/lib/modules/$kernel/kernel/$name"
    fi
  done
  cp "$work/unpacked/$modules"/../modules.{builtin,order} "$root/lib/modules/$kernel/"
  (exec -a depmod "$work/unpacked/bin/kmod" -b "$root" "$kernel") 2>/dev/null
}

boot() {
  (cd "$root" && find . | ./bin/busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$work/initrd"
  rm -f "$work/disk"
  truncate -s 2G "$work/disk"
  mkfs.ext4 -q "$work/disk"
  timeout "$seconds" qemu-system-x86_64 -accel "${ACCEL:-tcg}" -m 2048 -smp 2 -display none -no-reboot -nic none \
    -kernel "$(find "$work/unpacked/boot" -name 'vmlinuz-*')" -initrd "$work/initrd" \
    -drive "file=$work/disk,if=virtio,format=raw,cache=unsafe" -serial "file:$work/console" \
    -append "console=ttyS0 quiet panic=-1 runs=$1" || true
}

version_of() { dpkg-deb -f "$(find "$work/archives" -name "$1_*.deb" | head -n 1)" Version; }

report() {
  tr -d '\r' <"$work/console" >"$work/log"
  echo "guest: Linux $(sed -n 's/^VERSION kernel //p' "$work/log"), an export of ext4 with sync;" \
    "nfs-kernel-server $(version_of nfs-kernel-server), nfs-ganesha $(version_of nfs-ganesha)"
  sed -n 's/^RESULT //p' "$work/log" | column -t
  if ! grep -q '^DONE$' "$work/log"; then
    echo "the guest did not come to its end ($work/console)"
    return 1
  fi
  ! grep -q '^RESULT .*WRONG' "$work/log"
}

if [ "${1:-}" = -h ]; then
  sed -n '3,10s/^# *//p' scripts/nfs.sh
  exit 0
fi
[ -x "$probe" ] && [ -x "$ckpt" ] || skip "no programs in $build: build system_save_probe and ckpt"
[ "$(uname -m)" = x86_64 ] || skip "the guest is for x86_64"
command -v apt-get >/dev/null || skip "no apt-get"
if ! command -v qemu-system-x86_64 >/dev/null; then
  [ "$(id -u)" -eq 0 ] || skip "no qemu-system-x86_64"
  apt-get -q install -y --no-install-recommends qemu-system-x86 >/dev/null || skip "qemu-system-x86 cannot be installed"
fi
runs=("$@")
if [ ${#runs[@]} -eq 0 ]; then runs=({knfsd,ganesha}-{3,4.0,4.1,4.2}); fi
mkdir -p "$work"
unpack_packages
libraries=$(find "$work/unpacked" -name '*.so*' -printf '%h\n' | sort -u | tr '\n' ':')
make_root
put_modules
boot "$(IFS=,; echo "${runs[*]}")"
report
