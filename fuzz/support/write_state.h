// SPDX-License-Identifier: Apache-2.0
//
// A state to save, described by an input: tensors in regions, objects, options, and the writer of
// each part. Now and then something in it is illegal.
#ifndef SEALPOINT_FUZZ_SUPPORT_WRITE_STATE_H_
#define SEALPOINT_FUZZ_SUPPORT_WRITE_STATE_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/support/take_layout.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/commit.h"

namespace sealpoint::fuzz {

struct WrittenTensor {
  TensorSpec spec;
  Bytes bytes;  // dense
};

struct WrittenObject {
  std::string name;
  std::string media_type;
  Bytes bytes;
  Codec codec = Codec::kNone;
};

// One call of a writer: a region of a tensor, an empty tensor (no region), or an object (no
// tensor).
struct WrittenPart {
  std::size_t writer = 0;
  const WrittenTensor* tensor = nullptr;
  std::optional<Region> region;
  MemoryLayout layout;
  const WrittenObject* object = nullptr;
};

struct WrittenState {
  std::vector<std::unique_ptr<WrittenTensor>> tensors;
  std::vector<std::unique_ptr<WrittenObject>> objects;
  std::vector<WrittenPart> parts;  // in the order of the calls
  std::size_t writer_count = 1;
  std::uint64_t buffer_size = 4096;
  std::uint64_t blob_size_max = 64 * kGiB;
  AttemptId blob_attempt{};  // that writers know
  bool has_null_source = false;
  CommitOptions commit;
  bool is_legal = true;
};

std::uint32_t ElementSizeOf(const TensorSpec& spec);

WrittenState TakeState(ByteSpan input);

// The memory from which a writer takes a region.
Bytes SourceMemory(const WrittenTensor& tensor, const Region& region, const MemoryLayout& layout);

}  // namespace sealpoint::fuzz

#endif  // SEALPOINT_FUZZ_SUPPORT_WRITE_STATE_H_
