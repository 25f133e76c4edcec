// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/pinned_base.h"

#include <optional>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"

namespace sealpoint::internal::writer {

Result<PinnedBase> PinnedBase::Open(const Storage& storage, const std::string& path,
                                    const Limits& limits) {
  Result<container::CommittedFiles> files =
      container::OpenCommitted(storage, path, limits, /*check_files=*/true);
  if (!files.ok()) return std::move(files).error().Prefixed("the base");
  const BaseRef ref = container::PinOf(*files);
  if (ref.depth > format::kDeltaDepthMax) {
    return InvalidArgument("the base has ", ref.depth - 1,
                           " bases below it, the most that a chain may have: save without a base")
        .AtPath(path);
  }
  return PinnedBase(std::move(files).value(), ref);
}

Status PinnedBase::CheckTensors(const metadata::Metadata& index) const {
  const metadata::Metadata& base = files_.index.metadata;
  for (std::size_t i = 0; i < index.tensor_count(); ++i) {
    const metadata::TensorView tensor = index.tensor(i);
    const std::optional<std::size_t> number = base.FindTensor(tensor.name());
    if (number && base.tensor(*number).dtype() == tensor.dtype() &&
        base.tensor(*number).element_size() == tensor.element_size() &&
        base.tensor(*number).shape() == tensor.shape()) {
      continue;
    }
    return InvalidArgument("the base has ", number ? "another dtype or shape of" : "no",
                           " this tensor: save without a base")
        .AtTensor(tensor.name());
  }
  return {};
}

}  // namespace sealpoint::internal::writer
