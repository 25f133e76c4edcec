# SPDX-License-Identifier: Apache-2.0
# Sealpoint's sources in a stranger's build: WAY is subdirectory or fetch, further cache entries are in OPTIONS.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
set(folder ${WORK_DIR}/${WAY})
configure_consumer(
  consumer ${folder} -D WAY=${WAY} -D SEALPOINT_SOURCE=${ROOT} -D FETCHCONTENT_SOURCE_DIR_SEALPOINT=${ROOT} -D
  CMAKE_UNITY_BUILD=ON -D CMAKE_UNITY_BUILD_BATCH_SIZE=0 -D SEALPOINT_WITH_CUDA=OFF ${OPTIONS})
run(${CMAKE_COMMAND} --build ${folder})
run(${folder}/consumer)
