# Makes a source file of what the program carries inside: the completions of scripts/completions, which
# `mxfp4-repack completion` prints, and the commit it was built from, which `--version -v` says. Both are
# followed: a change of the files, or a commit, configures again.

# The contents of the files as raw string literals, which need a delimiter that no file has.
set(MXFP4_EMBEDDED "")
foreach(shell bash fish zsh)
  set(script ${PROJECT_SOURCE_DIR}/scripts/completions/mxfp4-repack.${shell})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${script})
  file(READ ${script} text)
  string(APPEND MXFP4_EMBEDDED "    {\"${shell}\", R\"script(${text})script\"},\n")
endforeach()

set(MXFP4_COMMIT "")
find_package(Git QUIET)
if(Git_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --short=12 HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                  OUTPUT_VARIABLE MXFP4_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --path-format=absolute --git-path logs/HEAD
                  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                  OUTPUT_VARIABLE log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(log AND EXISTS ${log})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${log})
  endif()
endif()

file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/embedded.cpp @ONLY CONTENT
"// Made by scripts/cmake/embedded.cmake.
#include \"apps/embedded.hpp\"

namespace mxfp4 {
namespace {

constexpr CompletionScript kScripts[] = {
@MXFP4_EMBEDDED@};

}  // namespace

std::span<const CompletionScript> completion_scripts() { return kScripts; }
std::string_view built_from_commit() { return \"@MXFP4_COMMIT@\"; }

}  // namespace mxfp4
")
target_sources(mxfp4-repack PRIVATE ${PROJECT_BINARY_DIR}/embedded.cpp)
set_source_files_properties(${PROJECT_BINARY_DIR}/embedded.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
