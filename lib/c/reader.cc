// SPDX-License-Identifier: Apache-2.0
#include "lib/c/checkpoint.h"
#include "lib/c/ranks.h"
#include "lib/c/read.h"
#include "sealpoint/collective_reader.h"

struct sealpoint_reader {
  std::shared_ptr<sealpoint::Communicator> communicator;  // outlives the reader
  std::shared_ptr<sealpoint::CollectiveReader> reader;
  sealpoint_checkpoint checkpoint;  // of the reader
  std::vector<std::pair<std::string, sealpoint_error>> skipped;
  std::vector<sealpoint::LoadFinding> findings;  // of the last load
};

namespace sealpoint::c_api {
namespace {

using Handle = std::unique_ptr<sealpoint_reader>;

Handle HandleOf(const sealpoint_communicator& communicator,
                std::unique_ptr<CollectiveReader> reader) {
  auto handle = std::make_unique<sealpoint_reader>();
  handle->communicator = communicator.communicator;
  handle->reader = std::move(reader);
  handle->checkpoint.checkpoint = {handle->reader, &handle->reader->checkpoint()};
  return handle;
}

Status TakeLoadOptions(const sealpoint_load_options* given, CollectiveLoadOptions& taken) {
  sealpoint_load_options options;
  SEALPOINT_C_TRY(Take(given, options));
  taken.threads = ThreadsOf(options.threads);
  if (options.memory_budget_bytes != 0) taken.memory_budget_bytes = options.memory_budget_bytes;
  taken.share_chunks = options.read_alone == 0;
  taken.verify_arrival = options.verify_arrival != 0;
  taken.on_progress = ProgressOf(options.on_progress, options.user);
  return {};
}

Result<Handle> Open(const sealpoint_communicator& communicator, sealpoint_string path,
                    const sealpoint_open_options* given, Status checked) {
  std::string taken;
  OpenOptions options;
  if (checked.ok()) checked = Take(path, "path", taken);
  if (checked.ok()) checked = TakeOpenOptions(given, options);
  auto reader = CollectiveReader::Open(*communicator.communicator, taken, options, checked);
  if (!reader.ok()) return reader.error();
  return HandleOf(communicator, std::move(reader).value());
}

Result<Handle> OpenNewestOf(const sealpoint_communicator& communicator, sealpoint_string series,
                            const sealpoint_open_options* given, bool allow_fallback,
                            const Status& checked) {
  std::string path;
  OpenNewestOptions options;
  options.allow_fallback = allow_fallback;
  options.failure = checked;
  if (options.failure.ok()) options.failure = Take(series, "series", path);
  if (options.failure.ok()) options.failure = TakeOpenOptions(given, options.open);
  auto newest = OpenNewest(*communicator.communicator, path, options);
  if (!newest.ok()) return newest.error();
  if (newest->reader == nullptr) return Handle();
  Handle handle = HandleOf(communicator, std::move(newest->reader));
  for (SkippedCheckpoint& skipped : newest->skipped) {
    handle->skipped.emplace_back(std::move(skipped.name),
                                 sealpoint_error(std::move(skipped.problem)));
  }
  return handle;
}

sealpoint_load_report ReportOf(const CollectiveLoadReport& report) {
  sealpoint_load_report filled{};
  filled.bytes_requested = report.plan.bytes_requested;
  filled.bytes_read = report.bytes_read;
  filled.bytes_received = report.bytes_received;
  filled.all_bytes_requested = report.all_bytes_requested;
  filled.all_bytes_read = report.all_bytes_read;
  filled.finding_count = report.findings.size();
  return filled;
}

Status Load(sealpoint_reader& handle, const sealpoint_read_request* request,
            const sealpoint_contract* given_contract, const sealpoint_load_options* given_options,
            sealpoint_load_report* out) {
  LoadContract contract;
  CollectiveLoadOptions options;
  Status& failure = options.failure;
  failure = NotNull(request, "request");
  if (failure.ok()) failure = request->failure;
  if (failure.ok()) failure = TakeContract(given_contract, contract);
  if (failure.ok()) failure = TakeLoadOptions(given_options, options);
  if (failure.ok() && out != nullptr) failure = CheckOut(out);
  static const ReadRequest kNothing;
  auto report =
      handle.reader->Load(request == nullptr ? kNothing : request->request, contract, options);
  if (!report.ok()) return report.error();
  SEALPOINT_C_TRY(Fill(ReportOf(*report), out));
  handle.findings = std::move(report->findings);
  return {};
}

}  // namespace
}  // namespace sealpoint::c_api

