// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/reuse.h"

namespace sealpoint::internal::saver {
namespace {

// Links the groups that the options name.
class DeclaredReuse : public Reuse {
 public:
  DeclaredReuse(pipeline::EngineParts& engine, const SaverOptions& options)
      : engine_(engine), options_(options) {}

  Result<std::vector<FrozenGroup>> FindGroups(const GroupedPlan& grouped,
                                              const Sources& sources) final {
    return DigestFrozen(engine_, options_, grouped, sources);
  }

 protected:
  pipeline::EngineParts& engine_;
  const SaverOptions& options_;
};

// Links shards that were found not to change, too.
class LearnedReuse final : public DeclaredReuse {
 public:
  using DeclaredReuse::DeclaredReuse;

  Result<GroupedPlan> Group(const LocalPlan& local_plan, const Sources& sources) override {
    return learned_.Look(engine_, options_, local_plan.declaration, local_plan.plan, sources);
  }

 private:
  LearnedFrozen learned_;
};

}  // namespace

bool MayLink(const SaverOptions& options) {
  return !options.frozen_groups.empty() || options.learn_frozen;
}

Result<GroupedPlan> Reuse::Group(const LocalPlan& local_plan, const Sources& /*sources*/) {
  return GroupedPlan{.plan = local_plan.plan};
}

Result<std::vector<FrozenGroup>> Reuse::FindGroups(const GroupedPlan& /*grouped*/,
                                                   const Sources& /*sources*/) {
  return std::vector<FrozenGroup>();
}

std::unique_ptr<Reuse> MakeReuse(pipeline::EngineParts& engine, const SaverOptions& options) {
  if (options.learn_frozen) return std::make_unique<LearnedReuse>(engine, options);
  if (MayLink(options)) return std::make_unique<DeclaredReuse>(engine, options);
  return std::make_unique<Reuse>();
}

}  // namespace sealpoint::internal::saver
