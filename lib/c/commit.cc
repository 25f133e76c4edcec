// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/commit.h"

#include <iterator>

#include "lib/c/memory.h"
#include "lib/c/writer.h"
#include "sealpoint/storage.h"

namespace sealpoint::c_api {
namespace {

Status TakeCommitOptions(const sealpoint_commit_options* given, CommitOptions& taken) {
  sealpoint_commit_options options;
  SEALPOINT_C_TRY(Take(given, options));
  taken.attempt = In<AttemptId>(options.attempt);
  if (options.has_step != 0) taken.step = options.step;
  taken.parent = TakeParent(options.parent, options.parent_sequence);
  SEALPOINT_C_TRY(TakeMesh(options.mesh_axes, options.mesh_axis_count, taken.mesh));
  SEALPOINT_C_TRY(TakeProvenance(options.provenance, options.provenance_count, taken.provenance));
  taken.allow_empty = options.allow_empty != 0;
  taken.on_progress = ProgressOf(options.on_progress, options.user);
  return {};
}

}  // namespace
}  // namespace sealpoint::c_api

using sealpoint::Status;
using sealpoint::c_api::Guarded;
using sealpoint::c_api::Make;
using sealpoint::c_api::NotNull;
using sealpoint::c_api::Out;
using sealpoint::c_api::Take;

extern "C" {

int32_t sealpoint_summaries_create(sealpoint_summaries** out, sealpoint_error** error) {
  return Make(out, error, []() -> sealpoint::Result<std::unique_ptr<sealpoint_summaries>> {
    return std::make_unique<sealpoint_summaries>();
  });
}

void sealpoint_summaries_free(sealpoint_summaries* summaries) { delete summaries; }

uint64_t sealpoint_summaries_count(const sealpoint_summaries* summaries) {
  return summaries == nullptr ? 0 : summaries->summaries.size();
}

int32_t sealpoint_summaries_get(const sealpoint_summaries* summaries, uint64_t index,
                                sealpoint_id* blob, uint64_t* file_size_bytes, uint64_t* raw_bytes,
                                sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(summaries, "summaries"));
    const auto& all = summaries->summaries;
    SEALPOINT_C_TRY(sealpoint::c_api::CheckIndex(index, all.size(), "summaries"));
    if (blob != nullptr) *blob = Out(all[index].blob());
    if (file_size_bytes != nullptr) *file_size_bytes = all[index].file_size_bytes();
    if (raw_bytes != nullptr) *raw_bytes = all[index].raw_bytes();
    return {};
  });
}

int32_t sealpoint_summaries_serialize(const sealpoint_summaries* summaries, sealpoint_buffer** out,
                                      sealpoint_error** error) {
  return Make(out, error, [&]() -> sealpoint::Result<std::unique_ptr<sealpoint_buffer>> {
    SEALPOINT_C_TRY(NotNull(summaries, "summaries"));
    return std::make_unique<sealpoint_buffer>(sealpoint::SerializeSummaries(summaries->summaries));
  });
}

int32_t sealpoint_summaries_append(sealpoint_summaries* summaries, sealpoint_bytes serialized,
                                   sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(summaries, "summaries"));
    sealpoint::ByteSpan bytes;
    SEALPOINT_C_TRY(Take(serialized, "serialized", bytes));
    auto more = sealpoint::DeserializeSummaries(bytes);
    if (!more.ok()) return more.error();
    auto& all = summaries->summaries;
    all.insert(all.end(), std::make_move_iterator(more->begin()),
               std::make_move_iterator(more->end()));
    return {};
  });
}

int32_t sealpoint_summaries_append_blob(sealpoint_summaries* summaries, sealpoint_string directory,
                                        const sealpoint_id* blob, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(summaries, "summaries"));
    SEALPOINT_C_TRY(NotNull(blob, "blob"));
    std::string path;
    SEALPOINT_C_TRY(Take(directory, "directory", path));
    auto summary = sealpoint::ReadSummary(*sealpoint::DefaultStorage(), path,
                                          sealpoint::c_api::In<sealpoint::BlobId>(*blob));
    if (!summary.ok()) return summary.error();
    summaries->summaries.push_back(std::move(summary).value());
    return {};
  });
}

int32_t sealpoint_commit(sealpoint_string directory, const sealpoint_commit_options* options,
                         const sealpoint_summaries* summaries, sealpoint_commit_info* out,
                         sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(summaries, "summaries"));
    // Before anything is committed.
    if (out != nullptr) SEALPOINT_C_TRY(sealpoint::c_api::CheckOut(out));
    std::string path;
    sealpoint::CommitOptions taken;
    SEALPOINT_C_TRY(Take(directory, "directory", path));
    SEALPOINT_C_TRY(sealpoint::c_api::TakeCommitOptions(options, taken));
    taken.attributes = summaries->attributes;
    const auto info =
        sealpoint::Commit(*sealpoint::DefaultStorage(), path, taken, summaries->summaries);
    if (!info.ok()) return info.error();
    return sealpoint::c_api::Fill(Out(*info), out);
  });
}

}  // extern "C"
