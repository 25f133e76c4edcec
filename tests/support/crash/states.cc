// SPDX-License-Identifier: Apache-2.0
#include "tests/support/crash/states.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "tests/support/crash/cut.h"

namespace sealpoint::testing {
namespace {

// Everything before an operation of a cut is in the cut.
bool IsConsistent(const CrashHistory& history,
                  const std::vector<std::vector<std::size_t>>& by_actor,
                  const std::vector<std::uint32_t>& done) {
  for (std::size_t actor = 0; actor < done.size(); ++actor) {
    if (done[actor] == 0) continue;
    const auto& clock = history.ops[by_actor[actor][done[actor] - 1]].clock;
    for (std::size_t other = 0; other < done.size(); ++other) {
      if (clock[other] > done[other]) return false;
    }
  }
  return true;
}

// Visits the states of one cut.
class CutVisitor {
 public:
  CutVisitor(CrashTimeline& timeline, std::unordered_set<std::uint64_t>& seen, CrashCounts& counts,
             const CrashVisitor& visit)
      : timeline_(timeline), seen_(seen), counts_(counts), visit_(visit) {}

  bool Run(const CrashCut& cut) {
    cut_ = &cut;
    const CrashNameStates states = NameStatesOf(timeline_, cut);
    std::vector<std::size_t> chosen(states.groups.size(), 0);
    for (bool more = true; more;) {
      CrashNames names = states.certain;
      for (std::size_t i = 0; i < chosen.size(); ++i) {
        for (const auto& [key, node] : states.groups[i][chosen[i]]) names[key] = node;
      }
      if (!RunNames(names)) return false;
      more = false;
      for (std::size_t i = 0; i < chosen.size() && !more; ++i) {
        more = ++chosen[i] < states.groups[i].size();
        if (!more) chosen[i] = 0;
      }
    }
    return true;
  }

 private:
  struct Pending {
    const std::vector<CrashContentPtr>* states;
    std::size_t chosen;
  };

  bool RunNames(const CrashNames& names) {
    tree_ = TreeOf(timeline_.history(), names);
    pending_.clear();
    fixed_.clear();
    fixed_hash_ = tree_.folders_hash;
    for (const CrashFileRef& file : tree_.files) {
      const auto* states = timeline_.PendingStates(*cut_, file.node);
      if (states != nullptr) {
        pending_.try_emplace(file.node, Pending{states, 0});
        continue;
      }
      const CrashContentPtr content = timeline_.WholeContent(*cut_, file.node);
      fixed_.emplace(file.node, content);
      fixed_hash_ += HashEntry(file.name_hash, *content);
    }
    return RunContents();
  }

  // The rule stated in the header.
  bool RunContents() {
    constexpr std::size_t kUniformCount = 4;
    constexpr std::size_t kLost = 0;
    constexpr std::size_t kWhole = 1;
    for (std::size_t i = 0; i < kUniformCount; ++i) {
      SetAll(i);
      if (!Try()) return false;
      if (pending_.empty()) return true;
    }
    for (const std::size_t others : {kLost, kWhole}) {
      for (auto& [node, one] : pending_) {
        SetAll(others);
        for (one.chosen = 0; one.chosen < one.states->size(); ++one.chosen) {
          if (!Try()) return false;
        }
      }
      if (!RunPairs(others)) return false;
    }
    return true;
  }

  bool RunPairs(std::size_t others) {
    constexpr std::size_t kFewCount = 8;  // the uniform ones and those of kFew
    for (auto a = pending_.begin(); a != pending_.end(); ++a) {
      for (auto b = std::next(a); b != pending_.end(); ++b) {
        SetAll(others);
        const std::size_t a_count = std::min(kFewCount, a->second.states->size());
        const std::size_t b_count = std::min(kFewCount, b->second.states->size());
        for (std::size_t i = 0; i < a_count * b_count; ++i) {
          a->second.chosen = i / b_count;
          b->second.chosen = i % b_count;
          if (!Try()) return false;
        }
      }
    }
    return true;
  }

  void SetAll(std::size_t state) {
    for (auto& [node, one] : pending_) one.chosen = state;
  }

  const CrashContentPtr& ContentOf(CrashNodeId node) const {
    const auto found = pending_.find(node);
    if (found == pending_.end()) return fixed_.at(node);
    return (*found->second.states)[found->second.chosen];
  }

  bool Try() {
    ++counts_.states;
    std::uint64_t hash = fixed_hash_;
    if (!pending_.empty()) {
      for (const CrashFileRef& file : tree_.files) {
        if (!pending_.contains(file.node)) continue;
        hash += HashEntry(file.name_hash, *ContentOf(file.node));
      }
    }
    const std::uint64_t reported =
        (cut_->success_count > 0 ? 1u : 0u) + (cut_->failure_count > 0 ? 2u : 0u);
    if (!seen_.insert(MixHashes(hash, reported)).second) return true;
    ++counts_.distinct;
    CrashImage image{.is_bucket = timeline_.history().is_bucket};
    for (const std::string& folder : tree_.folders) image.folders.try_emplace(folder);
    for (const CrashFileRef& file : tree_.files) {
      image.folders[file.folder].files[file.name] = ContentOf(file.node);
    }
    return visit_(image, *cut_);
  }

