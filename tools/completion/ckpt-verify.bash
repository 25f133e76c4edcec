# SPDX-License-Identifier: Apache-2.0
# bash completion of ckpt-verify
_ckpt_verify() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  case $previous in
    --level) mapfile -t COMPREPLY < <(compgen -W "files structure full" -- "$current") && return ;;
    -j | --threads) return ;;
  esac
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "--series --level -j --threads --all --json -q --quiet
      -h --help --version" -- "$current")
  else
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -d -- "$current")
  fi
}
complete -F _ckpt_verify ckpt-verify
