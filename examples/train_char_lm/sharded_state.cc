// SPDX-License-Identifier: Apache-2.0
#include "sharded_state.h"

#include <algorithm>
#include <utility>

namespace char_lm {
namespace {

// The rows of `tensor` in `rows`, as a part of the flat vector of all parameters.
template <typename T>
std::span<T> Rows(const ParameterTensor& tensor, Range rows, std::span<T> flat) {
  return flat.subspan(tensor.begin + rows.begin * tensor.row_elements(),
                      rows.size() * tensor.row_elements());
}

ShardedTensor Describe(const ParameterTensor& tensor, std::string name, Range rows, float* data) {
  ShardedTensor shard{.name = std::move(name),
                      .shape = {tensor.shape.begin(), tensor.shape.end()},
                      .offset = std::vector<std::uint64_t>(tensor.shape.size(), 0),
                      .extent = {tensor.shape.begin(), tensor.shape.end()},
                      .data = data};
  shard.offset.front() = rows.begin;
  shard.extent.front() = rows.size();
  return shard;
}

}  // namespace

ShardedState::ShardedState(std::vector<ParameterTensor> tensors, std::size_t rank, std::size_t size)
    : tensors_(std::move(tensors)), rank_(rank), packed_sizes_(size, 0) {
  std::size_t total = 0;
  for (const ParameterTensor& tensor : tensors_) {
    total += tensor.elements();
    for (std::size_t owner = 0; owner < size; ++owner) {
      packed_sizes_[owner] += EvenPart(tensor.rows(), owner, size).size() * tensor.row_elements();
    }
  }
  parameters_.resize(total);
  exp_avg_.resize(owned_size());
  exp_avg_sq_.resize(owned_size());
}

void ShardedState::Pack(std::size_t owner, std::span<const float> flat,
                        std::span<float> packed) const {
  float* to = packed.data();
  for (const ParameterTensor& tensor : tensors_) {
    const auto rows = Rows(tensor, EvenPart(tensor.rows(), owner, packed_sizes_.size()), flat);
    to = std::copy(rows.begin(), rows.end(), to);
  }
}

void ShardedState::Unpack(std::size_t owner, std::span<const float> packed,
                          std::span<float> flat) const {
  for (const ParameterTensor& tensor : tensors_) {
    const auto rows = Rows(tensor, EvenPart(tensor.rows(), owner, packed_sizes_.size()), flat);
    std::copy_n(packed.begin(), rows.size(), rows.begin());
    packed = packed.subspan(rows.size());
  }
}

std::vector<ShardedTensor> ShardedState::Tensors() {
  std::vector<ShardedTensor> parameters;
  std::vector<ShardedTensor> first;
  std::vector<ShardedTensor> second;
  std::size_t packed_begin = 0;
  for (const ParameterTensor& tensor : tensors_) {
    const Range rows = EvenPart(tensor.rows(), rank_, packed_sizes_.size());
    float* const values = Rows(tensor, rows, std::span<float>(parameters_)).data();
    parameters.push_back(Describe(tensor, tensor.name, rows, values));
    first.push_back(
        Describe(tensor, "optimizer.exp_avg." + tensor.name, rows, exp_avg_.data() + packed_begin));
    second.push_back(Describe(tensor, "optimizer.exp_avg_sq." + tensor.name, rows,
                              exp_avg_sq_.data() + packed_begin));
    packed_begin += rows.size() * tensor.row_elements();
  }
  parameters.insert(parameters.end(), first.begin(), first.end());
  parameters.insert(parameters.end(), second.begin(), second.end());
  return parameters;
}

void ShardedState::AssembleParameters(GradientExchange& exchange) {
  std::vector<float> owned(owned_size());
  Pack(rank_, parameters_, owned);
  gathered_.resize(parameters_.size());
  exchange.AllGather(owned, gathered_, packed_sizes_);
  std::span<const float> rest(gathered_);
  for (std::size_t owner = 0; owner < packed_sizes_.size(); ++owner) {
    Unpack(owner, rest, parameters_);
    rest = rest.subspan(packed_sizes_[owner]);
  }
}

}  // namespace char_lm
