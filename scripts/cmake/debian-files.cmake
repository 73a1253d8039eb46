# Run by cpack on the staged files of a package: compresses man pages and changelogs without names and
# times, so that packages stay reproducible, and drops the license text that Debian has already.
file(GLOB compressed "${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/man/man*/*.[0-9]"
     "${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/doc/*/changelog")
foreach(file IN LISTS compressed)
  execute_process(COMMAND gzip -9n "${file}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(GLOB licenses "${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/doc/*/LICENSE")
if(licenses)
  file(REMOVE ${licenses})
endif()
