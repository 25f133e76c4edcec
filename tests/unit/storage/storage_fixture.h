// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_UNIT_STORAGE_STORAGE_FIXTURE_H_
#define SEALPOINT_TESTS_UNIT_STORAGE_STORAGE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/storage.h"
#include "tests/support/process/temp_dir.h"

namespace sealpoint::testing {

enum class StorageKind : std::uint8_t { kPosix, kMemory, kObjects };

// One test for every kind of storage: an empty directory of each. What an object store does
// otherwise is declared in storage_fixture.cc.
class StorageTest : public ::testing::TestWithParam<StorageKind> {
 protected:
  StorageTest();
  void SetUp() override;

  const TempDir temp_;
  const std::shared_ptr<Storage> storage_;
  const std::string root_;
  std::unique_ptr<Directory> directory_;
};

std::string StorageName(const ::testing::TestParamInfo<StorageKind>& info);

// Makes a file with this content, synced and closed. Fails the test on any error.
void WriteFile(Directory& directory, std::string_view name, std::string_view content);

// The whole content; fails the test on any error.
std::string ReadFile(const Directory& directory, std::string_view name);

// Names of all entries, in the order of List().
std::vector<std::string> Names(const Directory& directory);

}  // namespace sealpoint::testing

#define SEALPOINT_FOR_ALL_STORAGES(suite)                                            \
  INSTANTIATE_TEST_SUITE_P(                                                          \
      Storages, suite,                                                               \
      ::testing::Values(testing::StorageKind::kPosix, testing::StorageKind::kMemory, \
                        testing::StorageKind::kObjects),                             \
      testing::StorageName)

#endif  // SEALPOINT_TESTS_UNIT_STORAGE_STORAGE_FIXTURE_H_
