// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_STAGER_H_
#define SEALPOINT_LIB_SAVER_STAGER_H_

#include <memory>
#include <utility>

#include "lib/pipeline/engine_parts.h"
#include "lib/saver/background_save.h"
#include "lib/saver/plan_agreement.h"
#include "lib/saver/reuse.h"
#include "lib/saver/save_queue.h"
#include "lib/writer/staged_writer.h"
#include "sealpoint/declaration.h"
#include "sealpoint/saver.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// Stages the payload of one background save, on the training thread. The ranks agree on one of the
// two ways (see BackgroundSave): a rank that streams blocks until the background thread has made
// the directory, which is collective, so all ranks must have queued the save by then.
class Stager {
 public:
  // Borrows everything but `save`.
  Stager(pipeline::EngineParts& engine, const SaverOptions& options, Reuse& reuse,
         std::shared_ptr<BackgroundSave> save)
      : engine_(engine), options_(options), reuse_(reuse), save_(std::move(save)) {}

  // For Proposal::reserve: reserves memory for all that this rank writes. Returns true if the
  // budget does not hold it.
  Result<bool> Reserve(const LocalPlan& local_plan, const Sources& sources);
  // After the agreement. Returns when the state is copied and the save is queued. All ranks call
  // it.
  void Stage(const Proposal& proposal, SaveQueue& queue);

 private:
  void StageWhole(const Sources& sources, Status local_status, SaveQueue& queue);
  void Stream(const Sources& sources, Status local_status, SaveQueue& queue);

  pipeline::EngineParts& engine_;
  const SaverOptions& options_;
  Reuse& reuse_;
  const std::shared_ptr<BackgroundSave> save_;
  GroupedPlan grouped_;
  std::unique_ptr<writer::StagedWriter> writer_;  // null if the memory is short
};

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_STAGER_H_
