# SPDX-License-Identifier: Apache-2.0
# sealpoint_schema: the code that the flatc found here generates from schema/index.fbs.
# Generated at build time, because generated code must match the installed FlatBuffers headers.
if(NOT EXISTS ${PROJECT_SOURCE_DIR}/schema/index.fbs)
  return()
endif()

# Cross-compiled, FlatBuffers brings a flatc for the other processor.
if(TARGET flatbuffers::flatc AND NOT CMAKE_CROSSCOMPILING)
  set(sealpoint_flatc flatbuffers::flatc)
else()
  find_program(SEALPOINT_FLATC flatc REQUIRED)
  set(sealpoint_flatc ${SEALPOINT_FLATC})
endif()
set(sealpoint_generated ${PROJECT_BINARY_DIR}/generated)
set(sealpoint_schema_header ${sealpoint_generated}/schema/index_generated.h)

add_custom_command(
  OUTPUT ${sealpoint_schema_header}
  COMMAND ${sealpoint_flatc} --cpp --scoped-enums -o ${sealpoint_generated}/schema
          ${PROJECT_SOURCE_DIR}/schema/index.fbs
  DEPENDS ${PROJECT_SOURCE_DIR}/schema/index.fbs
  COMMENT "Generating schema/index_generated.h"
  VERBATIM)
add_custom_target(sealpoint_schema_generated DEPENDS ${sealpoint_schema_header})

# Included as "schema/index_generated.h"; a system folder, so that our warnings do not apply to generated code.
add_library(sealpoint_schema INTERFACE)
add_dependencies(sealpoint_schema sealpoint_schema_generated)
get_target_property(sealpoint_flatbuffers_includes flatbuffers::flatbuffers INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(sealpoint_schema SYSTEM INTERFACE ${sealpoint_generated})
if(sealpoint_flatbuffers_includes)
  target_include_directories(sealpoint_schema SYSTEM INTERFACE ${sealpoint_flatbuffers_includes})
endif()
# A program may have another FlatBuffers: classes of one name and another layout would be merged by the linker.
target_compile_definitions(sealpoint_schema INTERFACE flatbuffers=sealpoint_flatbuffers)
