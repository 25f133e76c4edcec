# SPDX-License-Identifier: Apache-2.0
# A module is a folder of lib/ or readers/ with its own CMakeLists.txt. Its sources are compiled once, into the object library
# sealpoint_<module>_objects, of which the library and the tests are made.

# Reads the table of edges into sealpoint_modules and sealpoint_edges_<module>.
set(sealpoint_edges_file ${PROJECT_SOURCE_DIR}/cmake/module_edges.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sealpoint_edges_file})
file(STRINGS ${sealpoint_edges_file} sealpoint_edge_lines REGEX "^[a-z0-9_]+:")
set(sealpoint_modules "")
foreach(line IN LISTS sealpoint_edge_lines)
  string(REGEX MATCH "^([a-z0-9_]+):(.*)$" matched "${line}")
  set(module ${CMAKE_MATCH_1})
  separate_arguments(allowed UNIX_COMMAND "${CMAKE_MATCH_2}")
  list(REMOVE_ITEM allowed schema)
  list(APPEND sealpoint_modules ${module})
  set(sealpoint_edges_${module} ${allowed})
endforeach()

# Modules of parts that SEALPOINT_COMPONENTS leaves out of the library.
set(sealpoint_components_file ${PROJECT_SOURCE_DIR}/cmake/components.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sealpoint_components_file})
set(sealpoint_left_out_modules "")
set(sealpoint_unknown_components ${SEALPOINT_COMPONENTS})
foreach(component core interop ops)
  list(REMOVE_ITEM sealpoint_unknown_components ${component})
  if(NOT component IN_LIST SEALPOINT_COMPONENTS)
    file(STRINGS ${sealpoint_components_file} line REGEX "^${component} ")
    string(REGEX REPLACE "^.*:" "" line "${line}")
    separate_arguments(modules UNIX_COMMAND "${line}")
    list(APPEND sealpoint_left_out_modules ${modules})
  endif()
endforeach()
if(sealpoint_unknown_components OR NOT "core" IN_LIST SEALPOINT_COMPONENTS)
  message(FATAL_ERROR "SEALPOINT_COMPONENTS is \"${SEALPOINT_COMPONENTS}\", expected core and some of interop and ops")
endif()
if(sealpoint_left_out_modules AND (SEALPOINT_BUILD_TOOLS OR SEALPOINT_BUILD_PYTHON OR SEALPOINT_BUILD_TESTS
                                   OR SEALPOINT_BUILD_BENCHMARKS))
  message(FATAL_ERROR "Tools, tests, benchmarks and the Python package need all of SEALPOINT_COMPONENTS: switch them off")
endif()

# sealpoint_add_module_folders(): adds each folder here that is a module, in the order of the table.
function(sealpoint_add_module_folders)
  file(GLOB listings CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} */CMakeLists.txt)
  list(TRANSFORM listings REPLACE "/CMakeLists.txt$" "")
  foreach(module IN LISTS sealpoint_modules)
    if(module IN_LIST listings)
      if(NOT module IN_LIST sealpoint_left_out_modules)
        add_subdirectory(${module})
      endif()
      list(REMOVE_ITEM listings ${module})
    endif()
  endforeach()
  if(listings)
    message(FATAL_ERROR "Modules without a row in cmake/module_edges.txt: ${listings}")
  endif()
endfunction()

# sealpoint_add_subfolders(): adds every folder here that has a CMakeLists.txt, by name.
function(sealpoint_add_subfolders)
  file(GLOB listings CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} */CMakeLists.txt)
  foreach(listing IN LISTS listings)
    get_filename_component(folder ${listing} DIRECTORY)
    add_subdirectory(${folder})
  endforeach()
endfunction()

# sealpoint_add_module(<module> [COMPONENT] SOURCES <file>... [LINK <target>...])
# LINK names third-party targets or sealpoint_schema. COMPONENT: of a library of its own.
function(sealpoint_add_module module)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMPONENT" "" "SOURCES;LINK")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "sealpoint_add_module(${module}): SOURCES is missing, or unknown: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(SEALPOINT_MUTANTS)
    sealpoint_mutate_sources(arg_SOURCES)
  endif()
  set(objects sealpoint_${module}_objects)
  add_library(${objects} OBJECT ${arg_SOURCES})
  target_link_libraries(
    ${objects}
    PRIVATE sealpoint_warnings
    PUBLIC sealpoint_headers ${arg_LINK})
  target_compile_options(${objects} PRIVATE ${sealpoint_mutants_options} ${sealpoint_fuzzed_options})
  if(arg_COMPONENT)
    set_target_properties(${objects} PROPERTIES EXCLUDE_FROM_ALL ON) # built with its library
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY SEALPOINT_MODULE_OBJECTS ${objects})
  # Who links the library needs the third-party libraries, but none of our build-only targets.
  foreach(library IN LISTS arg_LINK)
    get_target_property(is_imported ${library} IMPORTED)
    if(is_imported)
      set_property(GLOBAL APPEND PROPERTY SEALPOINT_THIRD_PARTY ${library})
    endif()
  endforeach()
endfunction()

# sealpoint_module_closure(<variable> <module>...): the modules and all that they may include, as object libraries.
function(sealpoint_module_closure variable)
  set(pending ${ARGN})
  set(closure "")
  while(pending)
    list(POP_FRONT pending module)
    if(NOT module IN_LIST sealpoint_modules)
      message(FATAL_ERROR "No module ${module} in cmake/module_edges.txt")
    endif()
    if(NOT module IN_LIST closure)
      list(APPEND closure ${module})
      list(APPEND pending ${sealpoint_edges_${module}})
    endif()
  endwhile()
  set(objects "")
  foreach(module IN LISTS closure)
    if(TARGET sealpoint_${module}_objects)
      list(APPEND objects sealpoint_${module}_objects)
    endif()
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()

