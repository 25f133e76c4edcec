# SPDX-License-Identifier: Apache-2.0
# bash completion of ckpt-inspect
_ckpt_inspect() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  case $previous in
    --tensor | --values | --box | --object | --plan | --place | --depth) return ;;
  esac
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "--tensor --values --box --object --plan --place --depth
      -l --long --all --json -h --help --version" -- "$current")
  else
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -d -- "$current")
  fi
}
complete -F _ckpt_inspect ckpt-inspect