using sealpoint::Status;
using sealpoint::c_api::CheckIndex;
using sealpoint::c_api::Guarded;
using sealpoint::c_api::MakeTogether;
using sealpoint::c_api::NotNull;
using sealpoint::c_api::Out;
using MadeReader = sealpoint::Result<std::unique_ptr<sealpoint_reader>>;

extern "C" {

int32_t sealpoint_reader_open(const sealpoint_communicator* communicator, sealpoint_string path,
                              const sealpoint_open_options* options, sealpoint_reader** out,
                              sealpoint_error** error) {
  return MakeTogether(out, error, [&](const Status& checked) -> MadeReader {
    SEALPOINT_C_TRY(NotNull(communicator, "communicator"));
    return sealpoint::c_api::Open(*communicator, path, options, checked);
  });
}

int32_t sealpoint_reader_open_newest(const sealpoint_communicator* communicator,
                                     sealpoint_string series, const sealpoint_open_options* options,
                                     int32_t allow_fallback, sealpoint_reader** out,
                                     sealpoint_error** error) {
  return MakeTogether(out, error, [&](const Status& checked) -> MadeReader {
    SEALPOINT_C_TRY(NotNull(communicator, "communicator"));
    return sealpoint::c_api::OpenNewestOf(*communicator, series, options, allow_fallback != 0,
                                          checked);
  });
}

void sealpoint_reader_free(sealpoint_reader* reader) { delete reader; }

uint64_t sealpoint_reader_skipped_count(const sealpoint_reader* reader) {
  return reader == nullptr ? 0 : reader->skipped.size();
}

int32_t sealpoint_reader_skipped(const sealpoint_reader* reader, uint64_t index,
                                 sealpoint_string* name, const sealpoint_error** problem,
                                 sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(reader, "reader"));
    SEALPOINT_C_TRY(CheckIndex(index, reader->skipped.size(), "skipped checkpoints"));
    if (name != nullptr) *name = Out(reader->skipped[index].first);
    if (problem != nullptr) *problem = &reader->skipped[index].second;
    return {};
  });
}

const sealpoint_checkpoint* sealpoint_reader_checkpoint(const sealpoint_reader* reader) {
  return reader == nullptr ? nullptr : &reader->checkpoint;
}

int32_t sealpoint_reader_load(sealpoint_reader* reader, const sealpoint_read_request* request,
                              const sealpoint_contract* contract,
                              const sealpoint_load_options* options, sealpoint_load_report* out,
                              sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(reader, "reader"));
    return sealpoint::c_api::Load(*reader, request, contract, options, out);
  });
}

int32_t sealpoint_reader_finding(const sealpoint_reader* reader, uint64_t index,
                                 sealpoint_string* tensor, sealpoint_string* detail,
                                 sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(reader, "reader"));
    SEALPOINT_C_TRY(CheckIndex(index, reader->findings.size(), "findings"));
    if (tensor != nullptr) *tensor = Out(reader->findings[index].tensor);
    if (detail != nullptr) *detail = Out(reader->findings[index].detail);
    return {};
  });
}

int32_t sealpoint_reader_read_object(sealpoint_reader* reader, sealpoint_string name,
                                     sealpoint_buffer** out, sealpoint_error** error) {
  using Made = sealpoint::Result<std::unique_ptr<sealpoint_buffer>>;
  return MakeTogether(out, error, [&](const Status& /*checked*/) -> Made {
    SEALPOINT_C_TRY(NotNull(reader, "reader"));
    std::string_view taken;
    const Status checked = sealpoint::c_api::Take(name, "name", taken);
    auto bytes = reader->reader->ReadObject(taken);  // the other ranks wait for this one
    SEALPOINT_C_TRY(checked);
    if (!bytes.ok()) return bytes.error();
    return std::make_unique<sealpoint_buffer>(std::move(bytes).value());
  });
}

}  // extern "C"
