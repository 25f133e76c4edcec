// SPDX-License-Identifier: Apache-2.0
//
// Reports that can be pickled, so that they travel between processes: their members one by one, as
// values of Python.
#ifndef SEALPOINT_PYTHON_SRC_PICKLING_H_
#define SEALPOINT_PYTHON_SRC_PICKLING_H_

#include <nanobind/nanobind.h>

#include <cstddef>
#include <new>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "python/src/status.h"
#include "sealpoint/commit.h"
#include "sealpoint/id.h"
#include "sealpoint/phases.h"
#include "sealpoint/read_plan.h"
#include "sealpoint/series.h"
#include "sealpoint/status.h"
#include "sealpoint/verify.h"

namespace sealpoint::python {

// A tuple of references to all members.
inline auto MembersOf(PhaseTime& x) { return std::tie(x.phase, x.seconds, x.bytes); }
inline auto MembersOf(PhaseReport& x) { return std::tie(x.phases); }
inline auto MembersOf(CommitInfo& x) {
  return std::tie(x.directory, x.attempt, x.parent, x.sequence, x.step, x.blob_count,
                  x.tensor_count, x.raw_bytes, x.total_bytes, x.index_bytes, x.report);
}
inline auto MembersOf(PlanSummary& x) {
  return std::tie(x.items, x.bytes_requested, x.bytes_read, x.table_bytes_read, x.files, x.requests,
                  x.chunks, x.amplification);
}
inline auto MembersOf(LoadFinding& x) { return std::tie(x.kind, x.tensor, x.detail); }
inline auto MembersOf(LoadReport& x) {
  return std::tie(x.plan, x.findings, x.bytes_verified_on_device, x.bytes_by_gpudirect_storage,
                  x.phases);
}
inline auto MembersOf(OmittedViolations& x) { return std::tie(x.path, x.count); }
inline auto MembersOf(VerifyReport& x) {
  return std::tie(x.path, x.verdict, x.level, x.violations, x.omitted, x.violation_count, x.notes,
                  x.leftover_bytes, x.attempt, x.parent, x.sequence, x.step, x.tensor_count,
                  x.object_count, x.blob_count, x.chunk_count, x.bytes_checked, x.seconds,
                  x.part.number, x.part.count, x.total_bytes, x.shared_bytes, x.bytes_known);
}
inline auto MembersOf(SeriesEntry& x) {
  return std::tie(x.name, x.path, x.verdict, x.problem, x.is_void, x.is_kept, x.is_base, x.is_delta,
                  x.is_link, x.attempt, x.parent, x.sequence, x.step, x.size_bytes);
}
inline auto MembersOf(PruneDecision& x) {
  return std::tie(x.entry, x.keep, x.reasons, x.is_deleted);
}
inline auto MembersOf(PruneReport& x) { return std::tie(x.status, x.decisions, x.bytes_freed); }

template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <typename T>
nb::object ToPython(T& value) {
  if constexpr (std::is_enum_v<T>) {
    return nb::cast(static_cast<int>(value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return nb::cast(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return Text(value);
  } else if constexpr (std::derived_from<T, Id128>) {
    return Text(value.ToHex());
  } else if constexpr (std::is_same_v<T, Status>) {
    return value.ok() ? nb::none() : ErrorOf(value);
  } else {
    nb::list items;
    if constexpr (kIsVector<T>) {
      for (auto& item : value) items.append(ToPython(item));
    } else {
      std::apply([&](auto&... member) { (items.append(ToPython(member)), ...); }, MembersOf(value));
    }
    return items;
  }
}

template <typename T>
void FromPython(nb::handle from, T& value) {
  if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(nb::cast<int>(from));
  } else if constexpr (std::is_arithmetic_v<T>) {
    value = nb::cast<T>(from);
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = TextOf(from);
  } else if constexpr (std::derived_from<T, Id128>) {
    value = Value(T::FromHex(TextOf(from)));
  } else if constexpr (std::is_same_v<T, Status>) {
    value = from.is_none() ? Status() : StatusOf(from);
  } else if constexpr (kIsVector<T>) {
    for (const nb::handle item : from) FromPython(item, value.emplace_back());
  } else {
    std::size_t i = 0;
    std::apply([&](auto&... member) { (FromPython(nb::object(from[i++]), member), ...); },
               MembersOf(value));
  }
}

template <typename T>
void MakePicklable(nb::class_<T>& type) {
  type.def(
      "__getstate__", [](T& self) { return ToPython(self); },
      nb::sig("def __getstate__(self) -> object"));
  type.def(
      "__setstate__",
      [](T& self, nb::handle state) {
        new (&self) T{};
        FromPython(state, self);
      },
      nb::sig("def __setstate__(self, state: object, /) -> None"));
}

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_PICKLING_H_
