// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_UNIT_VERIFY_VERIFY_FIXTURE_H_
#define SEALPOINT_TESTS_UNIT_VERIFY_VERIFY_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "sealpoint/verify.h"
#include "tests/support/container/mini_container.h"

namespace sealpoint::testing {

// Two blobs with a bit of everything: a grid of runs over both, a coded shard of several chunks, a
// scalar, an object, an empty tensor, an empty object. About 15 KiB.
MiniSpec SmallSpec();

// A container in memory under "ckpt".
class VerifyFixture : public ::testing::Test {
 protected:
  // Builds and stores; replaces what was stored before.
  void Store(const MiniSpec& spec);
  // As Store, after the container's bytes were changed.
  void StoreAgain();
  VerifyReport Check(VerifyLevel level = VerifyLevel::kFull, int threads = 1);
  std::string PathOf(const std::string& name) const { return "ckpt/" + name; }
  std::string BlobPath(int number) { return PathOf(container_.blobs.at(number).name); }

  std::shared_ptr<Storage> storage_ = MemoryStorage();
  MiniContainer container_;
};

// A violation of `rule` in the file `path` at `offset`.
MATCHER_P4(Violates, code, rule, path, offset,
           std::string("is ") + rule + " in " + path + " at " + std::to_string(offset)) {
  *result_listener << "which is " << arg.ToString();
  const Place& place = arg.place();
  return arg.code() == code && place.rule == rule && place.path == path &&
         place.offset.value_or(0) == static_cast<std::uint64_t>(offset);
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_UNIT_VERIFY_VERIFY_FIXTURE_H_
