// SPDX-License-Identifier: Apache-2.0
#include "lib/base/macros.h"
#include "lib/format/attributes.h"
#include "lib/format/constants.h"
#include "lib/metadata/verify_metadata.h"

namespace sealpoint::internal::metadata {
namespace {

// `total` bounds the work before a set is read, since any number of tables may share one.
Status CheckSet(const VerifyInput& input, const FbBytes* set, std::uint64_t& total) {
  if (set == nullptr) return {};
  total += set->size();
  if (total > format::kAttributesTotalMaxBytes) {
    return input.Corrupt("R-ATT-01", set, "all attributes have more than ",
                         format::kAttributesTotalMaxBytes, " bytes");
  }
  const Status status = format::CheckAttributes(TextOf(set));
  if (status.ok()) return status;
  const auto* at = reinterpret_cast<const std::byte*>(set->data()) + *status.place().offset;
  return input.Fault(status.code(), status.place().rule, at, status.message());
}

}  // namespace

Status VerifyAttributes(const VerifyInput& input) {
  if (!input.announced.attributes) return {};
  std::uint64_t total = 0;
  for (const fb::Tensor* tensor : input.tensors()) {
    Status status = CheckSet(input, tensor->attributes(), total);
    if (!status.ok()) return std::move(status).AtTensor(TextOf(tensor->name()));
  }
  return input.index == nullptr ? Status() : CheckSet(input, input.index->attributes(), total);
}

}  // namespace sealpoint::internal::metadata
