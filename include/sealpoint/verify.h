// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_VERIFY_H_
#define SEALPOINT_VERIFY_H_

#include <cstdint>
#include <functional>
#include <map>
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

namespace sealpoint {

enum class VerifyLevel : std::uint8_t {
  kFiles,      // marker, index, existence and length of every blob
  kStructure,  // also headers, tables, manifests, trailers, padding of the sections
  kFull,       // also every chunk and every padding byte
};
SEALPOINT_EXPORT std::string_view VerifyLevelName(VerifyLevel level);

// One of `count` parts into which all chunks are divided; each chunk includes the padding before
// it. The parts have about the same size, do not overlap, and together cover all chunks. The chunks
// of a blob are divided in the same way in every checkpoint, on every machine and by any number of
// threads.
struct VerifyPart {
  static constexpr std::uint32_t kCountMax = 1u << 20;
  std::uint32_t number = 1;  // starts at 1
  std::uint32_t count = 1;   // at most kCountMax
  bool is_whole() const { return count == 1; }
  friend bool operator==(const VerifyPart&, const VerifyPart&) = default;
};

// A record of the chunks that calls to Verify at full level found intact. Calls that share this
// object do not read these chunks again. If several checkpoints share a file (hard links), the
// intact chunks of the file are therefore read once. Damaged chunks of the file are read for each
// checkpoint, because the report of each checkpoint lists them. The record also lets an interrupted
// verification continue. Each entry belongs to one path, attempt, marker and file, and also applies
// to hard links of this file in other checkpoints. An entry does not apply to copies of the file,
// so copies are read. If the file is replaced later, the new file is read. Memory: about 50 bytes
// per run of intact chunks, at most 2^18 runs.
//
// All functions are thread-safe, even while Verify is running.
class SEALPOINT_EXPORT VerifiedChunks {
 public:
  virtual ~VerifiedChunks() = default;
  VerifiedChunks(const VerifiedChunks&) = delete;
  VerifiedChunks& operator=(const VerifiedChunks&) = delete;

  static std::shared_ptr<VerifiedChunks> Create();
  // Restores the state of an earlier process from the output of Encode. Errors: InvalidArgument
  // (not the format of Encode), Unsupported (a later version), Corrupt (truncated or damaged).
  static Result<std::shared_ptr<VerifiedChunks>> Decode(std::string_view text);
  // Serializes the state so that the caller can store it in a file; the text has about 40 bytes per
  // run of intact chunks. The state only records that the chunks were intact when they were read.
  // Discard the state once the verification is complete.
  virtual std::string Encode() const = 0;
  // Time of the call to Create.
  virtual std::uint64_t begun_unix_s() const = 0;

 protected:
  VerifiedChunks() = default;
};

struct VerifyOptions {
  VerifyLevel level = VerifyLevel::kFull;
  int threads = kThreadsAuto;  // kThreadsAuto: 1
  // At full level, bypass the page cache so that the disk is checked. Falls back to buffered I/O if
  // direct I/O is refused.
  bool direct_io = true;
  // Verify only the chunks of this part, and everything that level kStructure checks. Requires
  // level kFull.
  VerifyPart part{};
  // Maximum read rate of all threads of a call together. 0: no limit.
  std::uint64_t bytes_per_second_max = 0;
  Limits limits{};
  std::shared_ptr<Storage> storage{};  // DefaultStorage() if null
  // See OpenOptions::base_directories. A base is verified as far as the checkpoint needs it.
  std::map<AttemptId, std::string> base_directories{};
  // Skip the chunks that are recorded here as intact, and record further intact chunks. Null: read
  // all chunks.
  std::shared_ptr<VerifiedChunks> verified{};
  PhaseCallback on_progress{};  // kVerify
  // Maximum number of violations that the report lists per file, ordered by offset. All violations
  // are counted.
  std::uint64_t violations_per_file_max = 1000;
  // Called for every violation when the violation is found, in no particular order. Calls may come
  // from any thread, one call at a time. The number of calls is not limited, unlike the number of
  // violations in the report.
  std::function<void(const Status&)> on_violation{};
};

// Violations that a report counts but does not list.
struct OmittedViolations {
  std::string path{};  // path of the file, or of the checkpoint if several files are affected
  std::uint64_t count = 0;
  friend bool operator==(const OmittedViolations&, const OmittedViolations&) = default;
};

struct VerifyReport {
  std::string path{};
  Verdict verdict = Verdict::kUnreadable;
  VerifyLevel level = VerifyLevel::kFull;
  VerifyPart part{};  // the verdict applies to this part of the chunks
  // Violations, first of the marker, then of the index, then of the blobs (by id). Violations of
  // one file are ordered by offset. At most VerifyOptions::violations_per_file_max per file and 8
  // MiB in total. The verdict follows from all violations, listed or not: corrupt takes precedence
  // over incomplete, incomplete over unreadable, and unreadable over unsupported.
  std::vector<Status> violations{};
  std::vector<OmittedViolations> omitted{};  // in the order of `violations`
  std::uint64_t violation_count = 0;         // number of listed and omitted violations
  // Notes on leftovers, foreign names, files with types from later versions, and ignored compat
  // features. Notes do not affect the verdict. For each kind of note, the first 1000 names are
  // listed; one more note gives the number of remaining names.
  std::vector<std::string> notes{};
  // Total size of leftovers and of files with types from later versions.
  std::uint64_t leftover_bytes = 0;

  // The next four fields are valid if the marker is intact.
  AttemptId attempt{};
  AttemptId parent{};
  std::uint64_t sequence = 0;
  std::uint64_t step = kNoStep;
  // The next four fields are valid if the index is intact.
  std::uint64_t tensor_count = 0;
  std::uint64_t object_count = 0;
  std::uint64_t blob_count = 0;
  std::uint64_t chunk_count = 0;

  std::uint64_t total_bytes = 0;  // total size of marker, index and blobs
  // Size of the blob files that VerifyOptions::verified already contained from earlier calls.
  std::uint64_t shared_bytes = 0;

  std::uint64_t bytes_checked = 0;  // bytes read and checked
  std::uint64_t bytes_known = 0;    // bytes skipped because `verified` had them
  double seconds = 0;
};

// Verifies a checkpoint directory and lists its violations. Damage is reported in the VerifyReport,
// not in the Status. Single process; only reads. Even for hostile content, the time is linear in
// the size of the content, and the memory is bounded. If the checkpoint is deleted during the call,
// the report has a single violation, NotFound, and the verdict kUnreadable. In this case,
// on_violation may already have been called for missing files. Errors: InvalidArgument (options);
// Cancelled (on_progress threw).
SEALPOINT_EXPORT Result<VerifyReport> Verify(const std::string& path,
                                             const VerifyOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_VERIFY_H_
