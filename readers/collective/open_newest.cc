// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/comm/agree.h"
#include "lib/comm/same_call.h"
#include "lib/comm/status_codec.h"
#include "readers/collective/open_together.h"
#include "sealpoint/collective_reader.h"
#include "sealpoint/series.h"

namespace sealpoint {
namespace internal::collective {
namespace {

constexpr int kRoot = 0;
// So often may the checkpoint that was chosen be deleted before it is open. Each time a newer one
// was committed meanwhile.
constexpr int kTriesMax = 16;

// What rank 0 found.
struct Choice {
  std::string path;  // of the checkpoint; empty if there is none
  std::string name;
  std::vector<SkippedCheckpoint> skipped;
};

Bytes EncodeChoice(const Choice& choice) {
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(choice.path);
  out.Put(choice.name);
  out.Put(std::uint64_t{choice.skipped.size()});
  for (const SkippedCheckpoint& passed : choice.skipped) {
    out.Put(passed.name);
    out.Put(AsText(comm::EncodeStatus(passed.problem)));
  }
  return bytes;
}

Result<Choice> DecodeChoice(ByteSpan bytes) {
  WireReader in(bytes);
  Choice choice;
  SEALPOINT_ASSIGN_OR_RETURN(choice.path, in.Text());
  SEALPOINT_ASSIGN_OR_RETURN(choice.name, in.Text());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t count, in.Number());
  for (std::uint64_t i = 0; i < count; ++i) {
    SkippedCheckpoint passed;
    SEALPOINT_ASSIGN_OR_RETURN(passed.name, in.Text());
    SEALPOINT_ASSIGN_OR_RETURN(const ByteSpan status, in.Span());
    auto problem = comm::DecodeStatus(status);
    if (!problem) return MalformedMessage();
    passed.problem = *std::move(problem);
    choice.skipped.push_back(std::move(passed));
  }
  return choice;
}

Result<Bytes> Choose(const std::string& series, const OpenNewestOptions& options) {
  Choice choice;
  const auto newest =
      Series(series, options.open.storage)
          .Newest({.allow_fallback = options.allow_fallback, .limits = options.open.limits});
  // R-SER-20: nothing else is NotFound.
  if (!newest.ok() && newest.error().code() != Code::kNotFound) return newest.error();
  if (newest.ok()) {
    choice.path = newest->entry.path;
    choice.name = newest->entry.name;
    for (const SeriesEntry& entry : newest->skipped) {
      choice.skipped.push_back({entry.name, entry.problem});
    }
  }
  return EncodeChoice(choice);
}

// True if this error says that the directory was emptied or removed since it was chosen.
bool IsGone(const Status& error) {
  return error.code() == Code::kNotFound || error.code() == Code::kUncommitted ||
         error.code() == Code::kNotACheckpoint;
}

Result<Choice> ChooseTogether(Communicator& comm, const std::string& series,
                              const OpenNewestOptions& options) {
  Result<Bytes> at_root = Bytes();
  if (comm.rank() == kRoot) at_root = Choose(series, options);
  SEALPOINT_ASSIGN_OR_RETURN(const Bytes bytes,
                             comm::BroadcastResult(comm, kRoot, std::move(at_root)));
  return DecodeChoice(bytes);
}

Result<NewestCheckpoint> OpenNewestTogether(Communicator& comm, const std::string& series,
                                            const OpenNewestOptions& options) {
  SEALPOINT_RETURN_IF_ERROR(comm::CheckSameCall(
      comm, {.kind = "opening of the newest", .arguments = {{"series", series}}}, options.failure));
  OpenOptions open = options.open;
  open.check_files = false;  // Series::Newest has just done it
  Status gone;
  for (int i = 0; i < kTriesMax; ++i) {
    SEALPOINT_ASSIGN_OR_RETURN(Choice choice, ChooseTogether(comm, series, options));
    NewestCheckpoint newest{.name = std::move(choice.name), .skipped = std::move(choice.skipped)};
    if (choice.path.empty()) return newest;
    auto reader = OpenTogether(comm, choice.path, open);
    if (reader.ok()) {
      newest.reader = std::move(reader).value();
      return newest;
    }
    // The same on all ranks, so that all go on.
    if (!IsGone(reader.error())) return std::move(reader).error();
    gone = std::move(reader).error();
  }
  return MakeError(Code::kIo, "the newest checkpoint was deleted ", kTriesMax,
                   " times before it was open: ", gone.message())
      .AtPath(series);
}

}  // namespace
}  // namespace internal::collective

Result<NewestCheckpoint> OpenNewest(Communicator& comm, const std::string& series_directory,
                                    const OpenNewestOptions& options) {
  auto newest = internal::collective::OpenNewestTogether(comm, series_directory, options);
  if (newest.ok()) return newest;
  const std::string during =
      internal::StrCat("collective opening of the newest checkpoint of ", series_directory);
  return internal::comm::DescribeCommFailure(comm, newest.error(), during);
}

}  // namespace sealpoint
