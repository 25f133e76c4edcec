// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/saver.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "lib/c/memory.h"
#include "lib/c/ranks.h"
#include "lib/c/writer.h"

struct sealpoint_pending_save {
  std::shared_ptr<sealpoint_saver::Parts> parts;
  std::unique_ptr<sealpoint::PendingSave> pending;
};

namespace sealpoint::c_api {

template <>
inline constexpr std::uint32_t kFirstSize<sealpoint_save_options> =
    offsetof(sealpoint_save_options, allow_fallback);
template <>
inline constexpr std::uint32_t kFirstSize<sealpoint_saver_options> =
    offsetof(sealpoint_saver_options, keep_local);

namespace {

std::chrono::milliseconds DeadlineOf(std::int64_t given_ms, std::chrono::milliseconds otherwise) {
  if (given_ms == 0) return otherwise;
  return given_ms < 0 ? kForever : std::chrono::milliseconds(given_ms);
}

Status TakeSaverOptions(const sealpoint_saver_options* given, SaverOptions& taken) {
  sealpoint_saver_options options;
  SEALPOINT_C_TRY(Take(given, options));
  taken.find_replicas = options.find_replicas != 0;
  taken.compare_replicas = options.compare_replicas != 0;
  if (options.blob_size_max_bytes != 0) taken.blob_size_max_bytes = options.blob_size_max_bytes;
  taken.deadline = DeadlineOf(options.deadline_ms, taken.deadline);
  taken.background_deadline = DeadlineOf(options.background_deadline_ms, taken.background_deadline);
  SEALPOINT_C_TRY(CheckEnum(options.keep_local, kCountMax, "keep_local"));
  SEALPOINT_C_TRY(CheckEnum(options.unpromoted_max, kCountMax, "unpromoted_max"));
  taken.keep_local = static_cast<int>(options.keep_local);
  if (options.unpromoted_max != 0) taken.unpromoted_max = static_cast<int>(options.unpromoted_max);
  if (options.unpromoted_wait_ms != 0) {
    taken.unpromoted_wait = std::chrono::milliseconds(options.unpromoted_wait_ms);
  }
  if (options.promote_memory_bytes != 0) taken.promote_memory_bytes = options.promote_memory_bytes;
  taken.on_progress = ProgressOf(options.on_progress, options.user);
  return {};
}

struct SaveArguments {
  SaveTarget target = SaveTarget::Directory({});
  SaveOptions options{};
};

Status TakeSaveOptions(const sealpoint_save_options* given, SaveArguments& taken) {
  SEALPOINT_C_TRY(NotNull(given, "options"));
  sealpoint_save_options options;
  SEALPOINT_C_TRY(Take(given, options));
  std::string path;
  SEALPOINT_C_TRY(Take(options.path, "path", path));
  taken.target = options.in_series != 0
                     ? SaveTarget::InSeries(std::move(path))
                     : SaveTarget::Directory(std::move(path),
                                             TakeParent(options.parent, options.parent_sequence));
  std::string local;
  SEALPOINT_C_TRY(Take(options.local, "local", local));
  if (!local.empty()) {
    taken.target = SaveTarget::Staged(std::move(local), std::move(taken.target));
  }
  if (options.has_step != 0) taken.options.step = options.step;
  taken.options.allow_empty = options.allow_empty != 0;
  taken.options.allow_fallback = options.allow_fallback != 0;
  SEALPOINT_C_TRY(TakeMesh(options.mesh_axes, options.mesh_axis_count, taken.options.mesh));
  return TakeProvenance(options.provenance, options.provenance_count, taken.options.provenance);
}

// A rank whose arguments are wrong, but for the saver, calls all the same, so that the others hear
// of it and do not wait; nothing else that it passes is looked at.
template <typename Call>
auto SaveWith(const sealpoint_save_options* given, const sealpoint_sources* sources, Status checked,
              const Call& call) {
  static const Declaration kNothing;
  static const Sources kNone(kNothing);
  SaveArguments taken;
  if (checked.ok()) checked = NotNull(sources, "sources");
  if (checked.ok()) checked = TakeSaveOptions(given, taken);
  if (checked.ok()) taken.options.attributes = sources->attributes;
  taken.options.failure = std::move(checked);
  return call(taken.target, taken.options, sources != nullptr ? sources->sources : kNone);
}

// What the caller gets of a save. Made before it is known, so that nothing can fail afterwards.
class Outputs {
 public:
  Outputs(sealpoint_commit_info* info, sealpoint_buffer** directory)
      : info_(info), directory_(directory) {
    if (directory_ == nullptr) return;
    *directory_ = nullptr;
    buffer_ = std::make_unique<sealpoint_buffer>();
  }

