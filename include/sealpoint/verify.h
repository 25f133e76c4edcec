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
#include "sealpoint/status.h"
#include "sealpoint/storage.h"
#include "sealpoint/threads.h"
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

// The n-th of `count` parts of all chunks, each with the padding before it. The parts of one count
// are about equal, no chunk is in two of them, and together they are all. In which part a chunk is
// depends on its blob alone: in which checkpoint, on which machine and by how many threads it is
// verified does not matter.
struct VerifyPart {
  static constexpr std::uint32_t kCountMax = 1u << 20;
  std::uint32_t number = 1;  // from 1 on
  std::uint32_t count = 1;   // at most kCountMax
  bool is_whole() const { return count == 1; }
  friend bool operator==(const VerifyPart&, const VerifyPart&) = default;
};

// Chunks that calls of Verify at full level found good. Calls that are given the same object do not
// read them again: a file that several checkpoints share (hard links) is read once, but for its bad
// chunks, which each of them reports; and a verification that was interrupted goes on. Chunks are
// those of one path, attempt, marker and file: a copy, or what else comes under the path, is read.
// Memory: some 50 bytes for each stretch of good chunks, at most 2^18 stretches.
// Thread safety: all functions, also during a call of Verify.
class SEALPOINT_EXPORT VerifiedChunks {
 public:
  virtual ~VerifiedChunks() = default;
  VerifiedChunks(const VerifiedChunks&) = delete;
  VerifiedChunks& operator=(const VerifiedChunks&) = delete;

  static std::shared_ptr<VerifiedChunks> Create();
  // What an earlier process found good, as Encode wrote it. Errors: InvalidArgument (something
  // else), Unsupported (of a later version), Corrupt (cut off or damaged).
  static Result<std::shared_ptr<VerifiedChunks>> Decode(std::string_view text);
  // A text for a file of the caller's, some 40 bytes for each stretch of good chunks. It says that
  // chunks were good when they were read: drop it once the verification is complete.
  virtual std::string Encode() const = 0;
  // When Create was called.
  virtual std::uint64_t begun_unix_s() const = 0;

 protected:
  VerifiedChunks() = default;
};

struct VerifyOptions {
  VerifyLevel level = VerifyLevel::kFull;
  int threads = 1;  // at most kThreadsMax
  // At full level, read past the page cache, so that the disk is checked. Falls back to buffered.
  bool direct_io = true;
  // Check these chunks alone, and all that is checked at level structure. Needs level full.
  VerifyPart part{};
  // All threads of a call together read no more than this. 0: no limit.
  std::uint64_t bytes_per_second_max = 0;
  Limits limits{};
  std::shared_ptr<Storage> storage{};  // DefaultStorage() if null
  // Good chunks are taken from here and added to it; null: all are read.
  std::shared_ptr<VerifiedChunks> verified{};
  // Called from any thread, one call at a time. One that throws ends the verification (Cancelled).
  std::function<void(const VerifyProgress&)> on_progress{};
  // The report lists so many violations of each file at most, the first by offset. All are counted.
  std::uint64_t violations_per_file_max = 1000;
  // Called for every violation as it is found, in no particular order; from any thread, one call at
  // a time. For callers that need all of them, however many they are.
  std::function<void(const Status&)> on_violation{};
};

// Violations that a report counts but does not list.
struct OmittedViolations {
  std::string path{};  // of the file; of the checkpoint for those of several files
  std::uint64_t count = 0;
  friend bool operator==(const OmittedViolations&, const OmittedViolations&) = default;
};

struct VerifyReport {
  std::string path{};
  Verdict verdict = Verdict::kUnreadable;
  VerifyLevel level = VerifyLevel::kFull;
  VerifyPart part{};  // the verdict is about this part of the chunks
  // The violations that could be reached, in the order marker, index, blobs by id, offsets; of each
  // file at most VerifyOptions::violations_per_file_max, and no more than take 8 MiB of memory. The
  // verdict follows from all, listed or not: corrupt before incomplete before unreadable before
  // unsupported.
  std::vector<Status> violations{};
  std::vector<OmittedViolations> omitted{};  // in the same order
  std::uint64_t violation_count = 0;         // listed and omitted
  // Leftovers, foreign names, files of kinds of a later version, ignored compat features; they do
  // not change the verdict. The first 1000 of each kind by name; one more note counts the others.
  std::vector<std::string> notes{};
  std::uint64_t leftover_bytes = 0;  // of leftovers, and of files of kinds of a later version

  // Known if the marker was good.
  AttemptId attempt{};
  AttemptId parent{};
  std::uint64_t sequence = 0;
  std::uint64_t step = kNoStep;
  // Known if the index was good.
  std::uint64_t tensor_count = 0;
  std::uint64_t object_count = 0;
  std::uint64_t blob_count = 0;
  std::uint64_t chunk_count = 0;

  std::uint64_t total_bytes = 0;   // of marker, index and blobs
  std::uint64_t shared_bytes = 0;  // of blobs in files that `verified` had from a call before

  std::uint64_t bytes_checked = 0;  // whose content was checked
  std::uint64_t bytes_known = 0;    // which were not read: `verified` had them
  double seconds = 0;
};

// Verifies a directory and lists what it finds; damage is in the report, not in the Status. Single
// process, reads only. Hostile content costs time linear in its size and bounded memory.
// A checkpoint that is deleted meanwhile is one violation, NotFound, and the verdict kUnreadable,
// whatever was missing; on_violation may have been called for that before.
// Errors: InvalidArgument (options); Cancelled (on_progress threw).
SEALPOINT_EXPORT Result<VerifyReport> Verify(const std::string& path,
                                             const VerifyOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_VERIFY_H_