# sealpoint_add_library(): the targets for users, made of all module objects.
#   sealpoint::sealpoint  the library
#   sealpoint::mpi        the library and its adapter of the MPI that was found; an error if none was
#   sealpoint::s3         the client of S3, a library that links the first; an error without what it needs
#   sealpoint::c          the C API, if SEALPOINT_BUILD_C: a shared library that holds all it needs of the others
#   sealpoint::c_mpi      the C API and its adapter of MPI, as sealpoint::mpi
#   sealpoint::fortran    the Fortran module, if there is a Fortran compiler and the tests or examples are built
# Tests that look inside use sealpoint_whole: a shared library hides what is not public.
function(sealpoint_add_library)
  get_property(objects GLOBAL PROPERTY SEALPOINT_MODULE_OBJECTS)
  get_property(third_party GLOBAL PROPERTY SEALPOINT_THIRD_PARTY)
  if(third_party)
    list(REMOVE_DUPLICATES third_party)
  endif()
  list(TRANSFORM objects REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")

  add_library(sealpoint ${objects})
  add_library(sealpoint::sealpoint ALIAS sealpoint)
  target_compile_features(sealpoint PUBLIC cxx_std_20)
  target_include_directories(sealpoint PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  target_link_libraries(
    sealpoint
    PUBLIC Threads::Threads ${CMAKE_DL_LIBS}
    PRIVATE ${third_party})
  set_target_properties(sealpoint PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                                             SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

  if(BUILD_SHARED_LIBS)
    target_compile_definitions(sealpoint PUBLIC SEALPOINT_SHARED)
    add_library(sealpoint_whole STATIC EXCLUDE_FROM_ALL ${objects})
    set_target_properties(sealpoint_whole PROPERTIES LINKER_LANGUAGE CXX)
    target_link_libraries(sealpoint_whole PUBLIC sealpoint_headers ${third_party})
  else()
    add_library(sealpoint_whole INTERFACE)
    target_link_libraries(sealpoint_whole INTERFACE sealpoint sealpoint_headers)
  endif()

  set(adapters sealpoint_mpi)
  if(SEALPOINT_BUILD_C)
    sealpoint_add_c_library()
    list(APPEND adapters sealpoint_c_mpi)
  endif()
  if(SEALPOINT_HAVE_MPI)
    include(SealpointMpi)
  endif()
  foreach(adapter IN LISTS adapters)
    string(REPLACE "sealpoint_" "sealpoint::" name ${adapter})
    if(SEALPOINT_HAVE_MPI)
      target_link_libraries(${adapter} PRIVATE sealpoint_warnings)
    else()
      add_library(${adapter} INTERFACE)
      # No such target: whoever links sealpoint::mpi reads its name in the error.
      target_link_libraries(${adapter} INTERFACE "${name} needs MPI, which is not here or off by SEALPOINT_WITH_MPI")
    endif()
    add_library(${name} ALIAS ${adapter})
  endforeach()
  if(SEALPOINT_HAVE_FORTRAN)
    set(sealpoint_fortran_dir ${PROJECT_SOURCE_DIR}/fortran)
    include(SealpointFortran)
    add_library(sealpoint::fortran ALIAS sealpoint_fortran)
  endif()

  if(SEALPOINT_HAVE_S3)
    add_library(sealpoint_s3 $<TARGET_OBJECTS:sealpoint_s3_objects>)
    target_link_libraries(
      sealpoint_s3
      PUBLIC sealpoint
      PRIVATE CURL::libcurl OpenSSL::Crypto EXPAT::EXPAT)
    set_target_properties(sealpoint_s3 PROPERTIES EXPORT_NAME s3_library LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                                                  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
    if(NOT PROJECT_IS_TOP_LEVEL AND NOT SEALPOINT_INSTALL)
      set_target_properties(sealpoint_s3 PROPERTIES EXCLUDE_FROM_ALL ON) # built if something links it
    endif()
  else()
    add_library(sealpoint_s3 INTERFACE)
    target_link_libraries(
      sealpoint_s3 INTERFACE "sealpoint::s3 needs libcurl, OpenSSL, Expat and nlohmann-json, or is off by SEALPOINT_WITH_S3")
  endif()
  add_library(sealpoint::s3 ALIAS sealpoint_s3)

endfunction()

# Nothing but sealpoint_* is to be seen of it: other modules of a process may have other versions of the same libraries.
function(sealpoint_add_c_library)
  add_library(sealpoint_c SHARED $<TARGET_OBJECTS:sealpoint_c_objects>)
  add_library(sealpoint::c ALIAS sealpoint_c)
  target_include_directories(sealpoint_c INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  target_link_libraries(sealpoint_c PRIVATE sealpoint_whole)
  if(SEALPOINT_C_HAS_S3)
    target_sources(sealpoint_c PRIVATE $<TARGET_OBJECTS:sealpoint_s3_objects>)
    target_link_libraries(sealpoint_c PRIVATE CURL::libcurl OpenSSL::Crypto EXPAT::EXPAT)
  endif()
  set(exports ${PROJECT_SOURCE_DIR}/lib/c/exports.map)
  target_link_options(sealpoint_c PRIVATE -Wl,--version-script=${exports})
  set_property(TARGET sealpoint_c APPEND PROPERTY LINK_DEPENDS ${exports})
  # The first number is that of the ABI.
  set_target_properties(sealpoint_c PROPERTIES EXPORT_NAME c LINKER_LANGUAGE CXX VERSION 1.${PROJECT_VERSION} SOVERSION 1)
endfunction()
