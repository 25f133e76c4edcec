// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_FIRST_FEW_H_
#define SEALPOINT_LIB_BASE_FIRST_FEW_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>

namespace sealpoint::internal {

// The smallest few of any number of values, added in any order; the others are only counted.
template <typename T>
class FirstFew {
 public:
  explicit FirstFew(std::size_t kept_max) : kept_max_(kept_max) {}

  void Add(const T& value) {
    ++count_;
    if (kept_.size() == kept_max_ && value >= *kept_.rbegin()) return;
    kept_.insert(value);
    if (kept_.size() > kept_max_) kept_.erase(std::prev(kept_.end()));
  }

  const std::set<T>& kept() const { return kept_; }  // ascending
  std::uint64_t more() const { return count_ - kept_.size(); }
  std::uint64_t count() const { return count_; }  // of all

 private:
  const std::size_t kept_max_;
  std::set<T> kept_;
  std::uint64_t count_ = 0;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_BASE_FIRST_FEW_H_
