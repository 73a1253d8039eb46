#compdef mxfp4-repack
# zsh completion for mxfp4-repack(1): the one of bash.
autoload -U +X bashcompinit && bashcompinit
source <(mxfp4-repack completion bash)