  Status Check() const { return info_ == nullptr ? Status() : CheckOut(info_); }
  Status Take(const Result<CommitInfo>& outcome) {
    if (!outcome.ok()) return outcome.error();
    if (directory_ != nullptr) {
      const ByteSpan path = AsBytes(outcome->directory);
      buffer_->bytes.assign(path.begin(), path.end());
      *directory_ = buffer_.release();
    }
    return Fill(Out(*outcome), info_);
  }

 private:
  sealpoint_commit_info* info_;
  sealpoint_buffer** directory_;
  std::unique_ptr<sealpoint_buffer> buffer_;
};

}  // namespace
}  // namespace sealpoint::c_api

using sealpoint::Status;
using sealpoint::c_api::Guarded;
using sealpoint::c_api::Make;
using sealpoint::c_api::MakeTogether;
using sealpoint::c_api::NotNull;
using sealpoint::c_api::Outputs;
using sealpoint::c_api::SaveWith;

extern "C" {

int32_t sealpoint_saver_create(const sealpoint_engine* engine,
                               const sealpoint_communicator* communicator,
                               const sealpoint_saver_options* options, sealpoint_saver** out,
                               sealpoint_error** error) {
  return Make(out, error, [&]() -> sealpoint::Result<std::unique_ptr<sealpoint_saver>> {
    SEALPOINT_C_TRY(NotNull(engine, "engine"));
    SEALPOINT_C_TRY(NotNull(communicator, "communicator"));
    sealpoint::SaverOptions taken;
    SEALPOINT_C_TRY(sealpoint::c_api::TakeSaverOptions(options, taken));
    auto handle = std::make_unique<sealpoint_saver>();
    handle->parts = std::make_shared<sealpoint_saver::Parts>();
    handle->parts->engine = engine->engine;
    handle->parts->communicator = communicator->communicator;
    auto saver =
        sealpoint::Saver::Create(*engine->engine, *communicator->communicator, std::move(taken));
    if (!saver.ok()) return saver.error();
    handle->parts->saver = std::move(saver).value();
    return handle;
  });
}

void sealpoint_saver_free(sealpoint_saver* saver) { delete saver; }

int32_t sealpoint_saver_save(sealpoint_saver* saver, const sealpoint_save_options* options,
                             const sealpoint_sources* sources, sealpoint_commit_info* out,
                             sealpoint_buffer** directory, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    Outputs outputs(out, directory);
    SEALPOINT_C_TRY(NotNull(saver, "saver"));
    return outputs.Take(SaveWith(options, sources, outputs.Check(), [&](const auto&... arguments) {
      return saver->parts->saver->Save(arguments...);
    }));
  });
}

int32_t sealpoint_saver_save_async(sealpoint_saver* saver, const sealpoint_save_options* options,
                                   const sealpoint_sources* sources, sealpoint_pending_save** out,
                                   sealpoint_error** error) {
  using Made = sealpoint::Result<std::unique_ptr<sealpoint_pending_save>>;
  return MakeTogether(out, error, [&](const Status& checked) -> Made {
    SEALPOINT_C_TRY(NotNull(saver, "saver"));
    auto handle = std::make_unique<sealpoint_pending_save>();
    handle->parts = saver->parts;
    auto pending = SaveWith(options, sources, checked, [&](const auto&... arguments) {
      return saver->parts->saver->SaveAsync(arguments...);
    });
    if (!pending.ok()) return pending.error();
    handle->pending = std::move(pending).value();
    return handle;
  });
}

int32_t sealpoint_pending_save_poll(sealpoint_pending_save* pending) {
  std::int32_t state = SEALPOINT_SAVE_FAILED;
  static_cast<void>(Guarded(nullptr, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(pending, "pending"));
    state = static_cast<std::int32_t>(pending->pending->Poll());
    return {};
  }));
  return state;
}

int32_t sealpoint_pending_save_wait(sealpoint_pending_save* pending, sealpoint_commit_info* out,
                                    sealpoint_buffer** directory, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    Outputs outputs(out, directory);
    SEALPOINT_C_TRY(NotNull(pending, "pending"));
    SEALPOINT_C_TRY(outputs.Check());
    return outputs.Take(pending->pending->Wait());
  });
}

void sealpoint_pending_save_cancel(sealpoint_pending_save* pending) {
  static_cast<void>(Guarded(nullptr, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(pending, "pending"));
    pending->pending->Cancel();
    return {};
  }));
}

void sealpoint_pending_save_free(sealpoint_pending_save* pending) { delete pending; }

}  // extern "C"
