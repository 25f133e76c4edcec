// SPDX-License-Identifier: Apache-2.0
//
// The steps of Metadata::Decode, in order: limits and the FlatBuffers verifier, fields and
// alignment, counts, semantic pass. Each relies on those before it: the verifier makes offsets and
// lengths safe to follow, the alignment makes numbers safe to read in place, the counts bound the
// work of the semantic pass. Moving a check up may read memory that nothing has checked yet.
#ifndef SEALPOINT_LIB_METADATA_VERIFY_METADATA_H_
#define SEALPOINT_LIB_METADATA_VERIFY_METADATA_H_

#include <cstdint>
#include <string_view>
#include <utility>

#include "lib/base/errors.h"
#include "lib/metadata/generated_types.h"
#include "lib/metadata/metadata.h"

namespace sealpoint::internal::metadata {

// The verified buffer. `manifest` or `index` is its root; the other is null.
struct VerifyInput {
  ByteSpan buffer;
  const Limits& limits;
  AnnouncedFields announced{};
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
  template <typename... Parts>
  Status Fault(Code code, std::string_view rule, const void* where, const Parts&... parts) const {
    const auto* at = static_cast<const std::byte*>(where);
    return RuleError(code, rule, parts...).AtOffset(static_cast<std::uint64_t>(at - buffer.data()));
  }
  template <typename... Parts>
  Status Corrupt(std::string_view rule, const void* where, const Parts&... parts) const {
    return Fault(Code::kCorrupt, rule, where, parts...);
  }
};

// Checks R-IDX-01 and R-IDX-02. Afterwards the root may be used.
Status VerifyBuffer(MetadataKind kind, ByteSpan buffer, const Limits& limits,
                    const AnnouncedFields& announced);

// Checks R-IDX-03, and the part of R-IDX-02 that the FlatBuffers verifier leaves out: the alignment
// of vectors.
Status VerifyFields(const VerifyInput& input);

// Checks R-IDX-04 to R-IDX-24. Returns the number of shards, including those of objects.
Result<std::uint64_t> VerifyMeaning(const VerifyInput& input);

// Checks R-ATT-01 to R-ATT-05. Precondition: VerifyMeaning passed.
Status VerifyAttributes(const VerifyInput& input);

// A tensor that passed R-IDX-09 to R-IDX-11.
struct CheckedTensor {
  const fb::Tensor* table = nullptr;
  Numbers shape;
  std::uint64_t element_count = 0;
  std::uint64_t element_size = 0;
};

// Checks R-IDX-14 and R-IDX-15. Work and memory are bounded by the number of the tensor's shards.
Status VerifyGrid(const VerifyInput& input, const CheckedTensor& tensor);

// Checks R-IDX-13, R-IDX-16 to R-IDX-18, and the limits that R-IDX-04 sets for a box list.
// Precondition: at least one shard.
Status VerifyBoxList(const VerifyInput& input, const CheckedTensor& tensor);

}  // namespace sealpoint::internal::metadata

#endif  // SEALPOINT_LIB_METADATA_VERIFY_METADATA_H_
