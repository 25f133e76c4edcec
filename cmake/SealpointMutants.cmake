# SPDX-License-Identifier: Apache-2.0
# With SEALPOINT_MUTANTS the modules are compiled of copies in which each protective step can be taken out
# (tests/mutants/README.md). The copies are made at configuration, and again when a source or the generator changes.
if(NOT SEALPOINT_MUTANTS)
  return()
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(sealpoint_mutants_root ${CMAKE_BINARY_DIR}/mutants)
set(sealpoint_mutants_generator ${PROJECT_SOURCE_DIR}/tests/mutants/generate.py)
file(GLOB_RECURSE sealpoint_mutants_inputs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lib/*.cc ${PROJECT_SOURCE_DIR}/lib/*.h
     ${PROJECT_SOURCE_DIR}/readers/*.cc ${PROJECT_SOURCE_DIR}/readers/*.h
     ${PROJECT_SOURCE_DIR}/tests/mutants/*.py ${PROJECT_SOURCE_DIR}/tests/mutants/catalogue.txt)
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sealpoint_mutants_inputs})
execute_process(COMMAND ${Python3_EXECUTABLE} ${sealpoint_mutants_generator} ${sealpoint_mutants_root}
                        COMMAND_ERROR_IS_FATAL ANY)
target_include_directories(sealpoint_headers BEFORE INTERFACE ${sealpoint_mutants_root})

# Built often and run for moments; the copies are not for reading. Tests are compiled as in the preset dev.
set(sealpoint_mutants_options -w -O0 -g0)

# sealpoint_mutate_sources(<variable>): the copies, if there are any (of .cu there are none), of sources in the current folder.
function(sealpoint_mutate_sources variable)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(sources "")
  foreach(source IN LISTS ${variable})
    set(copy ${sealpoint_mutants_root}/${folder}/${source})
    if(EXISTS ${copy})
      foreach(property IN ITEMS SKIP_UNITY_BUILD_INCLUSION COMPILE_OPTIONS COMPILE_DEFINITIONS)
        get_source_file_property(value ${source} ${property})
        if(value)
          set_source_files_properties(${copy} PROPERTIES ${property} "${value}")
        endif()
      endforeach()
      list(APPEND sources ${copy})
    else()
      list(APPEND sources ${source})
    endif()
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()
