#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Succeeds if a loop device can be mounted. Run it in a separate mount namespace.
set -e
folder=$(mktemp -d)
trap 'umount "$folder/disk" 2>/dev/null; rm -rf "$folder"' EXIT
mkdir "$folder/disk"
truncate -s 8M "$folder/image"
mkfs.ext4 -q -F "$folder/image"
mount -o loop "$folder/image" "$folder/disk"
