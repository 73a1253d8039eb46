# callable(RESULT TARGET FOLDER): what a script calls to run TARGET, which is built in FOLDER of the build
# directory: TARGET itself, or where that is for another processor, a launcher (emulated.c) of its name.
function(callable result target folder)
  if(NOT CMAKE_CROSSCOMPILING)
    set(${result} $<TARGET_FILE:${target}> PARENT_SCOPE)
    return()
  endif()
  set(launcher ${PROJECT_BINARY_DIR}/emulated/${target})
  set(source ${PROJECT_SOURCE_DIR}/scripts/cmake/aarch64/emulated.c)
  list(GET CMAKE_CROSSCOMPILING_EMULATOR 0 emulator)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/emulated)
  file(CREATE_LINK ${PROJECT_BINARY_DIR}/man ${PROJECT_BINARY_DIR}/emulated/man SYMBOLIC)  # man looks there
  execute_process(COMMAND cc -static -O1 "-DEMULATOR=\"${emulator}\""
                          "-DPROGRAM=\"${PROJECT_BINARY_DIR}/${folder}${target}\"" ${source} -o ${launcher}
                  COMMAND_ERROR_IS_FATAL ANY)
  set(${result} ${launcher} PARENT_SCOPE)
endfunction()
