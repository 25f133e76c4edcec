// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_FLAT_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_FLAT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/interop/foreign/arguments.h"
#include "lib/interop/foreign/budget.h"
#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/torch_values.h"
#include "sealpoint/interop.h"

namespace sealpoint::internal::foreign {

// Tensors of one dimension in several files, one after the other: partitions of a flattened state.
class Flat {
 public:
  // Throws std::invalid_argument if the tensor is not dense, or has another number of dimensions,
  // or another dtype than the others.
  void Append(ForeignTensor tensor) {
    const bool is_plain = tensor.shape.size() == 1 &&
                          (tensor.parts.empty() ||
                           (!tensor.parts.front().strides && !tensor.parts.front().flips_sign));
    if (!is_plain) {
      InvalidValue(StrCat("a partition has the shape ", ShapeToString(tensor.shape),
                          ", expected one dense dimension"));
    }
    if (!tensors_.empty() && tensor.dtype != tensors_.front().dtype) {
      InvalidValue("the partitions have different dtypes");
    }
    begins_.push_back(size_);
    size_ = CappedAdd(size_, tensor.shape.front());
    tensors_.push_back(std::move(tensor));
  }

  std::uint64_t size() const { return size_; }
  // True if each tensor that has some of the first `used` elements begins at the same one.
  bool IsDividedAs(const Flat& other, std::uint64_t used) const {
    const auto end = std::ranges::lower_bound(other.begins_, used);
    return begins_.size() == other.begins_.size() && size_ >= used &&
           std::equal(other.begins_.begin(), end, begins_.begin());
  }

  // Adds `count` elements from `begin` to a tensor, as its elements from `first`, in row-major
  // order. Sets the dtype of a tensor without one. Throws std::invalid_argument if there are fewer
  // elements, or if they have another dtype.
  void AddTo(ForeignTensor& tensor, std::uint64_t begin, std::uint64_t count, std::uint64_t first,
             Budget& budget, const std::string& path) const {
    if (begin > size_ || count > size_ - begin) {
      InvalidValue(StrCat("the partitions have ", size_, " elements, expected ",
                          CappedAdd(begin, count), " at least"));
    }
    auto i = static_cast<std::size_t>(std::ranges::upper_bound(begins_, begin) - begins_.begin());
    for (const std::uint64_t end = begin + count; begin < end; ++i) {
      const ForeignTensor& stored = tensors_[i - 1];
      const std::uint64_t taken = std::min(end, begins_[i - 1] + stored.shape.front()) - begin;
      if (taken == 0) continue;
      if (tensor.dtype == DType::kNone) tensor.dtype = stored.dtype;
      if (tensor.dtype != stored.dtype) InvalidValue("the partitions have different dtypes");
      budget.Add(kPartCost, path);
      ForeignPart part = stored.parts.front();
      part.begin += (begin - begins_[i - 1]) * DTypeSizeBytes(stored.dtype);
      part.box = {.offset = Shape(tensor.shape.size(), 0), .extent = tensor.shape};
      if (taken < ElementCount(tensor.shape).value()) part.run = {first, first + taken};
      tensor.parts.push_back(std::move(part));
      first += taken;
      begin += taken;
    }
  }

 private:
  static constexpr std::uint64_t kPartCost = 256;  // memory of a part, in bytes

  std::vector<ForeignTensor> tensors_;
  std::vector<std::uint64_t> begins_;
  std::uint64_t size_ = 0;
};

inline void AppendTo(Flat& flat, const TorchArchive& archive, const Pickled& value) {
  std::optional<ForeignTensor> tensor = TensorIn(archive, value);
  if (!tensor) InvalidValue("a partition is not a tensor");
  flat.Append(*std::move(tensor));
}

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_FLAT_H_
