# Installs packages that dpkg does not have, even if dpkg does not know them, as on a new machine; and
# nothing if all are there.
mkdir stubs
stub() {
  cat >"stubs/$1"
  chmod +x "stubs/$1"
}
stub sudo <<<$'#!/bin/sh\nexec "$@"'
stub apt-get <<<$'#!/bin/sh\necho "$@" >>asked'
install_packages() { expect_exit "$1" env PATH="$PWD/stubs:$PATH" "$SOURCE_DIR/scripts/install-packages"; }

stub dpkg-query <<'SH'
#!/bin/sh
echo 'installed cmake'
echo 'config-files zstd'
echo 'dpkg-query: no packages found matching libfmt-dev' >&2
exit 1
SH
install_packages 0
for name in libfmt-dev zstd; do grep -q "install.* $name\( \|$\)" asked || fail "$name is not installed"; done
grep -q ' cmake' asked && fail 'cmake is installed again'

rm asked
stub dpkg-query <<SH
#!/bin/sh
"$SOURCE_DIR/scripts/install-packages" --list | sed 's/^/installed /'
SH
install_packages 0
[ ! -e asked ] || fail 'apt-get is run though all is there'

stub apt-get <<<$'#!/bin/sh\nexit 100'
stub dpkg-query <<<$'#!/bin/sh\nexit 1'
install_packages 100
