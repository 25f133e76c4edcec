# SPDX-License-Identifier: Apache-2.0
# fish completion of ckpt-verify
complete -c ckpt-verify -f -a '(__fish_complete_directories)'
complete -c ckpt-verify -l series -x -a '(__fish_complete_directories)' -d 'Check every checkpoint of a series'
complete -c ckpt-verify -l level -x -a 'files structure full' -d 'How much is checked'
complete -c ckpt-verify -s j -l threads -x -d 'Threads'
complete -c ckpt-verify -l all -d 'List every violation and every note'
complete -c ckpt-verify -l json -d 'Print one JSON document'
complete -c ckpt-verify -s q -l quiet -d 'Print violations only'
complete -c ckpt-verify -s h -l help -d 'Print help and exit'
complete -c ckpt-verify -l version -d 'Print the version and exit'
