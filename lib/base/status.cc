// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/status.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "sealpoint/bytes.h"

namespace sealpoint {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "Ok";
    case Code::kInvalidArgument:
      return "InvalidArgument";
    case Code::kNotFound:
      return "NotFound";
    case Code::kAlreadyExists:
      return "AlreadyExists";
    case Code::kNotACheckpoint:
      return "NotACheckpoint";
    case Code::kUncommitted:
      return "Uncommitted";
    case Code::kIncomplete:
      return "Incomplete";
    case Code::kCorrupt:
      return "Corrupt";
    case Code::kUnsupported:
      return "Unsupported";
    case Code::kLimitExceeded:
      return "LimitExceeded";
    case Code::kMismatch:
      return "Mismatch";
    case Code::kIo:
      return "Io";
    case Code::kNoSpace:
      return "NoSpace";
    case Code::kDevice:
      return "Device";
    case Code::kComm:
      return "Comm";
    case Code::kTimeout:
      return "Timeout";
    case Code::kCancelled:
      return "Cancelled";
    case Code::kInternal:
      return "Internal";
  }
  return "Unknown";
}

Status&& Status::AtRule(std::string_view rule) && {
  if (!ok() && place_.rule.empty()) place_.rule = rule;
  return std::move(*this);
}

Status&& Status::AtPath(std::string_view path) && {
  if (!ok() && place_.path.empty()) place_.path = path;
  return std::move(*this);
}

Status&& Status::AtOffset(std::uint64_t offset) && {
  if (!ok() && !place_.offset) place_.offset = offset;
  return std::move(*this);
}

Status&& Status::AtTensor(std::string_view name) && {
  if (!ok() && place_.tensor.empty() && place_.object.empty()) place_.tensor = name;
  return std::move(*this);
}

Status&& Status::AtObject(std::string_view name) && {
  if (!ok() && place_.tensor.empty() && place_.object.empty()) place_.object = name;
  return std::move(*this);
}

Status&& Status::AtRank(int rank, std::string_view host) && {
  if (!ok() && !place_.rank) {
    place_.rank = rank;
    place_.host = host;
  }
  return std::move(*this);
}

Status&& Status::WithUnknownOutcome() && {
  if (!ok()) has_unknown_outcome_ = true;
  return std::move(*this);
}

Status&& Status::OutOfFiles() && {
  if (!ok()) is_out_of_files_ = true;
  return std::move(*this);
}

Status&& Status::Prefixed(std::string_view prefix) && {
  if (!ok()) message_ = internal::StrCat(prefix, ": ", message_);
  return std::move(*this);
}

namespace {

void AppendPlace(std::string& out, const Place& place) {
  std::string inside;
  const auto add = [&inside](std::string_view label, const std::string& value) {
    if (value.empty()) return;
    if (!inside.empty()) inside.append(", ");
    inside.append(label).append(" ").append(value);
  };
  add("rule", place.rule);
  add("tensor", place.tensor);
  add("object", place.object);
  add("file", place.path);
  if (place.offset) add("offset", std::to_string(*place.offset));
  if (place.rank) add("rank", std::to_string(*place.rank));
  add("host", place.host);
  if (!inside.empty()) out.append(" [").append(inside).append("]");
}

}  // namespace

std::string Status::ToString() const {
  std::string out(CodeName(code_));
  if (ok()) return out;
  out.append(": ").append(message_);
  AppendPlace(out, place_);
  return Printable(out);
}

void AbortOnBadResultAccess(const Status& status) {
  std::fprintf(stderr, "sealpoint: value() of a failed Result: %s\n", status.ToString().c_str());
  std::abort();
}

namespace internal {

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "sealpoint: check failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

Status DigestError(std::string_view rule, std::string_view what, const Digest& computed,
                   const Digest& recorded) {
  return RuleError(Code::kCorrupt, rule, what, " digest mismatch: computed ", computed.ToHex(),
                   ", recorded ", recorded.ToHex());
}

Status StoredDigestError(std::string_view rule, std::string_view what, const Digest& found,
                         const Digest& recorded) {
  return RuleError(Code::kCorrupt, rule, what, " digest mismatch: found ", found.ToHex(),
                   ", recorded ", recorded.ToHex());
}

Status ErrnoError(std::string_view operation, int error_number) {
  Code code = Code::kIo;
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      code = Code::kNoSpace;
      break;
    case ENOENT:
      code = Code::kNotFound;
      break;
    case EEXIST:
      code = Code::kAlreadyExists;
      break;
    default:
      break;
  }
  char buffer[128] = {};
  const char* text = strerror_r(error_number, buffer, sizeof(buffer));  // the GNU variant
  Status error =
      MakeError(code, operation, ": ", std::string_view(text), " (errno ", error_number, ")");
  if (error_number != EMFILE && error_number != ENFILE) return error;
  return std::move(error).OutOfFiles();
}

}  // namespace internal
std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kCommitted:
      return "committed";
    case Verdict::kUncommitted:
      return "uncommitted";
    case Verdict::kIncomplete:
      return "incomplete";
    case Verdict::kCorrupt:
      return "corrupt";
    case Verdict::kUnsupported:
      return "unsupported";
    case Verdict::kUnreadable:
      return "unreadable";
  }
  return "unknown";
}

Verdict VerdictOf(const Status& error) {
  switch (error.code()) {
    case Code::kOk:
      return Verdict::kCommitted;
    case Code::kUncommitted:
      return Verdict::kUncommitted;
    case Code::kIncomplete:
      return Verdict::kIncomplete;
    case Code::kCorrupt:
      return Verdict::kCorrupt;
    case Code::kUnsupported:
    case Code::kLimitExceeded:
      return Verdict::kUnsupported;
    default:
      return Verdict::kUnreadable;
  }
}

}  // namespace sealpoint
