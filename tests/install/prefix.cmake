# SPDX-License-Identifier: Apache-2.0
# Installs BUILD_DIR into PREFIX, where the other tests find it.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
file(REMOVE_RECURSE ${PREFIX} ${PREFIX}.before)
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${PREFIX}.before)
# An installation may be moved: nothing in it may hold its own path.
file(RENAME ${PREFIX}.before ${PREFIX})
