// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "tools/ckpt/ls/print.h"
#include "tools/common/json.h"
#include "tools/common/output.h"
#include "tools/common/terminal.h"
#include "tools/common/text.h"

namespace sealpoint::tools::ls {
namespace {

std::string PlacementText(const PlanView& view) {
  std::string text;
  const auto add = [&](std::size_t count, std::string_view what) {
    if (count == 0) return;
    text += text.empty() ? FormatCount(count, "tensor") : fmt::format(", {}", count);
    text += what;
  };
  add(view.stored_count, " as stored");
  add(view.given_count, " as --place says");
  add(view.whole_count, " whole on every rank");
  return text.empty() ? "no tensors" : text;
}

std::string AmplificationText(double ratio) { return fmt::format("{:.2f}", ratio); }

std::vector<std::string> SummaryCells(const PlanSummary& summary) {
  return {fmt::format("{}", summary.items),    BytesText(summary.bytes_requested),
          BytesText(summary.bytes_read),       fmt::format("{}", summary.files),
          fmt::format("{}", summary.requests), AmplificationText(summary.amplification)};
}

Json SummaryToJson(const PlanSummary& summary) {
  return {{"item_count", summary.items},
          {"bytes_requested", summary.bytes_requested},
          {"bytes_read", summary.bytes_read},
          {"file_count", summary.files},
          {"request_count", summary.requests},
          {"chunk_count", summary.chunks},
          {"table_bytes_read", summary.table_bytes_read},
          {"amplification", summary.amplification}};
}

Json MeshToJson(const MeshAxes& axes) {
  Json json = Json::array();
  for (const auto& [axis, size] : axes) json.push_back({{"axis", axis}, {"size", size}});
  return json;
}

double AloneOverTogether(const PlanView& view) {
  if (view.together.bytes_read == 0) return 1;
  return static_cast<double>(view.alone.bytes_read) / static_cast<double>(view.together.bytes_read);
}

// One row of a table: what it is about, the coordinates of a rank, and what is read.
std::vector<std::string> RowOf(std::string first, std::vector<std::string> coordinates,
                               std::vector<std::string> cells) {
  std::vector<std::string> row = {std::move(first)};
  std::move(coordinates.begin(), coordinates.end(), std::back_inserter(row));
  std::move(cells.begin(), cells.end(), std::back_inserter(row));
  return row;
}

Table TableOf(const PlanView& view) {
  Table table({Table::Align::kLeft, Table::Align::kRight});
  std::vector<std::string> axes;
  for (const auto& [axis, size] : view.mesh.axes()) axes.push_back(Printable(axis));
  const std::vector<std::string> blanks(axes.size());
  table.Add(
      RowOf("rank", axes, {"items", "requested", "read", "files", "requests", "read/requested"}));
  for (std::size_t rank = 0; rank < view.ranks.size(); ++rank) {
    std::vector<std::string> coordinates;
    for (const std::uint32_t coordinate : view.ranks[rank].coordinates) {
      coordinates.push_back(fmt::format("{}", coordinate));
    }
    table.Add(RowOf(fmt::format("{}", rank), std::move(coordinates),
                    SummaryCells(view.ranks[rank].summary)));
  }
  table.Add(RowOf("each alone", blanks, SummaryCells(view.alone)));
  // As many bytes arrive, of fewer that are read. Who requests what is decided in the load.
  const std::uint64_t requested = view.alone.bytes_requested;
  const double ratio = requested == 0 ? 0
                                      : static_cast<double>(view.together.bytes_read) /
                                            static_cast<double>(requested);
  table.Add(RowOf("together", blanks,
                  {"", BytesText(requested), BytesText(view.together.bytes_read),
                   fmt::format("{}", view.together.files), "", AmplificationText(ratio)}));
  return table;
}

}  // namespace

void PrintPlan(const Checkpoint& checkpoint, const PlanView& view) {
  PrintFact("checkpoint", Printable(checkpoint.path()));
  if (!checkpoint.mesh().empty()) PrintFact("saved on", FormatMesh(checkpoint.mesh()));
  PrintFact("plan for", fmt::format("{}: {}", FormatMesh(view.mesh.axes()),
                                    FormatCount(view.ranks.size(), "rank")));
  PrintFact("placement", PlacementText(view));
  for (const std::string& note : view.notes) PrintFact("note", Printable(note));
  Print("\n");
  TableOf(view).Print();
  Print("\nTogether (a collective load) they read each chunk once and share it: {}.\n",
        BytesText(view.together.bytes_read));
  Print("Each alone, they read {} in all: {} times as much.\n", BytesText(view.alone.bytes_read),
        AmplificationText(AloneOverTogether(view)));
}

void PrintPlanJson(const Checkpoint& checkpoint, const PlanView& view, JsonWriter& json) {
  json.BeginObject();
  json.Field("path", checkpoint.path());
  json.Field("saved_mesh", MeshToJson(checkpoint.mesh()));
  json.Field("mesh", MeshToJson(view.mesh.axes()));
  json.Field("placements", {{"stored_count", view.stored_count},
                            {"given_count", view.given_count},
                            {"whole_count", view.whole_count}});
  json.Field("notes", view.notes);
  json.BeginArray("ranks");
  for (std::size_t rank = 0; rank < view.ranks.size(); ++rank) {
    Json one = {{"rank", rank}, {"coordinates", view.ranks[rank].coordinates}};
    one.update(SummaryToJson(view.ranks[rank].summary));
    json.Element(one);
  }
  json.End();
  json.Field("each_alone", SummaryToJson(view.alone));
  json.Field("together", {{"bytes_read", view.together.bytes_read},
                          {"file_count", view.together.files},
                          {"chunk_count", view.together.chunks}});
  json.Field("alone_over_together", AloneOverTogether(view));
}

}  // namespace sealpoint::tools::ls
