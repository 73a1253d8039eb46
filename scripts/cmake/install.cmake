# Says where `cmake --install` puts each file, and makes the CMake package and pkg-config file of the
# static libraries, and Debian packages by `cpack`. Three components, one package each: the program with
# the shared library, the files to build against the libraries, and the Python package.
include(CMakePackageConfigHelpers)
set(PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/mxfp4-repack)

# The program.
install(TARGETS mxfp4-repack RUNTIME COMPONENT program)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY man/guide DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES scripts/cmake/debian-copyright RENAME copyright DESTINATION ${CMAKE_INSTALL_DOCDIR}
        COMPONENT program)
# CMake takes the time from SOURCE_DATE_EPOCH if that is set, so that packages are reproducible.
string(TIMESTAMP DEBIAN_CHANGELOG_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(scripts/cmake/debian-changelog.in changelog @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/changelog .github/CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(PROGRAMS scripts/probe-target DESTINATION ${CMAKE_INSTALL_DATADIR}/mxfp4-repack
        COMPONENT program)
# The name under which a wheel has it, and the guides.
install(PROGRAMS scripts/probe-target RENAME mxfp4-repack-probe DESTINATION ${CMAKE_INSTALL_BINDIR}
        COMPONENT program)
install(PROGRAMS scripts/batch/convert-many scripts/batch/slurm-array
        DESTINATION ${CMAKE_INSTALL_DATADIR}/mxfp4-repack/batch COMPONENT program)
install(FILES scripts/batch/kubernetes-indexed-job.yaml scripts/batch/README.md
        DESTINATION ${CMAKE_INSTALL_DATADIR}/mxfp4-repack/batch COMPONENT program)
# Where each layout puts its values, drawn from what the program writes: packages of a release have them.
add_custom_target(layout-pictures
  COMMAND /usr/bin/python3 ${PROJECT_SOURCE_DIR}/scripts/draw-layouts $<TARGET_FILE:mxfp4-repack> ${PROJECT_BINARY_DIR}/layouts
  DEPENDS mxfp4-repack USES_TERMINAL VERBATIM)
install(DIRECTORY ${PROJECT_BINARY_DIR}/layouts OPTIONAL DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES man/mxfp4-repack.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES man/mxfp4-repack-container.5 DESTINATION ${CMAKE_INSTALL_MANDIR}/man5
        COMPONENT program)
install(FILES man/mxfp4-repack-json.7 man/mxfp4-repack-layouts.7 DESTINATION ${CMAKE_INSTALL_MANDIR}/man7
        COMPONENT program)
install(FILES scripts/completions/mxfp4-repack.bash RENAME mxfp4-repack COMPONENT program
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES scripts/completions/mxfp4-repack.zsh RENAME _mxfp4-repack COMPONENT program
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES scripts/completions/mxfp4-repack.fish COMPONENT program
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# The shared library comes with the program; the files to link with it come in the development package.
set_target_properties(mxfp4_repack PROPERTIES EXPORT_NAME loader)
install(TARGETS mxfp4_repack EXPORT mxfp4-repack-targets
        LIBRARY COMPONENT program NAMELINK_COMPONENT development)
install(FILES formats/loader/mxfp4_repack.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT development)

# The static libraries. Headers that speak JSON or HDF5 types, or of the C interface, are internal.
set_target_properties(mxfp4_lib PROPERTIES EXPORT_NAME lib)
set_target_properties(mxfp4_formats PROPERTIES EXPORT_NAME formats)
install(TARGETS mxfp4_lib mxfp4_formats EXPORT mxfp4-repack-targets
        ARCHIVE COMPONENT development)
install(DIRECTORY lib formats DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mxfp4 COMPONENT development
        FILES_MATCHING PATTERN "*.hpp"
        REGEX "formats/(hdf5/(hdf5_(describe|file|handle|index)|chunk_lengths)|json/.*|config/quantization_(exclusions|members|rules)|loader/c_api_(arguments|status))\\.hpp$" EXCLUDE)
install(EXPORT mxfp4-repack-targets NAMESPACE mxfp4:: DESTINATION ${PACKAGE_DIR}
        COMPONENT development)
configure_package_config_file(
  scripts/cmake/mxfp4-repack-config.cmake.in mxfp4-repack-config.cmake
  INSTALL_DESTINATION ${PACKAGE_DIR})
write_basic_package_version_file(mxfp4-repack-config-version.cmake
  COMPATIBILITY SameMinorVersion)
# The .pc file finds the prefix from its own place: a package's prefix is not this configuration's.
file(RELATIVE_PATH PREFIX_FROM_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(scripts/cmake/mxfp4-repack.pc.in mxfp4-repack.pc @ONLY)
configure_file(scripts/cmake/mxfp4-repack-loader.pc.in mxfp4-repack-loader.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/mxfp4-repack-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/mxfp4-repack-config-version.cmake
        DESTINATION ${PACKAGE_DIR} COMPONENT development)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/mxfp4-repack.pc
              ${CMAKE_CURRENT_BINARY_DIR}/mxfp4-repack-loader.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
install(FILES scripts/cmake/debian-copyright RENAME copyright COMPONENT development
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libmxfp4-repack-dev)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/changelog COMPONENT development
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libmxfp4-repack-dev)

# The Python package where Debian's interpreter looks. The program and the shared library come with
# the package above; the entry point lets vLLM find the plug-in.
set(PYTHON_DIR lib/python3/dist-packages)
install(DIRECTORY scripts/python/mxfp4_repack DESTINATION ${PYTHON_DIR} COMPONENT python
        PATTERN __pycache__ EXCLUDE)
configure_file(scripts/cmake/python-metadata.in python-metadata @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/python-metadata RENAME METADATA COMPONENT python
        DESTINATION ${PYTHON_DIR}/mxfp4_repack-${PROJECT_VERSION}.dist-info)
install(FILES scripts/cmake/python-entry-points RENAME entry_points.txt COMPONENT python
        DESTINATION ${PYTHON_DIR}/mxfp4_repack-${PROJECT_VERSION}.dist-info)
install(PROGRAMS scripts/cmake/mxfp4-repack-check DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT python)
install(FILES scripts/python/README.md scripts/python/VLLM.md scripts/python/SGLANG.md COMPONENT python
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/python3-mxfp4-repack)
install(FILES scripts/cmake/debian-copyright RENAME copyright COMPONENT python
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/python3-mxfp4-repack)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/changelog COMPONENT python
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/python3-mxfp4-repack)

# What Debian's checker finds and is meant so.
set(OVERRIDES ${CMAKE_INSTALL_DATADIR}/lintian/overrides)
install(FILES scripts/cmake/lintian/mxfp4-repack DESTINATION ${OVERRIDES} COMPONENT program)
install(FILES scripts/cmake/lintian/libmxfp4-repack-dev DESTINATION ${OVERRIDES}
        COMPONENT development)
install(FILES scripts/cmake/lintian/python3-mxfp4-repack DESTINATION ${OVERRIDES} COMPONENT python)

# Debian packages. Bytes are the same for the same SOURCE_DATE_EPOCH and compiler.
set(CPACK_GENERATOR DEB)
if(CMAKE_CROSSCOMPILING)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)  # else the building machine's own
endif()
set(CPACK_COMPONENTS_ALL program development python)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
# Man pages and changelogs compressed, as Debian wants them.
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/scripts/cmake/debian-files.cmake)
set(CPACK_PACKAGE_CONTACT "mxfp4-repack maintainers <mxfp4-repack@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
    GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
    "Repacks the expert weights of MXFP4 Mixture-of-Experts checkpoints (gpt-oss,
DeepSeek-V4, Quark, compressed-tensors) into the byte order of the kernel that
will serve them, on any machine and without a GPU.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "Static libraries and headers of mxfp4-repack: rules, layouts and pipeline,
and on top of them the readers and writers of files.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME mxfp4-repack)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA
    "${PROJECT_SOURCE_DIR}/scripts/cmake/debian-program/triggers")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "python3, bash-completion, libcurl4, ca-certificates")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libmxfp4-repack-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libfmt-dev, libhdf5-dev, libhwy-dev, libxxhash-dev, libzstd-dev, nlohmann-json3-dev, zlib1g-dev, pkg-config")
set(CPACK_COMPONENT_PYTHON_DESCRIPTION
    "Reads the blobs that mxfp4-repack writes, loads them to a GPU, runs the program
from Python, and lets vLLM take expert weights from them (as a plug-in and as a
load format).")
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-mxfp4-repack)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "mxfp4-repack (= ${PROJECT_VERSION}), python3 (>= 3.9), python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-torch")
# Compiles and removes __pycache__, as Debian's own Python packages do.
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
    "${PROJECT_SOURCE_DIR}/scripts/cmake/debian-python/postinst;${PROJECT_SOURCE_DIR}/scripts/cmake/debian-python/prerm")
include(CPack)
