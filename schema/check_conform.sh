#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: check_conform.sh [FLATC]
# Checks schema/index.fbs against the frozen copy of every released format version, schema/v*/index.fbs:
# a file written then must be readable with the schema of now. Fails at the first that does not conform.
set -eu
flatc=${1:-flatc}
folder=$(cd "$(dirname "$0")" && pwd)

count=0
for frozen in "$folder"/v*/index.fbs; do
  [ -e "$frozen" ] || continue
  "$flatc" --conform "$frozen" "$folder/index.fbs"
  echo "index.fbs conforms to ${frozen#"$folder"/}"
  count=$((count + 1))
done
[ "$count" -gt 0 ] || echo "no released format version yet: nothing to conform to"
