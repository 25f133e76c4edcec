// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_UNFOLDING_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_UNFOLDING_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "tools/ckpt-inspect/foreign/bytes.h"
#include "tools/ckpt-inspect/foreign/failure.h"

namespace sealpoint::tools {

// Bounds what a pickle unfolds to. It may name one value in many places, each of which costs: a
// few kilobytes could take all memory there is.
class Unfolding {
 public:
  // `stored_size`: of what is unfolded, in bytes; `path`: of its file, for the error.
  Unfolding(std::uint64_t stored_size, std::string path)
      : max_(std::max(kBytesMin, CappedMul(kFactor, stored_size))), path_(std::move(path)) {}

  // So many bytes more. Throws LimitExceeded.
  void Add(std::uint64_t bytes) {
    bytes_ = CappedAdd(bytes_, bytes);
    if (bytes_ <= max_) return;
    Fail(Code::kLimitExceeded, path_, "its values unfold to more than {} bytes", max_);
  }

 private:
  static constexpr std::uint64_t kBytesMin = std::uint64_t{16} << 20;
  static constexpr std::uint64_t kFactor = 64;

  const std::uint64_t max_;
  const std::string path_;
  std::uint64_t bytes_ = 0;
};

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_FOREIGN_UNFOLDING_H_
