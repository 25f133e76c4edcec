// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COMPARE_NODE_H_
#define SEALPOINT_LIB_COMPARE_NODE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/digest/hasher.h"
#include "sealpoint/bytes.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal::compare {

// What the identities of contents hash as one (spec/content-digest.md, spec/fingerprint.md): a tag,
// then numbers, texts and digests.
class Node {
 public:
  void Begin(std::string_view tag) {
    std::array<char, 16> text{};
    std::copy(tag.begin(), tag.end(), text.begin());
    Add(AsBytes({text.data(), text.size()}));
  }
  template <typename Number>
  void AddNumber(Number number) {
    std::array<std::byte, sizeof(Number)> bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes.at(i) = static_cast<std::byte>((std::uint64_t{number} >> (8 * i)) & 0xff);
    }
    Add(bytes);
  }
  void AddText(std::string_view text) {
    AddNumber(static_cast<std::uint32_t>(text.size()));
    Add(AsBytes(text));
  }
  // Name, dtype, element size and shape.
  void AddTensor(const TensorInfo& info) {
    AddText(info.name);
    AddNumber(static_cast<std::uint16_t>(info.dtype));
    AddNumber(info.element_size);
    AddNumber(static_cast<std::uint32_t>(info.shape.size()));
    for (const std::uint64_t extent : info.shape) AddNumber(extent);
  }
  void Add(ByteSpan bytes) { hasher_.Update(bytes); }
  void Add(const std::vector<Digest>& digests) {
    for (const Digest& digest : digests) Add(digest.bytes);
  }
  Digest Finish() { return hasher_.Finish(); }

 private:
  digest::Hasher hasher_;
};

}  // namespace sealpoint::internal::compare

#endif  // SEALPOINT_LIB_COMPARE_NODE_H_
