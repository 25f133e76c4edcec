// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "tools/ckpt-inspect/print.h"
#include "tools/common/json.h"
#include "tools/common/terminal.h"
#include "tools/common/text.h"

namespace sealpoint::tools {
namespace {

std::string MeshText(const MeshAxes& axes) {
  std::string text;
  for (const auto& [axis, size] : axes) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " x ", Printable(axis), size);
  }
  return text;
}

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

std::string RatioText(double ratio) { return fmt::format("{:.2f}", ratio); }

// Columns as wide as their longest entry; the first one to the left, numbers to the right.
class Table {
 public:
  void Add(std::vector<std::string> row) {
    widths_.resize(std::max(widths_.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], Width(row[i]));
    rows_.push_back(std::move(row));
  }

  // The first row in bold: it names the columns.
  void Print() const {
    for (const std::vector<std::string>& row : rows_) {
      std::string line;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string space(widths_[i] - Width(row[i]), ' ');
        line += i == 0 ? row[i] + space : "  " + space + row[i];
      }
      line.erase(line.find_last_not_of(' ') + 1);
      fmt::print("{}\n", &row == &rows_.front() ? Bold(line) : line);
    }
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> widths_;
};

std::vector<std::string> SummaryCells(const PlanSummary& summary) {
  return {fmt::format("{}", summary.items),    FormatBytes(summary.bytes_wanted),
          FormatBytes(summary.bytes_read),     fmt::format("{}", summary.files),
          fmt::format("{}", summary.requests), RatioText(summary.amplification)};
}

Json SummaryToJson(const PlanSummary& summary) {
  return {{"items", summary.items},
          {"bytes_wanted", summary.bytes_wanted},
          {"bytes_read", summary.bytes_read},
          {"files", summary.files},
          {"requests", summary.requests},
          {"chunks", summary.chunks},
          {"table_bytes", summary.table_bytes_read},
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
  Table table;
  std::vector<std::string> axes;
  for (const auto& [axis, size] : view.mesh.axes()) axes.push_back(Printable(axis));
  const std::vector<std::string> blanks(axes.size());
  table.Add(RowOf("rank", axes, {"items", "wanted", "read", "files", "requests", "read/wanted"}));
  for (std::size_t rank = 0; rank < view.ranks.size(); ++rank) {
    std::vector<std::string> coordinates;
    for (const std::uint32_t one : view.ranks[rank].coordinates) {
      coordinates.push_back(fmt::format("{}", one));
    }
    table.Add(RowOf(fmt::format("{}", rank), std::move(coordinates),
                    SummaryCells(view.ranks[rank].summary)));
  }
  table.Add(RowOf("each alone", blanks, SummaryCells(view.alone)));
  // As many bytes arrive, of fewer that are read. Who requests what is decided in the load.
  const std::uint64_t wanted = view.alone.bytes_wanted;
  const double ratio =
      wanted == 0 ? 0 : static_cast<double>(view.together.bytes_read) / static_cast<double>(wanted);
  table.Add(RowOf("together", blanks,
                  {"", FormatBytes(wanted), FormatBytes(view.together.bytes_read),
                   fmt::format("{}", view.together.files), "", RatioText(ratio)}));
  return table;
}

}  // namespace

void PrintPlan(const Checkpoint& checkpoint, const PlanView& view) {
  PrintFact("checkpoint", Printable(checkpoint.path()));
  if (!checkpoint.mesh().empty()) PrintFact("saved on", MeshText(checkpoint.mesh()));
  PrintFact("plan for", fmt::format("{}: {}", MeshText(view.mesh.axes()),
                                    FormatCount(view.ranks.size(), "rank")));
  PrintFact("placement", PlacementText(view));
  for (const std::string& note : view.notes) PrintFact("note", Printable(note));
  fmt::print("\n");
  TableOf(view).Print();
  fmt::print("\nTogether (a collective load) they read each chunk once and pass it on: {}.\n",
             FormatBytes(view.together.bytes_read));
  fmt::print("Each alone, they read {} in all: {} times as much.\n",
             FormatBytes(view.alone.bytes_read), RatioText(AloneOverTogether(view)));
}

void PrintPlanJson(const Checkpoint& checkpoint, const PlanView& view) {
  Json ranks = Json::array();
  for (std::size_t rank = 0; rank < view.ranks.size(); ++rank) {
    Json json = {{"rank", rank}, {"coordinates", view.ranks[rank].coordinates}};
    json.update(SummaryToJson(view.ranks[rank].summary));
    ranks.push_back(std::move(json));
  }
  PrintJson(
      {{"path", checkpoint.path()},
       {"saved_mesh", MeshToJson(checkpoint.mesh())},
       {"mesh", MeshToJson(view.mesh.axes())},
       {"placements",
        {{"stored", view.stored_count}, {"given", view.given_count}, {"whole", view.whole_count}}},
       {"notes", view.notes},
       {"ranks", ranks},
       {"each_alone", SummaryToJson(view.alone)},
       {"together",
        {{"bytes_read", view.together.bytes_read},
         {"files", view.together.files},
         {"chunks", view.together.chunks}}},
       {"alone_over_together", AloneOverTogether(view)}});
}

}  // namespace sealpoint::tools
