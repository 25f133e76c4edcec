// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_C_WRITER_H_
#define SEALPOINT_LIB_C_WRITER_H_

#include <memory>
#include <vector>

#include "lib/c/boundary.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/engine.h"

// Shared with the objects made from it, so that C may free objects in any order.
struct sealpoint_engine {
  std::shared_ptr<sealpoint::Engine> engine;
};

struct sealpoint_summaries {
  std::vector<sealpoint::BlobSummary> summaries;
};

#endif  // SEALPOINT_LIB_C_WRITER_H_
