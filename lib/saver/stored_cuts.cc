// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/stored_cuts.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/base/name_pattern.h"
#include "lib/layout/cuts.h"
#include "lib/writer/declaration_summary.h"
#include "lib/writer/tensor_checks.h"

namespace sealpoint::internal::saver {
namespace {

// Precondition: CheckOptions has accepted the patterns.
std::vector<NamePattern> PatternsOf(const SaverOptions& options) {
  std::vector<NamePattern> patterns;
  for (const auto& [text, cuts] : options.stored_cuts) {
    patterns.push_back(NamePattern::Parse(text).value());
  }
  return patterns;
}

}  // namespace

Result<std::optional<Sources>> SourceCutter::Cut(const Sources& held) {
  const Declaration& declaration = held.declaration();
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(declaration);
  if (options_.stored_cuts.empty() && !summary.has_stored_cuts()) return std::optional<Sources>();
  const Digest digest = declaration.ComputeDigest();
  if (cut_for_ != digest) {
    cut_for_.reset();
    SEALPOINT_RETURN_IF_ERROR(CutDeclaration(declaration));
    cut_for_ = digest;
  }
  const writer::DeclarationSummary& boxes = InternalAccess::SummaryOf(cut_);
  Sources sources(cut_);
  std::size_t box = 0;
  for (std::size_t slot = 0; slot < slot_ends_.size(); ++slot) {
    const std::optional<MemoryView>& view = held.tensors()[slot];
    for (; box < slot_ends_[slot]; ++box) {
      if (!view) continue;
      const writer::DeclaredView stored = boxes.held(box);
      const bool is_cut = !stored.kind.stored_cuts.empty() && !stored.is_empty();
      SEALPOINT_RETURN_IF_ERROR(sources.Bind(
          box, is_cut ? layout::ViewOfBox(*view, summary.held(slot).region(), stored.region().box,
                                          writer::ElementSize(stored.kind))
                      : *view));
    }
  }
  for (std::size_t i = 0; i < held.objects().size(); ++i) {
    SEALPOINT_RETURN_IF_ERROR(
        sources.BindObject(declaration.objects()[i].name, *held.objects()[i]));
  }
  return std::optional<Sources>(std::move(sources));
}

Status SourceCutter::CutDeclaration(const Declaration& held) {
  cut_ = Declaration();
  slot_ends_.clear();
  std::uint64_t box_count = 0;
  const std::vector<NamePattern> patterns = PatternsOf(options_);
  for (DeclaredTensor tensor : held.tensors()) {
    if (tensor.tensor.stored_cuts.empty()) {
      const auto first = std::ranges::find_if(
          patterns, [&](const NamePattern& p) { return p.Matches(tensor.tensor.name); });
      if (first != patterns.end()) {
        tensor.tensor.stored_cuts =
            options_.stored_cuts[static_cast<std::size_t>(first - patterns.begin())].second;
      }
      SEALPOINT_RETURN_IF_ERROR(writer::CheckTensorSpec(tensor.tensor));
    }
    const std::string name = tensor.tensor.name;
    SEALPOINT_RETURN_IF_ERROR(AddBoxes(std::move(tensor), box_count).AtTensor(name));
    slot_ends_.push_back(cut_.tensors().size());
  }
  for (const ObjectSpec& object : held.objects()) {
    SEALPOINT_RETURN_IF_ERROR(cut_.AddObject(object));
  }
  return {};
}

// The boxes keep the cuts of their tensor, so that ranks that cut differently are found.
Status SourceCutter::AddBoxes(DeclaredTensor tensor, std::uint64_t& box_count) {
  const std::vector<std::uint64_t> cuts = tensor.tensor.stored_cuts;
  if (cuts.empty() || writer::ViewOf(tensor).is_empty()) {
    InternalAccess::AddSlot(cut_, tensor);
    return {};
  }
  const Region region = writer::HeldRegionOf(tensor);
  const std::uint64_t count = layout::CountCutBoxes(region, cuts);
  SEALPOINT_RETURN_IF_ERROR(
      writer::CheckCutCount(count, options_.limits.shard_count_max - box_count));
  box_count += count;
  for (const Box& box : layout::CutRegion(region, cuts)) {
    tensor.region = Region::Of(box);
    InternalAccess::AddSlot(cut_, tensor);
  }
  return {};
}

Status CheckCutPatterns(Communicator& comm, const SaverOptions& options,
                        const Declaration& declaration) {
  if (options.stored_cuts.empty()) return {};
  const std::vector<NamePattern> patterns = PatternsOf(options);
  std::vector<std::uint64_t> matched(patterns.size());
  const writer::DeclarationSummary& summary = InternalAccess::SummaryOf(declaration);
  summary.ForEachTensor([&](std::span<const std::size_t> slots) {
    for (std::size_t i = 0; i < matched.size(); ++i) {
      if (matched[i] == 0 && patterns[i].Matches(summary.held(slots.front()).name)) matched[i] = 1;
    }
  });
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> any,
                             comm.AllReduceMax(std::move(matched)));
  for (std::size_t i = 0; i < any.size() && i < options.stored_cuts.size(); ++i) {
    if (any[i] != 0) continue;
    return InvalidArgument("the pattern ", options.stored_cuts[i].first,
                           " of stored_cuts matches no tensor of any rank");
  }
  return {};
}

}  // namespace sealpoint::internal::saver
