// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_C_READ_H_
#define SEALPOINT_LIB_C_READ_H_

#include "lib/c/boundary.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/read_plan.h"

struct sealpoint_read_request {
  sealpoint::ReadRequest request;
  // First error of a call that should have added an item. A collective load fails with it on all
  // ranks.
  sealpoint::Status failure;
};

namespace sealpoint::c_api {

Status TakeContract(const sealpoint_contract* given, LoadContract& taken);
Status TakeOpenOptions(const sealpoint_open_options* given, OpenOptions& taken);

// Runs add(request->request), whose error is also kept for a collective load.
template <typename Add>
Status AddTo(sealpoint_read_request* request, const Add& add) {
  SEALPOINT_C_TRY(NotNull(request, "request"));
  Status status = add(request->request);
  if (request->failure.ok()) request->failure = status;
  return status;
}

}  // namespace sealpoint::c_api

#endif  // SEALPOINT_LIB_C_READ_H_
