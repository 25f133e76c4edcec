// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_STATE_SAVED_STATE_H_
#define SEALPOINT_TESTS_SUPPORT_STATE_SAVED_STATE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/blob_writer.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/commit.h"
#include "sealpoint/engine.h"
#include "sealpoint/storage.h"
#include "tests/support/container/rule_matchers.h"

// Small steps that tests of saving share. Each aborts if a step that is not under test fails.

namespace sealpoint::testing {

// A few small buffers, so that a test of a few hundred KiB fills and waits for many.
std::unique_ptr<Engine> SmallEngine(std::shared_ptr<Storage> storage, int buffer_count = 4,
                                    std::uint64_t buffer_size_bytes = 16 * kKiB);

std::unique_ptr<Checkpoint> OpenFrom(const std::shared_ptr<Storage>& storage,
                                     const std::string& directory);
// The verified bytes of one tensor, row-major.
Bytes LoadWhole(const Checkpoint& checkpoint, std::string_view tensor);
Bytes LoadRegion(const Checkpoint& checkpoint, std::string_view tensor, const Region& region);

// "" if a full verification finds the checkpoint valid and nothing left over, else its findings.
std::string FindDamage(const std::shared_ptr<Storage>& storage, const std::string& directory);

// Sorted; empty if the directory is not there.
std::vector<std::string> FileNames(const Storage& storage, const std::string& directory);
Bytes ReadWholeFile(const Storage& storage, const std::string& directory, const std::string& name);

// A tensor of one dimension of bytes with chunks of 4 KiB.
TensorSpec ByteTensor(std::string name, std::uint64_t size);
// [begin, end) of one dimension.
Region Slice(std::uint64_t begin, std::uint64_t end);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_STATE_SAVED_STATE_H_
