// SPDX-License-Identifier: Apache-2.0
//
// The text of a VerifiedChunks: a line that says what it is, when it was begun, then the
// checkpoints, each with its blobs, each with what is good of it, and last the digest of all lines
// before.
#include <charconv>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "readers/verify/verified_chunks.h"
#include "sealpoint/digest.h"

namespace sealpoint {
namespace internal::verify {
namespace {

constexpr std::string_view kKind = "sealpoint verify state ";
constexpr std::string_view kVersion = "1";
constexpr std::string_view kDigestWord = "digest";

Status Damaged(std::string_view what) {
  return MakeError(Code::kCorrupt, "the state of a verification is damaged: ", what);
}

// Takes what is before the next `separator` off the front, and the separator.
std::string_view Take(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return taken;
}

template <std::derived_from<Id128> T>
std::optional<T> IdOf(std::string_view digits) {
  const Result<T> id = T::FromHex(digits);
  return id.ok() ? std::optional(*id) : std::nullopt;
}

std::optional<std::uint64_t> NumberOf(std::string_view digits) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || stop != digits.data() + digits.size()) return std::nullopt;
  return number;
}

// The lines between the first and the last one, whose digest was right.
Status CheckFrame(std::string_view& text) {
  const std::string_view all = text;
  const std::string_view first = Take(text, '\n');
  if (!first.starts_with(kKind)) {
    return InvalidArgument("not the state of a verification: expected a first line \"", kKind,
                           kVersion, "\"");
  }
  if (const std::string_view version = first.substr(kKind.size()); version != kVersion) {
    return MakeError(Code::kUnsupported, "the state of a verification has version ",
                     std::string(version), ", expected ", kVersion);
  }
  const std::size_t last = all.rfind('\n', all.size() - 2) + 1;
  std::string_view line = all.substr(last);
  const bool is_whole = last > first.size() && all.ends_with('\n') &&
                        Take(line, ' ') == kDigestWord &&
                        Take(line, '\n') == ComputeDigest(AsBytes(all.substr(0, last))).ToHex();
  if (!is_whole) return Damaged("its last line is not the digest of the lines before");
  text = all.substr(first.size() + 1, last - first.size() - 1);
  return {};
}

}  // namespace

// Precondition of all functions: the digest was right. What is wrong all the same was written so.
class StateParser {
 public:
  static Result<std::shared_ptr<VerifiedChunks>> Parse(std::string_view lines) {
    std::string_view begun = Take(lines, '\n');
    const bool has_word = Take(begun, ' ') == "begun";
    const std::optional<std::uint64_t> time = NumberOf(begun);
    if (!has_word || !time) return Damaged("its second line has no start time");
    const auto state = std::make_shared<VerifiedChunksImpl>(*time);
    StateParser parser(*state);
    while (!lines.empty()) SEALPOINT_RETURN_IF_ERROR(parser.TakeLine(Take(lines, '\n')));
    return std::shared_ptr<VerifiedChunks>(state);
  }

 private:
  explicit StateParser(VerifiedChunksImpl& state) : state_(state) {}

  Status TakeLine(std::string_view line) {
    const std::string_view word = Take(line, ' ');
    if (word == "checkpoint") {
      const auto path = IdOf<Digest>(Take(line, ' '));
      const auto attempt = IdOf<AttemptId>(Take(line, ' '));
      const auto marker = IdOf<Digest>(line);
      if (!path || !attempt || !marker) return Damaged("a checkpoint without its ids");
      blobs_ = &state_.checkpoints_[{.path = *path, .attempt = *attempt, .marker = *marker}];
      return {};
    }
    if (word != "blob" || blobs_ == nullptr) return Damaged("a line before the first checkpoint");
    const auto id = IdOf<BlobId>(Take(line, ' '));
    const std::optional<std::uint64_t> inode = NumberOf(Take(line, ' '));
    if (!id || !inode) return Damaged("a blob without its id and the number of its file");
    VerifiedChunksImpl::KnownBlob& blob = (*blobs_)[*id];
    blob.inode = *inode;
    while (!line.empty()) {
      std::string_view range = Take(line, ' ');
      const std::optional<std::uint64_t> begin = NumberOf(Take(range, '-'));
      const std::optional<std::uint64_t> end = NumberOf(range);
      if (!begin || !end || *begin >= *end) return Damaged("an invalid range of bytes");
      state_.AddTo(blob.good, *begin, *end);
    }
    return {};
  }

  VerifiedChunksImpl& state_;
  std::map<BlobId, VerifiedChunksImpl::KnownBlob>* blobs_ = nullptr;  // of the last checkpoint
};

std::string VerifiedChunksImpl::Encode() const {
  std::string text = StrCat(kKind, kVersion, "\nbegun ", begun_unix_s_, "\n");
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, blobs] : checkpoints_) {
      text += StrCat("checkpoint ", key.path.ToHex(), " ", key.attempt.ToHex(), " ",
                     key.marker.ToHex(), "\n");
      for (const auto& [id, blob] : blobs) {
        if (blob.good.ranges().empty()) continue;
        text += StrCat("blob ", id.ToHex(), " ", blob.inode);
        for (const auto& [begin, end] : blob.good.ranges()) text += StrCat(" ", begin, "-", end);
        text += "\n";
      }
    }
  }
  return text + StrCat(kDigestWord, " ", ComputeDigest(AsBytes(text)).ToHex(), "\n");
}

}  // namespace internal::verify

Result<std::shared_ptr<VerifiedChunks>> VerifiedChunks::Decode(std::string_view text) {
  SEALPOINT_RETURN_IF_ERROR(internal::verify::CheckFrame(text));
  return internal::verify::StateParser::Parse(text);
}

}  // namespace sealpoint
