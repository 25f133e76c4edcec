// SPDX-License-Identifier: Apache-2.0
//
// Small values as Python has them.
#ifndef SEALPOINT_PYTHON_SRC_VALUES_H_
#define SEALPOINT_PYTHON_SRC_VALUES_H_

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "python/src/status.h"
#include "sealpoint/bytes.h"
#include "sealpoint/dtype.h"
#include "sealpoint/id.h"
#include "sealpoint/read_plan.h"

namespace sealpoint::python {

using Findings = std::vector<std::tuple<std::string, std::string, std::string>>;
Findings FindingsOf(const std::vector<LoadFinding>& findings);

inline nb::object HexOrNone(const Id128& id) {
  return id.is_zero() ? nb::none() : nb::object(Text(id.ToHex()));
}

inline nb::object StepOrNone(std::uint64_t step) {
  return step == kNoStep ? nb::none() : nb::cast(step);
}

inline nb::bytes BytesOf(ByteSpan bytes) { return nb::bytes(bytes.data(), bytes.size()); }

// The content of a bytes object; valid while that lives.
inline ByteSpan SpanOf(const nb::bytes& bytes) {
  return {static_cast<const std::byte*>(bytes.data()), bytes.size()};
}

// Zero if there is none. Throws InvalidArgument.
template <std::derived_from<Id128> T>
T IdOf(const std::optional<std::string>& hex) {
  return hex ? Value(T::FromHex(*hex)) : T{};
}

// (attempt, sequence, directory) of the checkpoint before; the directory is empty if not known.
using Parent = std::optional<std::tuple<std::string, std::uint64_t, std::string>>;
inline std::optional<ParentRef> ParentOf(const Parent& parent) {
  if (!parent) return std::nullopt;
  const auto& [attempt, sequence, directory] = *parent;
  return ParentRef{.attempt = IdOf<AttemptId>(attempt), .sequence = sequence};
}

// Throws InvalidArgument.
inline Codec CodecOf(const std::string& name) {
  for (const Codec codec : {Codec::kNone, Codec::kZstd, Codec::kByteSplitZstd}) {
    if (CodecName(codec) == name) return codec;
  }
  throw StatusError(Status(Code::kInvalidArgument,
                           "codec is " + name + ", expected none, zstd or bytesplit+zstd"));
}

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_VALUES_H_
