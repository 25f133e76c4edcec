// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_C_CHECKPOINT_H_
#define SEALPOINT_LIB_C_CHECKPOINT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/c/boundary.h"
#include "sealpoint/checkpoint.h"

struct sealpoint_checkpoint {
  using Texts = std::vector<std::pair<std::string, std::string>>;

  std::shared_ptr<const sealpoint::Checkpoint> checkpoint;
  // Results that the C++ API returns by value, cached so that C gets stable pointers.
  sealpoint::c_api::Lazy<std::vector<sealpoint::ObjectInfo>> objects;
  sealpoint::c_api::Lazy<Texts> provenance;
  sealpoint::c_api::Lazy<std::vector<std::pair<std::string, std::uint32_t>>> mesh;
};

#endif  // SEALPOINT_LIB_C_CHECKPOINT_H_
