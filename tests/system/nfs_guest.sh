#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first process of the guest of scripts/nfs.sh: server and client of NFS on the loopback device of one kernel, and
# saves between them. Prints one line per run and step: "RESULT server version step outcome".
export PATH=/bin:/sbin

await() { # port of a server, and whose it is
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
    if nc 127.0.0.1 "$1" -e true 2>/dev/null; then return; fi
    sleep 1
  done
  echo "RESULT $2 - start WRONG"
}

begin() {
  mount -t proc proc /proc
  mount -t sysfs sysfs /sys
  mount -t devtmpfs devtmpfs /dev 2>/dev/null
  ip link set lo up
  for module in virtio_pci virtio_blk ext4 nfs nfsv3 nfsv4 nfsd; do modprobe "$module"; done
  mkdir -p /export /mnt /other /run/rpcbind
  touch /var/lib/nfs/etab /var/lib/nfs/rmtab
  mount -t ext4 /dev/vda /export || echo "RESULT - - disk WRONG"
  mount -t nfsd nfsd /proc/fs/nfsd
  rpcbind -w
  await 111 rpcbind
  uname -r | sed 's/^/VERSION kernel /'
}

start_server() {
  case $server in
    knfsd)
      rpc.mountd
      exportfs -i -o rw,sync,no_root_squash,insecure,no_subtree_check,fsid=1 127.0.0.1:/export
      rpc.nfsd -L 10 -G 10 4
      echo Y >/proc/fs/nfsd/v4_end_grace
      ;;
    ganesha) ganesha.nfsd -F -L /tmp/ganesha.log -f /etc/ganesha.conf -p /run/ganesha.pid >/dev/null 2>&1 & ;;
  esac
  await 2049 "$server"
}

stop_server() {
  case $server in
    knfsd)
      rpc.nfsd 0
      exportfs -ua
      killall rpc.mountd
      ;;
    ganesha) killall -9 ganesha.nfsd ;;
  esac
}

connect() { # directory, further options
  options=vers=$version,proto=tcp,nosharecache$2
  if [ "$version" = 3 ]; then options=$options,nolock; fi
  mount.nfs 127.0.0.1:/export "$1" -o "$options"
}

# A step, the statuses that must be 0, and what happened.
result() {
  outcome=good
  for status in $2; do
    if [ "$status" != 0 ]; then outcome=WRONG; fi
  done
  echo "RESULT $server $version $1 $outcome $3"
}

# The codes that the saves of these logs had, in their order.
codes() { sed -n 's/.*"rank".*"code": "\([A-Za-z]*\)".*/\1/p' "$@" | tr '\n' ',' | sed 's/,$//'; }

is_valid() {
  ckpt verify --quiet "$@" >>/tmp/verify.log 2>&1
  echo $?
}

save_and_load() {
  system_save_probe --series /mnt/plain --save 1,2,3 --check >/tmp/log
  result save "$? $(is_valid --series /mnt/plain)" "$(codes /tmp/log)"
  umount /mnt && connect /mnt ""
  system_save_probe --series /mnt/plain --check >/tmp/log
  result load "$? $(is_valid --series /mnt/plain)" "$(grep -c '"wrong": ""' /tmp/log)"
}

# The second saver has a mount of its own, with its own cache, as another machine has.
two_savers() {
  mkdir -p /mnt/both
  system_save_probe --directory /mnt/both/x --save 7 >/tmp/log1 &
  system_save_probe --directory /other/both/x --save 7 >/tmp/log2
  wait $!
  winners=$(codes /tmp/log1 /tmp/log2 | tr ',' '\n' | grep -c '^Ok$')
  result one-directory "$((winners - 1)) $(is_valid /mnt/both/x)" "$(codes /tmp/log1 /tmp/log2)"
  system_save_probe --series /mnt/shared --save 1,2,3 >/tmp/log1 &
  system_save_probe --series /other/shared --save 4,5,6 >/tmp/log2
  wait $!
  result one-series "$(is_valid --series /mnt/shared)" "$(codes /tmp/log1 /tmp/log2)"
}

prune() { # mount
  system_save_probe --series "$1/pruned" --keep-last 2 | sed -n 's/.*"pruned".*"code": "\([A-Za-z]*\)".*/\1/p'
}

# The client keeps a file that it has open under another name when it is removed (.nfs...).
delete_while_open() {
  system_save_probe --series /mnt/pruned --save 1,2,3 >/tmp/log
  blob=$(echo /mnt/pruned/step-000000000001-*/*.blob)
  sleep 600 <"$blob" &
  reader=$!
  sleep 1
  first=$(prune /mnt)
  kept=$(ls -A /mnt/pruned/step-000000000001-* 2>/dev/null | grep -c '^\.nfs')
  status=$(is_valid --series /mnt/pruned)
  kill $reader
  wait $reader 2>/dev/null
  second=$(prune /mnt)
  result delete-while-open "$status $(is_valid --series /mnt/pruned)" "$first,$kept-.nfs,$second"
}

# What is deleted while another client verifies it is whole for that one, or cannot be read any more.
read_while_deleted() {
  system_save_probe --series /mnt/pruned --save 4,5,6 --rows 4000 >/tmp/log
  ckpt verify --quiet --series /other/pruned >>/tmp/verify.log 2>&1 &
  reader=$!
  pruned=$(prune /mnt)
  wait $reader
  reader=$?
  case $reader in 0 | 2 | 4) told=0 ;; *) told=1 ;; esac
  result read-while-deleted "$told $(is_valid --series /mnt/pruned)" "$pruned,reader-$reader"
}

# A hard mount waits for the server, and so does the saver.
restart_server() {
  system_save_probe --series /mnt/restarted --save 1,2,3 --rows 4000 >/tmp/log &
  saver=$!
  sleep 3
  stop_server
  sleep 3
  start_server
  wait $saver
  result restart "$? $(is_valid --series /mnt/restarted)" "$(codes /tmp/log)"
}

# A soft mount gives up, and the save with it.
lose_server() {
  umount /other
  connect /other ,soft,timeo=20,retrans=1
  system_save_probe --series /other/lost --save 1 >/tmp/log
  system_save_probe --series /other/lost --save 2,3 --rows 4000 >/tmp/log1 &
  saver=$!
  sleep 3
  stop_server
  wait $saver
  start_server
  umount -l /other
  status=$(is_valid --series /mnt/lost)
  system_save_probe --series /mnt/lost --save 4 --check >/tmp/log2
  result lose "$status $?" "$(codes /tmp/log /tmp/log1),then-$(codes /tmp/log2)"
}

run() {
  rm -rf /export/*
  start_server
  if ! connect /mnt "" || ! connect /other ""; then
    result mount 1 failed
    stop_server
    return
  fi
  for step in save_and_load two_savers delete_while_open read_while_deleted restart_server lose_server; do $step; done
  umount /mnt /other 2>/dev/null
  stop_server
  sleep 2
}

begin
for one in $(sed -n 's/.*runs=\([^ ]*\).*/\1/p' /proc/cmdline | tr , ' '); do
  server=${one%-*}
  version=${one#*-}
  run
done
tail -n 30 /tmp/verify.log | sed 's/^/VERIFY /'
if [ -f /tmp/ganesha.log ]; then tail -n 10 /tmp/ganesha.log | sed 's/^/GANESHA /'; fi
echo DONE
poweroff -f
