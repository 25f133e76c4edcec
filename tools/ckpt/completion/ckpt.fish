# SPDX-License-Identifier: Apache-2.0
# fish completion of ckpt: the program itself knows its words.
function __ckpt_complete
    set -l words (commandline -opc)
    for line in ($words[1] __complete $words[2..-1] (commandline -ct) 2>/dev/null)
        if test "$line" = :
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
for name in ckpt sealpoint
    complete -c $name -f -a '(__ckpt_complete)'
end
