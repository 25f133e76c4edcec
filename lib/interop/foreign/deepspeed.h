// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_DEEPSPEED_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_DEEPSPEED_H_

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "lib/interop/foreign/arguments.h"
#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/files.h"
#include "lib/interop/foreign/flat.h"
#include "lib/interop/foreign/flat_optimizer.h"
#include "sealpoint/interop.h"

// The two forms of DeepSpeed's directories: partitions of the ranks, and universal checkpoints.

namespace sealpoint::internal::foreign {

inline constexpr std::string_view kUniversal = "zero";  // directory of a universal checkpoint

struct Parameter {
  std::string name;
  Shape shape;
  std::uint64_t count = 0;
};

using Parameters = std::vector<std::vector<Parameter>>;  // by group

// The entries of a mapping in a mapping; none if there is none.
inline const PickledPairs& EntriesOf(const Pickled& mapping, std::string_view key) {
  static const PickledPairs none;
  const Pickled* const value = Find(mapping, key);
  return value != nullptr ? PairsOf(*value) : none;
}

inline std::uint64_t AlignUp(std::uint64_t value, std::uint64_t step) {
  return CappedAdd(value / step * step, value % step == 0 ? 0 : step);
}

// Names and shapes are those of these partitions only if they use them up, but for an alignment.
// The partitions of moments begin where those of the weights do.
inline void CheckEnd(std::uint64_t used, const Flat& stored, const Flat& weights,
                     std::uint64_t alignment) {
  if (AlignUp(used, alignment) != AlignUp(stored.size(), alignment)) {
    InvalidValue(
        StrCat("the parameters have ", used, " elements, and the partitions ", stored.size()));
  }
  if (!stored.IsDividedAs(weights, used)) {
    InvalidValue("the optimizer's state is divided in another way than the weights");
  }
}

inline ForeignTensor TensorOf(const Parameter& parameter, const Flat& flat, std::uint64_t begin,
                              SourceFiles& files, const std::string& path) {
  ForeignTensor tensor{.shape = parameter.shape};
  flat.AddTo(tensor, begin, parameter.count, 0, files.budget(), path);
  return tensor;
}

template <typename Step>
void Checked(const std::string& path, const Step& step) {
  try {
    step();
  } catch (const std::invalid_argument& error) {
    Fail(Code::kCorrupt, path, "not as DeepSpeed writes it: ", error.what());
  }
}

// Reads each parameter of a universal checkpoint, and the optimizer's state of all.
void ReadUniversal(const std::string& directory, const Parameters& parameters, SourceFiles& files,
                   FlatOptimizer& optimizer,
                   const std::function<void(const Parameter&, ForeignTensor)>& add);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_DEEPSPEED_H_
