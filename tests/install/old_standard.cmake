# SPDX-License-Identifier: Apache-2.0
# With C++17 each public header gives one clear error, and nothing that follows from it.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
set(said "error: (#error )?\"Sealpoint needs C[+][+]20: compile with -std=c[+][+]20 or later\"")
file(GLOB headers RELATIVE ${PREFIX}/include/sealpoint ${PREFIX}/include/sealpoint/*.h)
list(FILTER headers EXCLUDE REGEX "^mpi_")  # need the flags of MPI, and include the others
if(NOT headers)
  message(FATAL_ERROR "No headers in ${PREFIX}")
endif()
foreach(header IN LISTS headers)
  set(source ${WORK_DIR}/old_standard.cc)
  file(WRITE ${source} "#include <sealpoint/${header}>\n")
  expect_failure("${said}" ${COMPILER} -std=c++17 -fsyntax-only -fdiagnostics-color=never -I ${PREFIX}/include ${source})
  string(REGEX MATCHALL "error: [^\n]*" errors "${LAST_OUTPUT}")
  list(FILTER errors EXCLUDE REGEX "Sealpoint needs C|sealpoint_needs_cxx20")
  if(errors)
    message(FATAL_ERROR "sealpoint/${header} gives other errors, too: ${errors}")
  endif()
endforeach()
