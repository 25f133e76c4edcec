# SPDX-License-Identifier: Apache-2.0
# Defines sealpoint::zstd, the zstd that was found: static if SEALPOINT_USE_STATIC_LIBS is set, else rather the shared one.
# For the build and for the installed package, since the names of zstd's targets differ between its versions.
if(NOT TARGET sealpoint::zstd)
  set(sealpoint_zstd_candidates zstd::libzstd_shared zstd::libzstd zstd::libzstd_static)
  if(SEALPOINT_USE_STATIC_LIBS)
    list(REVERSE sealpoint_zstd_candidates)
  endif()
  foreach(candidate IN LISTS sealpoint_zstd_candidates)
    if(TARGET ${candidate})
      add_library(sealpoint::zstd INTERFACE IMPORTED ${SEALPOINT_TARGETS_GLOBAL})
      set_target_properties(sealpoint::zstd PROPERTIES INTERFACE_LINK_LIBRARIES ${candidate})
      break()
    endif()
  endforeach()
  unset(sealpoint_zstd_candidates)
endif()
