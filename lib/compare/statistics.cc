// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lib/base/macros.h"
#include "lib/compare/select_tensors.h"
#include "lib/compare/summary.h"
#include "lib/compare/values.h"
#include "lib/pipeline/byte_meter.h"
#include "lib/tensor_stream/stream.h"
#include "sealpoint/content.h"

namespace sealpoint {
double ValueStatistics::standard_deviation() const {
  const std::uint64_t count = finite_count();
  return count == 0 ? 0 : std::sqrt(squared_deviations / static_cast<double>(count));
}

double ValueStatistics::l2() const { return std::sqrt(squares); }

// Means and deviations of two sets make those of both: Chan, Golub, LeVeque, "Updating formulae and
// a pairwise algorithm for computing sample variances", 1979.
void ValueStatistics::Add(const ValueStatistics& more) {
  const auto own = static_cast<double>(finite_count());
  const auto other = static_cast<double>(more.finite_count());
  if (other > 0) {
    const double distance = more.mean - mean;
    squared_deviations +=
        more.squared_deviations + distance * distance * (own * other / (own + other));
    mean += distance * (other / (own + other));
  }
  squares += more.squares;
  min = std::min(min, more.min);
  max = std::max(max, more.max);
  value_count += more.value_count;
  nan_count += more.nan_count;
  positive_infinity_count += more.positive_infinity_count;
  negative_infinity_count += more.negative_infinity_count;
  zero_count += more.zero_count;
  saturated_count += more.saturated_count;
  zero_tail_count += more.zero_tail_count;
  for (const auto& [exponent, count] : more.exponents) exponents[exponent] += count;
}

Result<std::vector<TensorStatistics>> ComputeStatistics(const Checkpoint& checkpoint,
                                                        const ContentOptions& options) {
  using namespace internal::compare;  // NOLINT: what this file is about
  namespace stream = internal::tensor_stream;
  SEALPOINT_ASSIGN_OR_RETURN(std::vector<std::size_t> tensors, SelectTensors(checkpoint, options));
  std::vector<TensorStatistics> all;
  std::vector<std::size_t> positions(checkpoint.tensor_count());  // in `all`
  for (const std::size_t tensor : tensors) {
    TensorInfo info = checkpoint.tensor(tensor);
    positions[tensor] = all.size();
    all.push_back(
        {.name = std::move(info.name), .dtype = info.dtype, .shape = std::move(info.shape)});
    if (HasValues(info.dtype)) all.back().values.emplace();
  }
  std::erase_if(tensors, [&](std::size_t tensor) { return !all[positions[tensor]].values; });
  const std::vector<stream::Piece> pieces = stream::WholeTensors(checkpoint, tensors);
  internal::pipeline::ByteMeter meter(
      internal::pipeline::ReportTo(options.on_progress, Phase::kCompare), stream::RawBytes(pieces));
  SEALPOINT_RETURN_IF_ERROR(stream::ForEachPiece<ValueStatistics>(
      std::array{stream::Side{checkpoint}}, pieces, options.threads, meter,
      [&](const stream::Piece& piece, const std::array<ByteSpan, 1>& bytes) {
        return StatisticsOf(all[positions[piece.tensor]].dtype, bytes[0]);
      },
      [&](const stream::Piece& piece, const ValueStatistics& some) {
        AddBehind(*all[positions[piece.tensor]].values, some);
      }));
  return all;
}

}  // namespace sealpoint
