// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_PLACEMENTS_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_PLACEMENTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/mesh.h"
#include "sealpoint/placement.h"

namespace sealpoint::tools {

// Rules for the tensors whose names match a pattern (Checkpoint::MatchTensors).
struct PlaceOption {
  std::string text;  // as given
  std::string pattern;
  Placement placement;
};

// "layers.*=shard(dim 0, tensor), replicate(data)". Errors: InvalidArgument.
Result<PlaceOption> ParsePlaceOption(const std::string& text);

// Where each tensor of a checkpoint is placed on a mesh.
struct ChosenPlacements {
  Mesh mesh;  // the requested one, with the axes that only stored placements name, of one rank each
  std::vector<TensorInfo> tensors;
  std::vector<Placement> placements;      // each once; every axis is named
  std::vector<std::size_t> placement_of;  // of each tensor, its number in placements
  std::size_t stored_count = 0;
  std::size_t given_count = 0;
  std::size_t whole_count = 0;
  std::vector<std::string> notes;
};

// A placement as it was stored, unless an option says otherwise; whole on every rank without
// either. Errors: InvalidArgument (an option that fits no tensor, an axis that does not exist).
Result<ChosenPlacements> ChoosePlacements(const Checkpoint& checkpoint, const Mesh& requested,
                                          const std::vector<PlaceOption>& options);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_PLACEMENTS_H_
