// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_VERIFY_H_
#define SEALPOINT_VERIFY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/export.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/phases.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"
#include "sealpoint/threads.h"
#include "sealpoint/verdict.h"

namespace sealpoint {

enum class VerifyLevel : std::uint8_t {
  kFiles,      // marker, index, existence and length of every blob
  kStructure,  // also headers, tables, manifests, trailers, padding of the sections
  kFull,       // also every chunk and every padding byte
};
SEALPOINT_EXPORT std::string_view VerifyLevelName(VerifyLevel level);

// The n-th of `count` parts of all chunks, each chunk with the padding before it. The parts are
// about equal and disjoint, and together cover all chunks. The part of a chunk depends only on its
// blob: not on the checkpoint, the machine or the number of threads.
struct VerifyPart {
  static constexpr std::uint32_t kCountMax = 1u << 20;
  std::uint32_t number = 1;  // starts at 1
  std::uint32_t count = 1;   // at most kCountMax
  bool is_whole() const { return count == 1; }
  friend bool operator==(const VerifyPart&, const VerifyPart&) = default;
};

// Chunks found intact by calls of Verify at full level. Calls that share this object do not read
// them again. A file shared by several checkpoints (hard links) is thus read once, except for its
// damaged chunks, which each checkpoint reports; and an interrupted verification can continue.
// Entries belong to one path, attempt, marker and file: copies, and files replaced later, are read
// again. Memory: about 50 bytes per run of intact chunks, at most 2^18 runs.
//
// Thread safety: all functions, also during a call of Verify.
class SEALPOINT_EXPORT VerifiedChunks {
 public:
  virtual ~VerifiedChunks() = default;
  VerifiedChunks(const VerifiedChunks&) = delete;
  VerifiedChunks& operator=(const VerifiedChunks&) = delete;

  static std::shared_ptr<VerifiedChunks> Create();
  // Restores the state of an earlier process from the output of Encode. Errors: InvalidArgument
  // (another format), Unsupported (a later version), Corrupt (truncated or damaged).
  static Result<std::shared_ptr<VerifiedChunks>> Decode(std::string_view text);
  // Serializes the state for a file of the caller, about 40 bytes per run of intact chunks. It
  // records that the chunks were intact when they were read; discard it once the verification is
  // complete.
  virtual std::string Encode() const = 0;
  // Time of the call of Create.
  virtual std::uint64_t begun_unix_s() const = 0;

 protected:
  VerifiedChunks() = default;
};

struct VerifyOptions {
  VerifyLevel level = VerifyLevel::kFull;
  int threads = kThreadsAuto;  // kThreadsAuto: 1
  // At full level, bypass the page cache so that the disk is checked. Falls back to buffered I/O.
  bool direct_io = true;
  // Verify the chunks of this part, and everything that level kStructure checks. Needs kFull.
  VerifyPart part{};
  // Maximum read rate of all threads of a call together. 0: no limit.
  std::uint64_t bytes_per_second_max = 0;
  Limits limits{};
  std::shared_ptr<Storage> storage{};  // DefaultStorage() if null
  // Skip the chunks recorded here as intact, and record new ones. Null: read all chunks.
  std::shared_ptr<VerifiedChunks> verified{};
  PhaseCallback on_progress{};  // kVerify
  // Maximum number of listed violations per file, the first by offset. All violations are counted.
  std::uint64_t violations_per_file_max = 1000;
  // Called for every violation as it is found, in no particular order, from any thread, one call at
  // a time. Unlike the report it is not limited in number.
  std::function<void(const Status&)> on_violation{};
};

// Violations that a report counts but does not list.
struct OmittedViolations {
  std::string path{};  // of the file; of the checkpoint if several files are affected
  std::uint64_t count = 0;
  friend bool operator==(const OmittedViolations&, const OmittedViolations&) = default;
};

struct VerifyReport {
  std::string path{};
  Verdict verdict = Verdict::kUnreadable;
  VerifyLevel level = VerifyLevel::kFull;
  VerifyPart part{};  // the verdict applies to this part of the chunks
  // Violations in the order marker, index, blobs by id, offset. At most
  // VerifyOptions::violations_per_file_max per file and 8 MiB in total. The verdict follows from
  // all violations, listed or not: corrupt takes precedence over incomplete, then unreadable, then
  // unsupported.
  std::vector<Status> violations{};
  std::vector<OmittedViolations> omitted{};  // in the same order
  std::uint64_t violation_count = 0;         // listed and omitted
  // Leftovers, foreign names, files of kinds defined by a later version, and ignored compat
  // features. They do not affect the verdict. The first 1000 of each kind by name; one more note
  // counts the rest.
  std::vector<std::string> notes{};
  // of leftovers and of files of kinds defined by a later version
  std::uint64_t leftover_bytes = 0;

  // Valid if the marker is intact.
  AttemptId attempt{};
  AttemptId parent{};
  std::uint64_t sequence = 0;
  std::uint64_t step = kNoStep;
  // Valid if the index is intact.
  std::uint64_t tensor_count = 0;
  std::uint64_t object_count = 0;
  std::uint64_t blob_count = 0;
  std::uint64_t chunk_count = 0;

  std::uint64_t total_bytes = 0;  // of marker, index and blobs
  // of blobs in files that `verified` already had from an earlier call
  std::uint64_t shared_bytes = 0;

  std::uint64_t bytes_checked = 0;  // bytes read and checked
  std::uint64_t bytes_known = 0;    // bytes skipped because `verified` had them
  double seconds = 0;
};

// Verifies a checkpoint directory and lists violations. Damage is in the report, not in the Status.
// Single process; only reads. Hostile content costs time linear in its size and bounded memory. If
// the checkpoint is deleted during the call, the report has one violation, NotFound, and the
// verdict kUnreadable, regardless of the missing files; on_violation may have been called for them.
// Errors: InvalidArgument (options); Cancelled (on_progress threw).
SEALPOINT_EXPORT Result<VerifyReport> Verify(const std::string& path,
                                             const VerifyOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_VERIFY_H_
