# The Python wheel's share of the build: scripts/make-wheel sets MXFP4_WHEEL. The program goes into the
# package's folder, completions and man pages where pip's scheme has them. scripts/make-wheel copies the
# libraries that Debian has not as static ones into the wheel.
include(scripts/cmake/static_libraries.cmake)

install(TARGETS mxfp4-repack RUNTIME DESTINATION mxfp4_repack/bin COMPONENT wheel)
install(PROGRAMS scripts/probe-target DESTINATION mxfp4_repack/bin COMPONENT wheel)
# Where native.py looks for it, under its SONAME: wheels hold no links.
install(FILES $<TARGET_FILE:mxfp4_repack> RENAME $<TARGET_SONAME_FILE_NAME:mxfp4_repack>
        DESTINATION mxfp4_repack/lib COMPONENT wheel)
install(FILES man/mxfp4-repack.1 DESTINATION ${SKBUILD_DATA_DIR}/share/man/man1 COMPONENT wheel)
install(FILES man/mxfp4-repack-container.5 DESTINATION ${SKBUILD_DATA_DIR}/share/man/man5 COMPONENT wheel)
install(FILES man/mxfp4-repack-json.7 man/mxfp4-repack-layouts.7
        DESTINATION ${SKBUILD_DATA_DIR}/share/man/man7 COMPONENT wheel)
install(FILES scripts/completions/mxfp4-repack.bash RENAME mxfp4-repack COMPONENT wheel
        DESTINATION ${SKBUILD_DATA_DIR}/share/bash-completion/completions)
install(FILES scripts/completions/mxfp4-repack.zsh RENAME _mxfp4-repack COMPONENT wheel
        DESTINATION ${SKBUILD_DATA_DIR}/share/zsh/site-functions)
install(FILES scripts/completions/mxfp4-repack.fish COMPONENT wheel
        DESTINATION ${SKBUILD_DATA_DIR}/share/fish/vendor_completions.d)

# The libraries that the wheel carries: names, versions and licences, as Debian states them.
set(CARRIED libaec-dev libcli11-dev libfmt-dev libhdf5-dev libhwy-dev libxxhash-dev libzstd-dev
    nlohmann-json3-dev zlib1g-dev)
set(NOTICES ${CMAKE_CURRENT_BINARY_DIR}/THIRD-PARTY.txt)
file(WRITE ${NOTICES} "This wheel carries the libraries below. Each one's licence follows its name and version.\n")
foreach(package ${CARRIED})
  execute_process(COMMAND dpkg-query -W "-f=\${Version}\\n" ${package} OUTPUT_VARIABLE versions
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "^[^\n]+" version "${versions}")
  file(READ /usr/share/doc/${package}/copyright notice)
  file(APPEND ${NOTICES} "\n==== ${package} ${version}\n\n${notice}")
endforeach()
install(FILES ${NOTICES} DESTINATION mxfp4_repack COMPONENT wheel)
# The same for programs, where wheels have it (PEP 770).
set(SBOM ${CMAKE_CURRENT_BINARY_DIR}/mxfp4-repack.cdx.json)
execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/make-sbom ${PROJECT_VERSION} ${CARRIED}
                OUTPUT_FILE ${SBOM} COMMAND_ERROR_IS_FATAL ANY)
install(FILES ${SBOM} DESTINATION ${SKBUILD_METADATA_DIR}/sboms COMPONENT wheel)
