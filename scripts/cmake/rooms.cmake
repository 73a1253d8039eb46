# Compiles each room of a target as one file: most of a compiler's time goes into headers and into
# templates that every file takes. A room is a folder. Tests are always compiled so, the program only
# in the sanitizer presets. Names that are local to a file therefore differ within a room, except in:
set(MXFP4_FILE_BY_FILE
  lib/kernels  # Highway includes such a file once for every instruction set
)
# A room with all its folders: each file takes the templates of JSON.
set(MXFP4_ROOMS_OF_FOLDERS formats)

# compile_by_room(TARGET [MOST]): call it in the directory that made TARGET, after its last source was
# added. A room of more files than MOST becomes several, so that a small change compiles little. A file
# that has a UNITY_GROUP keeps it.
function(compile_by_room target)
  set(most 1000)
  if(ARGC GREATER 1)
    set(most ${ARGV1})
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    get_filename_component(room ${source} DIRECTORY)
    file(RELATIVE_PATH room ${PROJECT_SOURCE_DIR} ${room})
    string(REGEX REPLACE "/.*" "" top ${room})
    if(top IN_LIST MXFP4_ROOMS_OF_FOLDERS)
      set(room ${top})
    endif()
    get_source_file_property(group ${source} UNITY_GROUP)
    if(NOT group AND NOT room IN_LIST MXFP4_FILE_BY_FILE)
      string(REPLACE "/" "_" group ${room})
      if(NOT DEFINED count_${group})
        set(count_${group} 0)
      endif()
      math(EXPR part "${count_${group}} / ${most}")
      math(EXPR count_${group} "${count_${group}} + 1")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${part})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
