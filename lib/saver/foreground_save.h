// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_FOREGROUND_SAVE_H_
#define SEALPOINT_LIB_SAVER_FOREGROUND_SAVE_H_

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/observe/phase_recorder.h"
#include "lib/saver/plan_agreement.h"
#include "lib/saver/reuse.h"
#include "lib/saver/save_run.h"
#include "lib/writer/blob_writer_impl.h"
#include "sealpoint/saver.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// The payload of a save on the calling thread: each step reads the sources when its turn comes.
class ForegroundSave final : public Payload {
 public:
  // Borrows everything but `local_status`, which is this rank's own outcome so far.
  ForegroundSave(const SaverOptions& options, PlanAgreement& plans, Reuse& reuse, Proposal proposal,
                 Status local_status, observe::PhaseRecorder& recorder)
      : options_(options),
        plans_(plans),
        reuse_(reuse),
        proposal_(std::move(proposal)),
        local_status_(std::move(local_status)),
        recorder_(recorder) {}

  Status Begin() override { return plans_.Begin("save", local_status_, proposal_); }
  Status Ready() const override { return proposal_.local.status(); }
  Status Plan() override;
  Result<std::span<const FrozenGroup>> FindGroups(const Attempt& attempt) override;
  void Drop(const std::set<std::string>& linked) override;
  std::uint64_t tensor_bytes() const override { return plan_ ? plan_->tensor_bytes : 0; }
  Status Write(const SaveRun& run) override;
  writer::BlobWriterImpl* writer() override { return writer_.get(); }

 private:
  const SaverOptions& options_;
  PlanAgreement& plans_;
  Reuse& reuse_;
  Proposal proposal_;
  const Status local_status_;
  observe::PhaseRecorder& recorder_;
  GroupedPlan grouped_{};
  std::vector<FrozenGroup> groups_{};       // of grouped_
  std::shared_ptr<const SavePlan> plan_{};  // grouped_ without linked groups; null before Drop
  std::unique_ptr<writer::BlobWriterImpl> writer_{};
};

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_FOREGROUND_SAVE_H_
