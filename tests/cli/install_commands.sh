# Every command with which a page or a help text installs this project is run as the page has it, in a
# fresh environment of Python. No package index is asked: the wheel is made of the build under test, and it is
# also what the build backend gives for the clone (scripts/make-wheel and its tests build the real one).
if slow; then skip 'the environment has no runtime of sanitizers or emulator'; fi
need_numpy
"$python" -m venv --system-site-packages env >venv.log 2>&1 || skip 'python3-venv is not installed'
# What this machine says to pip and to the package has no say.
for name in $(compgen -e | grep -E '^(PIP_|PYTHON|MXFP4_REPACK)'); do unset "$name"; done
export PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_QUIET=1 PIP_CONFIG_FILE=/dev/null
export PATH=$PWD/env/bin:$PATH

# The commands, one a line, each with its page. A machine where pip takes the page's other packages is not here.
for command in '' convert explain; do "$BIN" $command --help; done >help.txt
find "$SOURCE_DIR"/{README.md,man,scripts/python} help.txt -type f ! -name '*.pyc' -exec \
  grep -HoIE '\b(pip3?|pipx|uv|poetry|conda)( [a-z]+)? (install|add) [^`"#),&;|]*[^`"#),&;|. ]' {} + |
  grep -E 'mxfp4|scripts/python' | sort -u >commands
for page in README.md man/guide/{python,tutorial,pipeline,container,kubernetes}.md scripts/python/{README,VLLM}.md; do
  grep -qF "$page:" commands || fail "$page: says no longer how to install"
done

used() {
  mxfp4-repack --version >version && python -m mxfp4_repack --version | cmp - version || fail "not the program: $1"
  mxfp4-repack-probe 2>/dev/null | python -c 'import json, sys; json.load(sys.stdin)["platform"]' || fail "no facts: $1"
  if ! python -c 'import vllm' 2>/dev/null; then
    expect_exit 3 mxfp4-repack-check
    [ "$(wc -l <stderr)" = 1 ] && grep -q '^mxfp4-repack-check: vLLM: neither it nor SGLang is installed for ' stderr || { cat stderr >&2; fail "mxfp4-repack-check: $1"; }
  fi
  (cd / && python -c 'import mxfp4_repack.native as n; assert "site-packages/mxfp4_repack/lib/" in n.library()._name') || fail "not the library: $1"
  pip uninstall -y mxfp4-repack
  [ ! -e env/bin/mxfp4-repack-probe ] || fail "something is left: $1"
}

mkdir downloads
"$python" "$SOURCE_DIR/tests/cli/built_wheel.py" "$SOURCE_DIR" "$BIN" "$LOADER" downloads
while IFS= read -r command; do
  case $command in
    # A release's wheel, in the folder that it was fetched into.
    'pip install ./mxfp4_repack-*.whl') (cd downloads && eval "$command") || fail "$command"; used "$command" ;;
    # In a clone. pip reads pyproject.toml and asks its build backend, which here has the wheel already.
    'pip install ./scripts/python')
      site=$(echo env/lib/python3*/site-packages)
      mkdir "$site/scikit_build_core"
      printf 'import os, shutil\n\ndef build_wheel(out, settings=None, metadata=None):\n    (name,) = os.listdir(%s)\n    shutil.copy(os.path.join(%s, name), out)\n    return name\n' \
        "'$PWD/downloads'" "'$PWD/downloads'" >"$site/scikit_build_core/build.py"
      (cd "$SOURCE_DIR" && PIP_NO_BUILD_ISOLATION=0 eval "$command") || fail "$command"
      used "$command" ;;
    # Images and pipelines: page_commands.sh runs their steps.
    'pip install /tmp/mxfp4_repack-*.whl' | 'pipx install ./mxfp4_repack-*.whl') ;;
    *) fail "no test runs this command: $command" ;;
  esac
done < <(sed 's/^[^:]*://' commands | sort -u)
