// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_FIRST_NAMES_H_
#define SEALPOINT_LIB_BASE_FIRST_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

namespace sealpoint::internal {

// Of any number of names that come in any order, the first few; the others are only counted.
class FirstNames {
 public:
  explicit FirstNames(std::size_t kept_max) : kept_max_(kept_max) {}

  void Add(std::string_view name) {
    ++count_;
    if (kept_.size() == kept_max_ && name >= *kept_.rbegin()) return;
    kept_.emplace(name);
    if (kept_.size() > kept_max_) kept_.erase(std::prev(kept_.end()));
  }

  const std::set<std::string>& kept() const { return kept_; }  // ascending
  std::uint64_t count() const { return count_; }               // of all

 private:
  const std::size_t kept_max_;
  std::set<std::string> kept_;
  std::uint64_t count_ = 0;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_BASE_FIRST_NAMES_H_
