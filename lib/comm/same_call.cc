// SPDX-License-Identifier: Apache-2.0
#include "lib/comm/same_call.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/comm/agree.h"
#include "lib/comm/status_codec.h"
#include "sealpoint/detail/agreement.h"

namespace sealpoint::internal::comm {
namespace {

// FNV-1a. Of two messages that differ the numbers differ, but for a chance of about 2^-64.
std::uint64_t Fingerprint(ByteSpan message) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const std::byte byte : message) {
    sum = (sum ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  }
  return sum;
}

// "save (target runs/a, step 7)".
std::string TextOf(const CollectiveCall& call) {
  std::string text(call.kind);
  const std::size_t count = std::min(call.named_arguments_max, call.arguments.size());
  for (std::size_t i = 0; i < count; ++i) {
    text += StrCat(i == 0 ? " (" : ", ", call.arguments[i].name, " ", call.arguments[i].value);
  }
  return count == 0 ? text : text + ")";
}

// What a rank said, as the others get it.
struct Said {
  std::string host;
  std::string text;
  std::string kind;
  std::vector<std::pair<std::string, std::string>> arguments;
};

// Without a host all ranks that make the same call have the same bytes.
Bytes Encode(const CollectiveCall& call, std::string_view host = {}) {
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(host);
  out.Put(TextOf(call));
  out.Put(call.kind);
  for (const CollectiveCall::Argument& argument : call.arguments) {
    out.Put(argument.name);
    out.Put(argument.value);
  }
  return bytes;
}

Result<Said> Decode(ByteSpan bytes) {
  WireReader in(bytes);
  Said said;
  SEALPOINT_ASSIGN_OR_RETURN(said.host, in.Text());
  SEALPOINT_ASSIGN_OR_RETURN(said.text, in.Text());
  SEALPOINT_ASSIGN_OR_RETURN(said.kind, in.Text());
  while (!in.at_end()) {
    auto& [name, value] = said.arguments.emplace_back();
    SEALPOINT_ASSIGN_OR_RETURN(name, in.Text());
    SEALPOINT_ASSIGN_OR_RETURN(value, in.Text());
  }
  return said;
}

// How the call of a rank differs from that of rank 0; success if it does not.
Status Compare(const Said& first, const Said& other, int rank, std::string_view rule) {
  const auto at_rank = [&](Status error) {
    return Status(std::move(error).AtRank(rank, other.host));
  };
  if (first.kind != other.kind || first.arguments.size() != other.arguments.size()) {
    return at_rank(InvalidArgument("the ranks make different calls: rank 0 calls ", first.text,
                                   ", rank ", rank, " ", other.text));
  }
  for (std::size_t i = 0; i < first.arguments.size(); ++i) {
    const auto& [name, value] = first.arguments[i];
    const std::string& value_there = other.arguments[i].second;
    if (value == value_there) continue;
    return at_rank(InvalidArgument("the ranks disagree on ", first.text, ": ", name, " is ", value,
                                   " on rank 0, ", value_there, " on rank ", rank)
                       .AtRule(rule));
  }
  return {};
}

// The first difference between the calls of the ranks, by rank; success if there is none.
Status CompareAll(std::span<const Bytes> calls, std::string_view rule) {
  std::vector<Said> said;
  for (const Bytes& call : calls) {
    SEALPOINT_ASSIGN_OR_RETURN(Said decoded, Decode(call));
    said.push_back(std::move(decoded));
    const int rank = static_cast<int>(said.size()) - 1;
    SEALPOINT_RETURN_IF_ERROR(Compare(said.front(), said.back(), rank, rule));
  }
  return {};
}

// Some rank makes another call: which, and how it differs.
Status Explain(Communicator& comm, const CollectiveCall& call) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all,
                             comm.AllGather(Encode(call, comm.host())));
  SEALPOINT_RETURN_IF_ERROR(CompareAll(all, call.rule));
  return MalformedMessage();
}

// Beside the other numbers of a call each rank sends one whose maximum is known: of a communicator
// that takes its numbers for signed ones, no other maximum can be trusted.
constexpr std::uint64_t kHighestBit = std::uint64_t{1} << 63;
std::uint64_t MakeProbe(const Communicator& comm) { return comm.rank() == 0 ? kHighestBit : 1; }

Status CheckProbe(std::uint64_t maximum) {
  if (maximum == kHighestBit) return {};
  return MakeError(Code::kComm, "the communicator's all-reduce gave ", maximum,
                   " as the maximum of 1 and 2^63, expected 2^63: the numbers are unsigned, and "
                   "MPI_UINT64_T with MPI_MAX is wrong on some MPIs (MPICH 4.0); reduce them as "
                   "MPI_INT64_T with the highest bit flipped before and after");
}

}  // namespace

Result<CallFlags> BeginCall(Communicator& comm, const CollectiveCall& call, const CallFlags& flags,
                            bool has_failed) {
  const Bytes encoded = Encode(call);
  const std::uint64_t kind = Fingerprint(AsBytes(call.kind));
  const std::uint64_t fingerprint = Fingerprint(encoded);
  // The largest value is the complement of the largest complement only if all values are equal.
  // Zeros take no part.
  std::vector<std::uint64_t> numbers = {kind, ~kind, fingerprint, ~fingerprint};
  if (has_failed) numbers[2] = numbers[3] = 0;
  const std::size_t first_flag = numbers.size();
  numbers.insert(numbers.end(), flags.begin(), flags.end());
  numbers.push_back(MakeProbe(comm));
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> maxima, comm.AllReduceMax(numbers));
  if (maxima.size() != numbers.size()) return MalformedMessage();
  SEALPOINT_RETURN_IF_ERROR(CheckProbe(maxima.back()));
  const bool all_failed = maxima[2] == 0 && maxima[3] == 0;
  if (maxima[0] != ~maxima[1] || (maxima[2] != ~maxima[3] && !all_failed)) {
    return Explain(comm, call);
  }
  CallFlags any{};
  std::copy_n(maxima.begin() + static_cast<std::ptrdiff_t>(first_flag), any.size(), any.begin());
  return any;
}

Status CheckSameCall(Communicator& comm, const CollectiveCall& call, const Status& failure) {
  if (comm.calls_are_compared()) return OwnFailure(failure);
  SEALPOINT_ASSIGN_OR_RETURN(const CallFlags any,
                             BeginCall(comm, call, {failure.ok() ? 0U : 1U}, !failure.ok()));
  return any.front() == 0 ? Status() : AgreeOnStatus(comm, OwnFailure(failure));
}

}  // namespace sealpoint::internal::comm

namespace sealpoint::detail {

Bytes EncodeCall(const NamedCall& call, std::string_view host) {
  internal::comm::CollectiveCall named{
      .kind = call.text, .arguments = {}, .named_arguments_max = 0};
  for (const auto& [name, value] : call.arguments) named.arguments.push_back({name, value});
  return internal::comm::Encode(named, host);
}

Status CompareCalls(std::span<const Bytes> calls) { return internal::comm::CompareAll(calls, {}); }

Bytes EncodeError(const Status& error) { return internal::comm::EncodeStatus(error); }

Status DecodeError(ByteSpan bytes) {
  const std::optional<Status> error = internal::comm::DecodeStatus(bytes);
  return error && !error->ok() ? *error : internal::MalformedMessage();
}

}  // namespace sealpoint::detail
