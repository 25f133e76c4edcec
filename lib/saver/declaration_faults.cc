// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/declaration_faults.h"

#include <optional>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/comm/status_codec.h"

namespace sealpoint::internal::saver {
namespace {

Status WithOthers(const Status& first, std::uint64_t others) {
  const Place& place = first.place();
  Status status(first.code(), StrCat(first.message(), "; and ", others, " more name",
                                     others == 1 ? " is" : "s are", " at fault"));
  status =
      Status(std::move(status).AtRule(place.rule).AtTensor(place.tensor).AtObject(place.object));
  return place.rank ? Status(std::move(status).AtRank(*place.rank, place.host)) : status;
}

}  // namespace

void DeclarationFaults::Add(std::string_view name, const Status& status) {
  if (status.ok()) return;
  if (count_++ > 0 && name_ <= name) return;
  name_ = name;
  first_ = status;
}

Status DeclarationFaults::Agree(Communicator& comm) const {
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(count_);
  out.Put(name_);
  out.Put(AsText(comm::EncodeStatus(first_)));
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm.AllGather(bytes));
  DeclarationFaults merged;
  for (const Bytes& message : all) {
    WireReader in(message);
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t count, in.Number());
    SEALPOINT_ASSIGN_OR_RETURN(const std::string name, in.Text());
    SEALPOINT_ASSIGN_OR_RETURN(const std::string text, in.Text());
    const std::optional<Status> status = comm::DecodeStatus(AsBytes(text));
    if (!status || status->ok() != (count == 0)) {
      return MakeError(Code::kComm, "a rank sent a malformed list of faults");
    }
    if (count == 0) continue;
    merged.Add(name, *status);
    merged.count_ += count - 1;
  }
  return merged.count_ < 2 ? merged.first_ : WithOthers(merged.first_, merged.count_ - 1);
}

}  // namespace sealpoint::internal::saver
