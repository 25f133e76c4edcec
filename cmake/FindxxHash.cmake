# SPDX-License-Identifier: Apache-2.0
# The header of xxHash, in XXHASH_INCLUDE_DIR. xxHash brings no CMake configuration everywhere; pkg-config gives the hint.
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(PC_XXHASH QUIET libxxhash)
endif()
find_path(XXHASH_INCLUDE_DIR xxhash.h HINTS ${PC_XXHASH_INCLUDE_DIRS})
mark_as_advanced(XXHASH_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  xxHash
  REQUIRED_VARS XXHASH_INCLUDE_DIR
  VERSION_VAR PC_XXHASH_VERSION)
