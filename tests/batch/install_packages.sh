# Installs packages that dpkg does not have, even if dpkg does not know them, as on a new machine; with --check nothing.
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
