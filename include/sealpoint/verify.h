// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_VERIFY_H_
#define SEALPOINT_VERIFY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/export.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"
#include "sealpoint/verdict.h"

namespace sealpoint {

enum class VerifyLevel : std::uint8_t {
  kFiles,      // marker, index, existence and length of every blob
  kStructure,  // and headers, tables, manifests, trailers, padding of the sections
  kFull,       // and every chunk and every padding byte
};
SEALPOINT_EXPORT std::string_view VerifyLevelName(VerifyLevel level);

struct VerifyProgress {
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
};

struct VerifyOptions {
  VerifyLevel level = VerifyLevel::kFull;
  int threads = 1;
  // At full level, read past the page cache, so that the disk is checked. Falls back to buffered.
  bool direct_io = true;
  Limits limits{};
  std::shared_ptr<Storage> storage{};  // PosixStorage() where null
  // Called from any thread, one call at a time.
  std::function<void(const VerifyProgress&)> on_progress;
};

struct VerifyReport {
  std::string path{};
  Verdict verdict = Verdict::kUnreadable;
  VerifyLevel level = VerifyLevel::kFull;
  // Every violation that could be reached, in the order marker, index, blobs by id, offsets. The
  // verdict follows from them: corrupt before incomplete before unreadable before unsupported.
  std::vector<Status> violations{};
  // Leftovers, foreign names, ignored compat features; they do not change the verdict.
  std::vector<std::string> notes{};
  std::uint64_t leftover_bytes = 0;

  // Known where the marker was good.
  AttemptId attempt{};
  AttemptId parent{};
  std::uint64_t sequence = 0;
  std::uint64_t step = kNoStep;
  // Known where the index was good.
  std::uint64_t tensor_count = 0;
  std::uint64_t object_count = 0;
  std::uint64_t blob_count = 0;
  std::uint64_t chunk_count = 0;

  std::uint64_t bytes_checked = 0;  // whose content was checked
  double seconds = 0;
};

// Verifies a directory and lists what it finds; damage is in the report, not in the Status. Single
// process, reads only. Hostile content costs time linear in its size and bounded memory.
// Errors: InvalidArgument (options).
SEALPOINT_EXPORT Result<VerifyReport> Verify(const std::string& path,
                                             const VerifyOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_VERIFY_H_
