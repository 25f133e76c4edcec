// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/stager.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/saver/write_sources.h"

namespace sealpoint::internal::saver {

Result<bool> Stager::Reserve(const LocalPlan& local_plan, const Sources& sources) {
  SEALPOINT_ASSIGN_OR_RETURN(grouped_, reuse_.Group(local_plan, sources));
  const std::uint64_t part_size =
      engine_.storage->part_size_bytes(save_->destination().written_path());
  const std::uint64_t count = BuffersFor(engine_, options_, *grouped_.plan, sources, part_size);
  if (!engine_.TryReserve(count)) return true;
  writer_ =
      std::make_unique<writer::StagedWriter>(engine_, count, save_->writer_options(), part_size);
  return false;
}

void Stager::Stage(const Proposal& proposal, SaveQueue& queue) {
  const Sources& sources = proposal.sources();
  auto groups = reuse_.FindGroups(grouped_, sources);
  Status status = groups.status();
  save_->SetPlan(grouped_.plan->tensor_bytes,
                 groups.ok() ? *std::move(groups) : std::vector<FrozenGroup>());
  if (proposal.any.is_short_of_memory) {
    Stream(sources, std::move(status), queue);
  } else {
    StageWhole(sources, std::move(status), queue);
  }
}

void Stager::StageWhole(const Sources& sources, Status local_status, SaveQueue& queue) {
  observe::PhaseRecorder& recorder = save_->recorder();
  recorder.Begin(Phase::kSnapshot, grouped_.plan->tensor_bytes);
  if (local_status.ok()) local_status = WriteSources(options_, *writer_, *grouped_.plan, sources);
  recorder.End();  // the snapshot ends now; the background thread may take the save up much later
  save_->SetStaged(std::move(writer_), std::move(local_status));
  queue.Add(save_);
}

// With a memory budget below the size of the state: the background thread makes the directory
// first, then the state is written while it is being copied. Returns when the last byte is staged.
void Stager::Stream(const Sources& sources, Status local_status, SaveQueue& queue) {
  // Earlier saves hold the staging memory: they must end first, and in this order on all ranks.
  writer_.reset();
  save_->recorder().End();
  queue.Drain();
  queue.Add(save_);
  queue.DriveUntil(*save_, [&] { return save_->is_bound() || queue.IsOver(*save_); });
  // The save is over, but its thread may still come to where it waits for the state.
  if (!save_->is_bound()) {
    return save_->SetStaged(MakeError(Code::kCancelled, "the save ended before it took the state"));
  }
  if (local_status.ok()) {
    const SavePlan rest =
        WithoutGroups(*grouped_.plan, sources.declaration(), save_->linked_groups());
    local_status = WriteSources(options_, *save_->writer(), rest, sources);
  }
  save_->SetStaged(std::move(local_status));
}

}  // namespace sealpoint::internal::saver
