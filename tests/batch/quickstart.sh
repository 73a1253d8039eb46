# scripts/quickstart without a program: it installs what its tour needs, no package of the tests, and builds without
# those. CMake configures the real tree, where GoogleTest is not to be found; nothing is compiled.
if foreign; then skip 'the tree is configured for another processor'; fi
"$python" -c 'import h5py, numpy' 2>/dev/null || skip 'python3-h5py is not installed'
cmake=$(command -v cmake) && command -v ninja >/dev/null || skip 'cmake or ninja is not installed'
mkdir -p clone/scripts stubs
cp "$SOURCE_DIR"/scripts/{quickstart,build,make-checkpoint} clone/scripts
cat >clone/scripts/install-packages <<<$'#!/bin/sh\necho "$@" >>"${0%/*}/asked"'
cat >stubs/cmake <<SH
#!/bin/bash
if [ "\$1" = --build ]; then
  mkdir -p build/release
  printf '#!/bin/sh\nexit 9\n' >build/release/mxfp4-repack
  chmod +x build/release/mxfp4-repack
  exit
fi
[ "\$1 \$2" = '--preset release' ] || exit 1
exec "$cmake" -S "$SOURCE_DIR" --preset release -B "$PWD/configured" "\${@:3}" -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON
SH
chmod +x clone/scripts/install-packages stubs/cmake
# The first command of the tour is the stub's.
expect_exit 9 env -u MXFP4_REPACK PATH="$PWD/stubs:/usr/bin:/bin" clone/scripts/quickstart
grep -q 'it is built first:$' stdout || fail 'no word before it builds'
[ "$(cat clone/scripts/asked)" = --tour ] || fail 'other packages'
grep -q '^BUILD_TESTING:.*=OFF$' configured/CMakeCache.txt || fail 'configured with tests'
tour=$("$SOURCE_DIR/scripts/install-packages" --tour --list)
! grep -E 'gtest|benchmark|slurm|munge' <<<"$tour" || fail 'the tour installs what tests need'
# scripts/build has the tests again.
(cd clone && expect_exit 1 env PATH="$PWD/../stubs:$PATH" scripts/build release)
grep -q 'GTest' clone/stderr || fail 'tests are left out for ever'
