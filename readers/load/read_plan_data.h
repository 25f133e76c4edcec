// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_READ_PLAN_DATA_H_
#define SEALPOINT_READERS_LOAD_READ_PLAN_DATA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/errors.h"
#include "lib/metadata/tensor_view.h"
#include "lib/transfer/delivery_plan.h"
#include "sealpoint/id.h"
#include "sealpoint/read_plan.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::load {

// The elements of a chunk that is stored as changes.
struct ChangedElements {
  metadata::TensorView tensor;
  Region region;
};

// The reads of a load and their destinations.
struct ReadPlanData : transfer::DeliveryPlan {
  AttemptId attempt;
  std::vector<std::string> blob_names;  // of all blobs that are read, ascending
  std::vector<LoadFinding> findings;
  PlanSummary summary;
  std::vector<ChangedElements> changed;
  // A tensor with a plan-only destination, in `names`: such a plan cannot be read.
  std::optional<std::uint32_t> plan_only_name{};

  // InvalidArgument if a destination has no memory (MutableMemoryView::PlanOnly).
  Status CheckHasMemory() const {
    if (!plan_only_name) return {};
    return AtItem(*plan_only_name,
                  InvalidArgument("the destination has no memory: it is for planning only"));
  }
};

}  // namespace sealpoint::internal::load

namespace sealpoint {
struct ReadPlan::Data final : internal::load::ReadPlanData {};
}  // namespace sealpoint

#endif  // SEALPOINT_READERS_LOAD_READ_PLAN_DATA_H_
