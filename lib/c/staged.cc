// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "lib/c/ranks.h"
#include "sealpoint/limits.h"

struct sealpoint_promotions {
  explicit sealpoint_promotions(std::vector<sealpoint::Promotion> of) : entries(std::move(of)) {
    for (const sealpoint::Promotion& entry : entries) problems.emplace_back(entry.status);
  }
  std::vector<sealpoint::Promotion> entries;
  std::vector<sealpoint_error> problems;
};

namespace sealpoint::c_api {
namespace {

Status FillPromotion(const sealpoint_promotions& of, std::uint64_t index,
                     sealpoint_promotion* out) {
  SEALPOINT_C_TRY(CheckIndex(index, of.entries.size(), "promotions"));
  const Promotion& entry = of.entries[index];
  sealpoint_promotion filled{};
  filled.directory = Out(entry.directory);
  filled.step = entry.step;
  filled.bytes_copied = entry.bytes_copied;
  filled.problem = entry.status.ok() ? nullptr : &of.problems[index];
  return Fill(filled, out);
}

Result<std::unique_ptr<sealpoint_promotions>> Resume(Communicator& communicator,
                                                     sealpoint_string local,
                                                     sealpoint_string final_series,
                                                     std::int32_t keep_local,
                                                     const Status& checked) {
  StagedPlaces places;
  ResumePromotionsOptions options;
  options.failure = checked;
  if (options.failure.ok()) options.failure = Take(local, "local", places.local);
  if (options.failure.ok()) {
    options.failure = Take(final_series, "final_series", places.final_series);
  }
  if (options.failure.ok()) {
    options.failure = CheckEnum(static_cast<std::uint32_t>(keep_local), kCountMax, "keep_local");
  }
  options.keep_local = keep_local;
  auto resumed = ResumePromotions(communicator, places, options);
  if (!resumed.ok()) return resumed.error();
  std::vector<Promotion> entries;
  for (std::string& name : resumed->promoted) {
    entries.push_back({.directory = places.final_series + "/" + name, .step = kNoStep});
  }
  for (Promotion& skipped : resumed->skipped) {
    skipped.step = kNoStep;
    entries.push_back(std::move(skipped));
  }
  return std::make_unique<sealpoint_promotions>(std::move(entries));
}

}  // namespace
}  // namespace sealpoint::c_api

using sealpoint::Status;
using sealpoint::c_api::Guarded;
using sealpoint::c_api::Make;
using sealpoint::c_api::MakeTogether;
using sealpoint::c_api::NotNull;
using MadePromotions = sealpoint::Result<std::unique_ptr<sealpoint_promotions>>;

extern "C" {

void sealpoint_promotions_free(sealpoint_promotions* promotions) { delete promotions; }

uint64_t sealpoint_promotions_count(const sealpoint_promotions* promotions) {
  return promotions == nullptr ? 0 : promotions->entries.size();
}

int32_t sealpoint_promotions_get(const sealpoint_promotions* promotions, uint64_t index,
                                 sealpoint_promotion* out, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(promotions, "promotions"));
    SEALPOINT_C_TRY(sealpoint::c_api::CheckOut(out));
    return sealpoint::c_api::FillPromotion(*promotions, index, out);
  });
}

int32_t sealpoint_saver_take_promotions(sealpoint_saver* saver, sealpoint_promotions** out,
                                        sealpoint_error** error) {
  return Make(out, error, [&]() -> MadePromotions {
    SEALPOINT_C_TRY(NotNull(saver, "saver"));
    return std::make_unique<sealpoint_promotions>(saver->parts->saver->TakePromotions());
  });
}

int32_t sealpoint_saver_wait_for_promotions(sealpoint_saver* saver, int64_t longest_ms) {
  std::int32_t is_done = 0;
  static_cast<void>(Guarded(nullptr, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(saver, "saver"));
    const auto longest =
        longest_ms < 0 ? sealpoint::kForever : std::chrono::milliseconds(longest_ms);
    is_done = saver->parts->saver->WaitForPromotions(longest) ? 1 : 0;
    return {};
  }));
  return is_done;
}

int32_t sealpoint_resume_promotions(const sealpoint_communicator* communicator,
                                    sealpoint_string local, sealpoint_string final_series,
                                    int32_t keep_local, sealpoint_promotions** out,
                                    sealpoint_error** error) {
  return MakeTogether(out, error, [&](const Status& checked) -> MadePromotions {
    SEALPOINT_C_TRY(NotNull(communicator, "communicator"));
    return sealpoint::c_api::Resume(*communicator->communicator, local, final_series, keep_local,
                                    checked);
  });
}

}  // extern "C"
