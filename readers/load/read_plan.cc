// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/read_plan.h"

#include <set>
#include <string_view>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "readers/load/plan_text.h"
#include "readers/load/read_plan_data.h"
#include "sealpoint/bytes.h"

namespace sealpoint {
namespace {

using internal::StrCat;
using internal::load::CountText;
using internal::load::RatioText;
using internal::load::ReadPlanData;
using internal::transfer::PlanRange;

// The names, of which a few are enough.
std::string ListNames(const ReadPlanData& plan, const std::set<std::uint32_t>& numbers) {
  constexpr std::size_t kNamedMax = 4;
  std::string list;
  std::size_t named = 0;
  for (const std::uint32_t number : numbers) {
    if (named == kNamedMax) return StrCat(list, " and ", numbers.size() - kNamedMax, " more");
    list += StrCat(named++ == 0 ? "" : ", ", Printable(plan.names[number]));
  }
  return list;
}

// One line on ranges [begin, end), which are those of one blob.
std::string ExplainFile(const ReadPlanData& plan, std::string_view name, std::size_t begin,
                        std::size_t end) {
  std::uint64_t bytes = 0;
  std::uint64_t chunks = 0;
  std::set<std::uint32_t> names;
  for (std::size_t i = begin; i < end; ++i) {
    const PlanRange& range = plan.ranges[i];
    bytes += range.size;
    chunks += range.chunk_count;
    for (std::size_t k = 0; k < range.chunk_count; ++k) {
      names.insert(plan.chunks[range.first_chunk + k].name);
    }
  }
  return StrCat("  ", name, ": ", CountText(end - begin, "range"), ", ", CountText(chunks, "chunk"),
                ", ", BytesText(bytes), ": ", ListNames(plan, names), "\n");
}

}  // namespace

void ReadRequest::Add(std::string_view tensor, MutableMemoryView destination) {
  items.push_back({.tensor = std::string(tensor), .destination = std::move(destination)});
}

void ReadRequest::Add(std::string_view tensor, Region region, MutableMemoryView destination) {
  items.push_back({.tensor = std::string(tensor),
                   .region = std::move(region),
                   .destination = std::move(destination)});
}

void ReadRequest::Add(std::string_view tensor, Box box, MutableMemoryView destination) {
  Add(tensor, Region::Of(std::move(box)), std::move(destination));
}

void ReadRequest::AddSlices(std::string_view tensor, const std::vector<Slice>& slices,
                            MutableMemoryView destination) {
  ReadItem item{.tensor = std::string(tensor), .destination = std::move(destination)};
  Box box;
  for (const Slice& slice : slices) {
    box.offset.push_back(slice.start);
    box.extent.push_back(slice.stop > slice.start ? slice.stop - slice.start : 0);
    item.steps.push_back(slice.step);
  }
  item.region = Region::Of(std::move(box));
  items.push_back(std::move(item));
}

void ReadRequest::Add(std::string_view tensor, const LocalLayout& layout,
                      const MutableMemoryView& local) {
  for (const LocalPart& part : layout.parts) {
    items.push_back({.tensor = std::string(tensor),
                     .region = part.region,
                     .destination = local,
                     .part = std::make_shared<const LocalPart>(part)});
  }
}

std::string PlanSummary::ToString() const {
  return StrCat(CountText(items, "item"), ": ", BytesText(bytes_requested), " requested, ",
                BytesText(bytes_read), " read (", RatioText(amplification), ") in ",
                CountText(requests, "range"), " of ", CountText(files, "file"), ", ",
                CountText(chunks, "chunk"), "; ", table_bytes_read, " table bytes");
}

ReadPlan::ReadPlan(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

const internal::load::ReadPlanData& InternalAccess::DataOf(const ReadPlan& plan) {
  return *plan.data_;
}

ReadPlan InternalAccess::MakePlan(internal::load::ReadPlanData data) {
  using Data = ReadPlan::Data;
  return ReadPlan(std::make_shared<const Data>(Data{std::move(data)}));
}

PlanSummary ReadPlan::Summary() const { return data_->summary; }

std::string ReadPlan::Explain() const {
  std::string text = data_->summary.ToString() + "\n";
  std::size_t file = 0;
  for (std::size_t begin = 0; begin < data_->ranges.size(); ++file) {
    std::size_t end = begin + 1;
    while (end < data_->ranges.size() && data_->ranges[end].blob == data_->ranges[begin].blob) {
      ++end;
    }
    text += ExplainFile(*data_, data_->blob_names[file], begin, end);
    begin = end;
  }
  return text;
}

const std::vector<LoadFinding>& ReadPlan::findings() const& { return data_->findings; }
std::vector<LoadFinding> ReadPlan::findings() const&& { return data_->findings; }

}  // namespace sealpoint
