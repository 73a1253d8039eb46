# Compiles each folder of a target as one file, for the sanitizer presets: most of their compiler's
# time goes into headers. Names that are local to a file therefore differ within a folder, except in:
set(MXFP4_FILE_BY_FILE
  lib/kernels  # Highway includes such a file once for every instruction set
)

# compile_by_room(TARGET): call it in the directory that made TARGET, after its last source was added.
function(compile_by_room target)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    get_filename_component(room ${source} DIRECTORY)
    file(RELATIVE_PATH room ${PROJECT_SOURCE_DIR} ${room})
    if(NOT room IN_LIST MXFP4_FILE_BY_FILE)
      string(REPLACE "/" "_" group ${room})
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
