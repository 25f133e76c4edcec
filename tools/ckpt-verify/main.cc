// SPDX-License-Identifier: Apache-2.0
//
// ckpt-verify: says whether a checkpoint can be trusted.
#include "tools/ckpt-verify/options.h"
#include "tools/ckpt-verify/run.h"
#include "tools/common/output.h"

int main(int argc, char** argv) {
  sealpoint::tools::OpenStandardStreams();
  sealpoint::tools::Options options;
  const auto status = sealpoint::tools::ParseOptions(argc, argv, options);
  return static_cast<int>(sealpoint::tools::FinishOutput(
      "ckpt-verify", status ? *status : sealpoint::tools::RunVerify(options)));
}
