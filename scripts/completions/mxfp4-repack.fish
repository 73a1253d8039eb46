# fish completion for mxfp4-repack(1): the words that the one of bash proposes, and files.
complete -c mxfp4-repack -a '(bash -c "source <(mxfp4-repack completion bash); _mxfp4_repack_words \"\$@\"" bash (commandline -opc) (commandline -ct) 2>/dev/null)'
