# bash completion for mxfp4-repack(1): what the program's own help and tables say.

# The first words of the lines of a table of list.
_mxfp4_repack_rows() { mxfp4-repack list "$1" 2>/dev/null | sed -nE '1d; s/^([^ ]+).*/\1/p' | sort -u; }

# Proposes words for the last of "$@", which begins with mxfp4-repack, one a line.
_mxfp4_repack_words() {
  local current=${*: -1} previous=${*: -2:1} command='' choices
  (($# < 3)) || command=$2
  [[ $current == -* ]] && previous=''
  case $previous in
    --revision) _mxfp4_repack_rows revisions ;;
    --backend) _mxfp4_repack_rows backends ;;
    --style) _mxfp4_repack_rows styles ;;
    --arch) _mxfp4_repack_rows machines ;;
    --libs | --no-lib) _mxfp4_repack_rows libraries ;;
    --env) _mxfp4_repack_rows variables | sed 's/$/=/' ;;
    --knob) _mxfp4_repack_rows knobs | sed 's/$/=/' ;;
    list | completion) # their argument's choices: "WHAT   a, b or c"
      mxfp4-repack "$previous" --help | sed -nE '/^  (WHAT|SHELL) /,/^(  NAME.*|)$/{/^  NAME/d; s/^  [A-Z]+ +//; p}' |
        tr -s ', ' '\n' | grep -vx or ;;
    *)
      if [[ $current == -* ]]; then
        # shellcheck disable=SC2086
        mxfp4-repack $command --help-all | sed -nE 's/^  (-.*)/\1/p' | sed 's/  .*//' |
          grep -oE -- '(^|[ ,])--?[A-Za-z][a-z0-9-]*' | tr -d ' ,'
      elif [[ -z $command ]]; then
        mxfp4-repack --help | sed -nE '/^Commands:/,/^$/s/^  ([a-z]+) .*/\1/p'
      elif [[ $command == list && $# == 4 ]]; then
        _mxfp4_repack_rows "$3"
      elif [[ $previous == -* ]]; then
        # "--compress zstd|none" names its values.
        choices=$(mxfp4-repack "$command" --help-all | grep -oE -- "$previous [a-z|]*\|[a-z|]*") && tr '|' '\n' <<<"${choices#* }"
      fi ;;
  esac
}

_mxfp4_repack() {
  local words=("${COMP_WORDS[@]:0:COMP_CWORD+1}")
  # readline takes --flag=value apart.
  [[ ${words[-1]} != '=' ]] || words[-1]=''
  [[ ${words[-2]} != '=' ]] || unset 'words[-2]'
  mapfile -t COMPREPLY < <(compgen -W "$(_mxfp4_repack_words "${words[@]}" 2>/dev/null)" -- "${words[-1]}")
}

complete -o default -F _mxfp4_repack mxfp4-repack
