// SPDX-License-Identifier: Apache-2.0
//
// The steps of Metadata::Decode, in order: limits and FlatBuffers verifier, fields and alignment,
// counts, semantic pass. Each assumes that those before it passed.
#ifndef SEALPOINT_LIB_METADATA_VERIFY_METADATA_H_
#define SEALPOINT_LIB_METADATA_VERIFY_METADATA_H_

#include <cstdint>
#include <string_view>
#include <utility>

#include "lib/base/errors.h"
#include "lib/metadata/generated_types.h"
#include "lib/metadata/metadata.h"

namespace sealpoint::internal {

// What is under verification. `manifest` or `index` is the root of the buffer, the other is null.
struct VerifyInput {
  ByteSpan buffer;
  const Limits& limits;
  const fb::Manifest* manifest = nullptr;
  const fb::Index* index = nullptr;
  Metadata::ManifestCounts manifest_counts;

  const flatbuffers::Vector<flatbuffers::Offset<fb::Tensor>>& tensors() const {
    return index != nullptr ? *index->tensors() : *manifest->tensors();
  }
  const flatbuffers::Vector<flatbuffers::Offset<fb::Object>>& objects() const {
    return index != nullptr ? *index->objects() : *manifest->objects();
  }

  // A violated rule at a table or vector of the buffer.
  template <typename... Pieces>
  Status Fault(Code code, std::string_view rule, const void* where, const Pieces&... pieces) const {
    const auto* at = static_cast<const std::byte*>(where);
    return RuleError(code, rule, pieces...)
        .AtOffset(static_cast<std::uint64_t>(at - buffer.data()));
  }
  template <typename... Pieces>
  Status Corrupt(std::string_view rule, const void* where, const Pieces&... pieces) const {
    return Fault(Code::kCorrupt, rule, where, pieces...);
  }
};

// R-IDX-01 and R-IDX-02. Afterwards the root may be used.
Status VerifyBuffer(MetadataKind kind, ByteSpan buffer, const Limits& limits);

// R-IDX-03, and of R-IDX-02 the alignment of vectors, which the FlatBuffers verifier leaves out.
Status VerifyFields(const VerifyInput& input);

// R-IDX-04 to R-IDX-23. Yields the number of shards, those of objects included.
Result<std::uint64_t> VerifyMeaning(const VerifyInput& input);

// A tensor whose numbers were checked (R-IDX-09 to R-IDX-11).
struct CheckedTensor {
  const fb::Tensor* table = nullptr;
  Numbers shape;
  std::uint64_t element_count = 0;
  std::uint64_t element_size = 0;
};

// R-IDX-14 and R-IDX-15. Work and memory are bounded by the number of the tensor's shards.
Status VerifyGrid(const VerifyInput& input, const CheckedTensor& tensor);

// R-IDX-13 and R-IDX-16 to R-IDX-18, and of R-IDX-04 the limits of a box list. Precondition: at
// least one shard.
Status VerifyBoxList(const VerifyInput& input, const CheckedTensor& tensor);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_METADATA_VERIFY_METADATA_H_
