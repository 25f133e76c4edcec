# SPDX-License-Identifier: Apache-2.0
# bash completion of ckpt: the program itself knows its words.
_ckpt() {
  local word names
  COMPREPLY=()
  while IFS=$'\t' read -r word _; do
    if [[ $word == : ]]; then
      compopt -o filenames 2>/dev/null
      mapfile -t names < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
      COMPREPLY+=("${names[@]}")
    elif [[ $word == "${COMP_WORDS[COMP_CWORD]}"* ]]; then
      COMPREPLY+=("$word")
    fi
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _ckpt ckpt sealpoint