  CrashTimeline& timeline_;
  std::unordered_set<std::uint64_t>& seen_;
  CrashCounts& counts_;
  const CrashVisitor& visit_;
  const CrashCut* cut_ = nullptr;
  CrashTree tree_;
  std::map<CrashNodeId, Pending> pending_;
  std::map<CrashNodeId, CrashContentPtr> fixed_;
  std::uint64_t fixed_hash_ = 0;
};

}  // namespace

CrashCounts& CrashCounts::operator+=(const CrashCounts& other) {
  points += other.points;
  states += other.states;
  distinct += other.distinct;
  return *this;
}

CrashCut CutOf(const CrashHistory& history, const std::vector<std::uint32_t>& done) {
  CrashCut cut{.done = done};
  for (const CrashOp& op : history.ops) {
    const auto actor = static_cast<std::size_t>(op.actor);
    if (op.clock[actor] > done[actor]) continue;
    cut.last = &op;
    if (op.kind != CrashOpKind::kReported) continue;
    ++(op.name == kReportedSuccess ? cut.success_count : cut.failure_count);
  }
  return cut;
}

std::vector<std::pair<std::string, std::uint64_t>> CrashCounts::ForResults() const {
  return {{"crash points", points}, {"states", states}, {"distinct images", distinct}};
}

std::vector<CrashCut> AllCuts(const CrashHistory& history, bool only_prefixes) {
  const auto by_actor = history.by_actor();
  std::vector<CrashCut> cuts;
  std::vector<std::uint32_t> done(by_actor.size(), 0);
  if (only_prefixes) {
    cuts.push_back(CutOf(history, done));
    for (const CrashOp& op : history.ops) {
      ++done[static_cast<std::size_t>(op.actor)];
      cuts.push_back(CutOf(history, done));
    }
    return cuts;
  }
  for (bool more = true; more;) {
    if (IsConsistent(history, by_actor, done)) cuts.push_back(CutOf(history, done));
    more = false;
    for (std::size_t i = 0; i < done.size() && !more; ++i) {
      more = ++done[i] <= by_actor[i].size();
      if (!more) done[i] = 0;
    }
  }
  return cuts;
}

namespace {

CrashCounts VisitCuts(const CrashHistory& history, const std::vector<CrashCut>& cuts,
                      const CrashOptions& options, const CrashVisitor& visit) {
  CrashCounts counts;
  CrashTimeline timeline(history, options);
  std::unordered_set<std::uint64_t> seen;
  CutVisitor visitor(timeline, seen, counts, visit);
  for (const CrashCut& cut : cuts) {
    ++counts.points;
    if (!visitor.Run(cut)) break;
  }
  return counts;
}

}  // namespace

CrashCounts ForEachCrash(const CrashHistory& history, const CrashOptions& options,
                         const CrashVisitor& visit) {
  return VisitCuts(history, AllCuts(history, options.only_prefixes), options, visit);
}

CrashCounts ForEachCrashAt(const CrashHistory& history, const CrashCut& cut,
                           const CrashOptions& options, const CrashVisitor& visit) {
  return VisitCuts(history, {cut}, options, visit);
}

CrashImage MakeImage(const CrashHistory& history, const CrashCut& cut, const CrashOptions& options,
                     const CrashChoice& choice) {
  CrashTimeline timeline(history, options);
  std::vector<std::size_t> surviving;
  const std::vector<std::size_t> pending = PendingNames(timeline, cut);
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (i >= choice.names.size() || choice.names[i]) surviving.push_back(pending[i]);
  }
  const CrashTree tree = TreeOf(history, ApplyNames(timeline, cut, surviving));
  CrashImage image{.is_bucket = history.is_bucket};
  for (const std::string& folder : tree.folders) image.folders.try_emplace(folder);
  std::map<CrashNodeId, CrashContentPtr> contents;
  std::size_t next = 0;
  for (const CrashFileRef& file : tree.files) {
    CrashContentPtr& content = contents[file.node];
    if (!content) {
      const FileStates states = timeline.StatesOf(cut, file.node);
      std::vector<SectorFate> fates;
      for (std::size_t i = 0; i < states.sector_count(); ++i, ++next) {
        fates.push_back(next < choice.sectors.size() ? static_cast<SectorFate>(choice.sectors[next])
                                                     : SectorFate::kWritten);
      }
      // A file of which nothing survived may have lost its length too.
      const bool is_lost = !fates.empty() && std::all_of(fates.begin(), fates.end(), [](auto fate) {
        return fate == SectorFate::kLost;
      });
      content = states.Make(is_lost ? states.durable_size() : states.whole_size(), fates);
    }
    image.folders[file.folder].files[file.name] = content;
  }
  return image;
}

}  // namespace sealpoint::testing
