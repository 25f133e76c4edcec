// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_BUDGET_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_BUDGET_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/failure.h"
#include "lib/safetensors/description.h"

namespace sealpoint::internal::foreign {

// Cost of decoding a pickle, in bytes: at least the memory it takes here or in Python.
namespace pickle_cost {
constexpr std::uint64_t kStep = 16;  // an instruction: places on the stack and in a container
constexpr std::uint64_t kMark = 48;
constexpr std::uint64_t kNumber = 32;
constexpr std::uint64_t kText = 64;
constexpr std::uint64_t kContainer = 128;
constexpr std::uint64_t kPair = 80;
constexpr std::uint64_t kObject = 256;
constexpr std::uint64_t kKept = 160;  // a value stored out of order
}  // namespace pickle_cost

// Memory for the description in files: as configured, or derived from the size of the files.
class Budget {
 public:
  explicit Budget(std::optional<std::uint64_t> told = {})
      : told_(told), max_(told.value_or(safetensors::DescriptionBytesMax(0))) {}

  // Adds to the budget for files of this size.
  void Allow(std::uint64_t file_bytes) {
    max_ = told_.value_or(safetensors::DescriptionBytesMax(file_bytes));
  }
  std::uint64_t max() const { return max_; }

  std::uint64_t used() const { return used_; }
  bool is_spent() const { return used_ > max_; }
  // Throws LimitExceeded. `path`: of the file that costs it.
  void Add(std::uint64_t cost, const std::string& path) {
    used_ = CappedAdd(used_, cost);
    if (used_ <= max_) return;
    throw Failure{safetensors::DescriptionTooLarge(max_).AtPath(path)};
  }
  void Release(std::uint64_t cost) { used_ -= cost; }

 private:
  const std::optional<std::uint64_t> told_;
  std::uint64_t max_ = 0;
  std::uint64_t used_ = 0;
};

// Size of UTF-8 text as a Python string: up to 4 bytes per character if one is not ASCII.
inline std::uint64_t CostOfText(std::string_view text) {
  const bool is_ascii =
      std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  return is_ascii ? text.size() : 4 * text.size();
}

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_BUDGET_H_
