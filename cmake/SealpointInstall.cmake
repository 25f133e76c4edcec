# SPDX-License-Identifier: Apache-2.0
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(sealpoint_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sealpoint)

target_include_directories(sealpoint PUBLIC $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS sealpoint EXPORT sealpointTargets)
install(EXPORT sealpointTargets NAMESPACE sealpoint:: DESTINATION ${sealpoint_config_dir})
# Of its own, so that only who asks for the component needs libcurl.
if(SEALPOINT_HAVE_S3)
  install(TARGETS sealpoint_s3 EXPORT sealpointS3Targets)
  install(EXPORT sealpointS3Targets NAMESPACE sealpoint:: DESTINATION ${sealpoint_config_dir})
endif()
# Of its own, so that only who asks for the component c needs no libzstd.
if(SEALPOINT_BUILD_C)
  install(TARGETS sealpoint_c EXPORT sealpointCTargets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT sealpointCTargets NAMESPACE sealpoint:: DESTINATION ${sealpoint_config_dir})
  file(GLOB headers ${PROJECT_SOURCE_DIR}/include/*.h)
  install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/fortran DESTINATION ${CMAKE_INSTALL_DATADIR}/sealpoint)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/SealpointFortran.cmake DESTINATION ${sealpoint_config_dir})
endif()
set(sealpoint_left_out_headers "")
foreach(module IN LISTS sealpoint_left_out_modules)
  file(STRINGS ${sealpoint_edges_file} lines REGEX "^include/sealpoint [^ ]+ ${module}$")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^include/sealpoint ([^ ]+) .*$" "\\1" header "${line}")
    list(APPEND sealpoint_left_out_headers PATTERN ${header} EXCLUDE)
  endforeach()
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/sealpoint DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${sealpoint_left_out_headers})
# Whoever keeps checkpoints for years needs the format beside the program.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/spec ${PROJECT_SOURCE_DIR}/schema DESTINATION ${CMAKE_INSTALL_DATADIR}/sealpoint)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(sealpoint_installed_fortran_dir ${CMAKE_INSTALL_DATADIR}/sealpoint/fortran)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/sealpointConfig.cmake.in sealpointConfig.cmake
                              INSTALL_DESTINATION ${sealpoint_config_dir} PATH_VARS sealpoint_installed_fortran_dir)
write_basic_package_version_file(sealpointConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sealpointConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/sealpointConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/SealpointMpi.cmake ${PROJECT_SOURCE_DIR}/cmake/SealpointZstd.cmake
        DESTINATION ${sealpoint_config_dir})

# Relative, so that an installation can be moved.
file(RELATIVE_PATH sealpoint_pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
# A program needs what the static library uses even without pkg-config --static; the shared one brings it itself, and its
# headers must know that it is shared.
if(BUILD_SHARED_LIBS)
  set(sealpoint_pc_private .private)
  set(sealpoint_pc_dl "")
  set(sealpoint_pc_definitions " -DSEALPOINT_SHARED")
else()
  set(sealpoint_pc_private "")
  set(sealpoint_pc_dl " -ldl")
  set(sealpoint_pc_definitions "")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/sealpoint.pc.in sealpoint.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sealpoint.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(SEALPOINT_HAVE_S3)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/sealpoint-s3.pc.in sealpoint-s3.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sealpoint-s3.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
if(SEALPOINT_BUILD_C)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/sealpoint-c.pc.in sealpoint-c.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sealpoint-c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
