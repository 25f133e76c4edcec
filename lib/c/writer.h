// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_C_WRITER_H_
#define SEALPOINT_LIB_C_WRITER_H_

#include <memory>
#include <vector>

#include "lib/c/attributes.h"
#include "lib/c/boundary.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/engine.h"

// Shared with the objects made from it, so that C may free objects in any order.
struct sealpoint_engine {
  std::shared_ptr<sealpoint::Engine> engine;
};

struct sealpoint_blob_writer {
  std::shared_ptr<sealpoint::Engine> engine;  // outlives the writer
  std::unique_ptr<sealpoint::BlobWriter> writer;
  sealpoint::c_api::TensorAttributes attributes{};
};

struct sealpoint_summaries {
  std::vector<sealpoint::BlobSummary> summaries;
  sealpoint::Attributes attributes{};  // of the checkpoint
};

#endif  // SEALPOINT_LIB_C_WRITER_H_
