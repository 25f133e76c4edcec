// SPDX-License-Identifier: Apache-2.0
// A stranger's program: what it calls needs every library that Sealpoint needs.
#include <sealpoint/digest.h>
#include <sealpoint/dtype.h>
#include <sealpoint/status.h>
#include <sealpoint/verify.h>
#include <sealpoint/version.h>

#include <cstdio>
#include <string>

#if SEALPOINT_VERSION < 10000
#error "version 1.0.0 or later"
#endif

namespace {

bool Check(bool holds, const char* what) {
  if (!holds) std::fprintf(stderr, "not so: %s\n", what);
  return holds;
}

std::string VersionOfTheHeaders() {
  const std::string candidate = SEALPOINT_VERSION_PRERELEASE;
  return std::to_string(SEALPOINT_VERSION_MAJOR) + '.' + std::to_string(SEALPOINT_VERSION_MINOR) +
         '.' + std::to_string(SEALPOINT_VERSION_PATCH) + (candidate.empty() ? "" : "-" + candidate);
}

bool IsCommitted(const char* directory) {
  const auto report = sealpoint::Verify(directory, {});
  return report.ok() && report.value().verdict == sealpoint::Verdict::kCommitted;
}

}  // namespace

int main() {
  const auto digest = sealpoint::ComputeDigest({});
  const bool fine =
      Check(sealpoint::VersionString() == VersionOfTheHeaders(), "headers are the library's") &&
      Check(sealpoint::DTypeName(sealpoint::DType::kBf16) == "bf16", "a dtype has its name") &&
      Check(digest.bytes[0] == std::byte{0x99}, "the digest of nothing") &&
      Check(!IsCommitted("/nonexistent/checkpoint"), "what is not there is no checkpoint");
  return fine ? 0 : 1;
}
