# SPDX-License-Identifier: Apache-2.0
# Shows how far a long step is; scripts/demo.sh sources this. All of it goes to the standard error: one line that changes on a
# terminal, and elsewhere a line for each tenth.
# shellcheck shell=bash

# What Ninja prints as it finishes pieces, and apt-get as it installs packages.
progress_of_ninja='^\[([0-9]+)/([0-9]+)\] (.*)'
progress_of_apt='^(Get:[0-9]+|Unpacking|Setting up) .*'

progress() {  # what; reads what the step prints
  local line tenth='' now last='' far='' began=$SECONDS status
  while true; do
    status=0
    IFS= read -r -t 1 line || status=$?
    if [ $status -gt 0 ] && [ $status -le 128 ]; then break; fi
    if [ $status -gt 0 ]; then
      line=
    elif [[ $line =~ $progress_of_ninja && $line != *"] Re-"* ]]; then  # running CMake again is no piece
      far="${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
      last=${BASH_REMATCH[3]#Building CXX object }
      last=${last/CMakeFiles*\//}
      now=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
    elif [[ $line =~ $progress_of_apt ]]; then
      last=$line
    elif [[ $line == "$1: "* ]]; then
      printf '%s\n' "   $line" >&2
    fi
    if [ -t 2 ]; then
      printf '\r\033[K%.*s' "${COLUMNS:-79}" "   $1: ${far:+$far, }$((SECONDS - began)) s  $last" >&2
    elif [ -n "$far" ] && [ "$now" != "$tenth" ]; then
      printf '   %s: %s, %s s  %s\n' "$1" "$far" $((SECONDS - began)) "$last" >&2
      tenth=$now
    fi
  done
  if [ -t 2 ]; then printf '\r\033[K' >&2; fi
}
