// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_PYTHON_SRC_TARGET_H_
#define SEALPOINT_PYTHON_SRC_TARGET_H_

#include <nanobind/nanobind.h>

#include <tuple>

#include "python/src/status.h"
#include "python/src/values.h"
#include "sealpoint/saver.h"

namespace sealpoint::python {

// Where a save goes: (path, in a series?, parent).
using Target = std::tuple<nb::object, bool, Parent>;

inline SaveTarget TargetOf(const Target& target) {
  const auto& [path, is_series, parent] = target;
  if (is_series) return SaveTarget::InSeries(PathOf(path));
  SaveTarget directory = SaveTarget::Directory(PathOf(path), ParentOf(parent));
  if (parent) directory.parent_directory = std::get<2>(*parent);
  return directory;
}

}  // namespace sealpoint::python

#endif  // SEALPOINT_PYTHON_SRC_TARGET_H_
