// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/verify.h"

#include "lib/c/boundary.h"

struct sealpoint_verify_report {
  sealpoint::VerifyReport report;
  std::vector<sealpoint_error> violations;
};

namespace sealpoint::c_api {
namespace {

Status TakeVerifyOptions(const sealpoint_verify_options* given, VerifyOptions& taken) {
  sealpoint_verify_options options;
  SEALPOINT_C_TRY(Take(given, options));
  SEALPOINT_C_TRY(CheckEnum(options.level, SEALPOINT_VERIFY_FULL, "level"));
  if (options.level != SEALPOINT_VERIFY_DEFAULT) {
    taken.level = static_cast<VerifyLevel>(options.level - 1);
  }
  taken.threads = ThreadsOf(options.threads);
  taken.direct_io = options.buffered_io == 0;
  if (options.violations_per_file_max != 0) {
    taken.violations_per_file_max = options.violations_per_file_max;
  }
  taken.on_progress = ProgressOf(options.on_progress, options.user);
  if (options.on_violation != nullptr) {
    taken.on_violation = [options](const Status& violation) {
      const sealpoint_error error(violation);
      options.on_violation(options.user, &error);
    };
  }
  return {};
}

sealpoint_verify_info InfoOf(const VerifyReport& report) {
  sealpoint_verify_info info{};
  info.verdict = static_cast<std::uint32_t>(report.verdict);
  info.violation_count = report.violation_count;
  info.listed_violation_count = report.violations.size();
  info.note_count = report.notes.size();
  info.leftover_bytes = report.leftover_bytes;
  info.attempt = Out(report.attempt);
  info.parent = Out(report.parent);
  info.sequence = report.sequence;
  info.step = report.step;
  info.tensor_count = report.tensor_count;
  info.object_count = report.object_count;
  info.blob_count = report.blob_count;
  info.chunk_count = report.chunk_count;
  info.bytes_checked = report.bytes_checked;
  info.seconds = report.seconds;
  return info;
}

}  // namespace
}  // namespace sealpoint::c_api

using sealpoint::Status;
using sealpoint::c_api::Guarded;
using sealpoint::c_api::Make;
using sealpoint::c_api::NotNull;

extern "C" {

int32_t sealpoint_verify(sealpoint_string path, const sealpoint_verify_options* options,
                         sealpoint_verify_report** out, sealpoint_error** error) {
  return Make(out, error, [&]() -> sealpoint::Result<std::unique_ptr<sealpoint_verify_report>> {
    std::string taken_path;
    sealpoint::VerifyOptions taken;
    SEALPOINT_C_TRY(sealpoint::c_api::Take(path, "path", taken_path));
    SEALPOINT_C_TRY(sealpoint::c_api::TakeVerifyOptions(options, taken));
    auto report = sealpoint::Verify(taken_path, taken);
    if (!report.ok()) return report.error();
    auto handle = std::make_unique<sealpoint_verify_report>();
    handle->report = std::move(report).value();
    for (const Status& violation : handle->report.violations) {
      handle->violations.emplace_back(violation);
    }
    return handle;
  });
}

void sealpoint_verify_report_free(sealpoint_verify_report* report) { delete report; }

int32_t sealpoint_verify_report_get_info(const sealpoint_verify_report* report,
                                         sealpoint_verify_info* out, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(report, "report"));
    SEALPOINT_C_TRY(sealpoint::c_api::CheckOut(out));
    return sealpoint::c_api::Fill(sealpoint::c_api::InfoOf(report->report), out);
  });
}

const sealpoint_error* sealpoint_verify_report_violation(const sealpoint_verify_report* report,
                                                         uint64_t index) {
  if (report == nullptr || index >= report->violations.size()) return nullptr;
  return &report->violations[index];
}

sealpoint_string sealpoint_verify_report_note(const sealpoint_verify_report* report,
                                              uint64_t index) {
  if (report == nullptr || index >= report->report.notes.size()) return {"", 0};
  return sealpoint::c_api::Out(report->report.notes[index]);
}

}  // extern "C"
