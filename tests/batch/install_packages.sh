# Installs packages that dpkg does not have, even if dpkg does not know them, as on a new machine; and
# nothing if all are there. An Arm library is not the machine's own of the same name.
mkdir stubs
stub() {
  cat >"stubs/$1"
  chmod +x "stubs/$1"
}
stub sudo <<<$'#!/bin/sh\nexec "$@"'
stub apt-get <<<$'#!/bin/sh\necho "$@" >>asked'
stub dpkg <<<$'#!/bin/sh\ncase $1 in --print-architecture) echo amd64 ;; *) echo "$@" >>asked ;; esac'
install_packages() {
  local want=$1
  shift
  expect_exit "$want" env PATH="$PWD/stubs:$PATH" "$SOURCE_DIR/scripts/install-packages" "$@"
}

stub dpkg-query <<'SH'
#!/bin/sh
echo 'installed cmake:amd64'
echo 'installed nlohmann-json3-dev:all'
echo 'installed libzstd-dev:arm64'
echo 'config-files zstd:amd64'
echo 'dpkg-query: no packages found matching libfmt-dev' >&2
exit 1
SH
install_packages 0
for name in libfmt-dev libzstd-dev zstd; do grep -q "install.* $name\( \|$\)" asked || fail "$name is not installed"; done
grep -qE ' (cmake|nlohmann-json3-dev)( |$)' asked && fail 'what is there is installed again'
grep -qE 'slurm|munge|nginx' asked && fail 'a service that nobody asked for'
grep -q arm64 asked && fail 'a package of another architecture'

rm asked
install_packages 1 --check
[ ! -e asked ] || fail '--check installs'
install_packages 1 --arm64 --check
install_packages 0 --arm64
[ "$(head -n 1 asked)" = '--add-architecture arm64' ] || fail 'the architecture is not added'
grep -q 'install.* libfmt-dev:arm64' asked || fail 'an Arm library is not installed'
grep -q 'libzstd-dev:arm64' asked && fail 'an Arm library is installed again'

rm asked
stub dpkg-query <<SH
#!/bin/sh
"$SOURCE_DIR/scripts/install-packages" --arm64 --list | sed 's/^/installed /; /:/! s/$/:amd64/'
SH
for arguments in '' --check --arm64 '--arm64 --check'; do
  # shellcheck disable=SC2086
  install_packages 0 $arguments
done
[ ! -e asked ] || fail 'apt-get is run though all is there'

stub apt-get <<<$'#!/bin/sh\nexit 100'
stub dpkg-query <<<$'#!/bin/sh\nexit 1'
install_packages 100

# Where Arm's packages are missing, the row that needs them says so, and nothing fails.
expect_exit 0 env PATH="$PWD/stubs:$PATH" "$SOURCE_DIR/scripts/test" --arm64
grep -qx 'skipped: scripts/install-packages --arm64 installs what this row needs' stdout || fail 'no word about the skip'
grep -qE '^64-bit Arm, the bytes +skip ' stdout || fail 'not a row that was skipped'
