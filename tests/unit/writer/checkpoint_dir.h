// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_UNIT_WRITER_CHECKPOINT_DIR_H_
#define SEALPOINT_TESTS_UNIT_WRITER_CHECKPOINT_DIR_H_

namespace sealpoint::testing {

// Where these tests save, in a storage of their own.
inline constexpr const char* kDir = "checkpoint";

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_UNIT_WRITER_CHECKPOINT_DIR_H_
