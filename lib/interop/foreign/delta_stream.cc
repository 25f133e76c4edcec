// SPDX-License-Identifier: Apache-2.0
//
// The bytes of tensors that are deltas: decoded and made from front to back, in small blocks.
#include <zstd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/codec/frame_header.h"
#include "lib/digest/hasher.h"
#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/files.h"
#include "sealpoint/interop.h"

namespace sealpoint {
namespace internal::foreign {
namespace {

// Blocks of this size stay in the cache of a core from the first delta to the last.
constexpr std::size_t kDeltaBlockBytes = std::size_t{64} << 10;
// What each frame takes beside its window.
constexpr std::uint64_t kPerFrameBytes = std::uint64_t{512} << 10;
constexpr int kDeltaLevel = 1;

// RFC 1950, section 8.2.
class Adler32 {
 public:
  void Update(ByteSpan bytes) {
    constexpr std::size_t kAddedMax = 5552;  // so many sums of bytes fit into 32 bits
    while (!bytes.empty()) {
      const ByteSpan some = bytes.first(std::min(bytes.size(), kAddedMax));
      for (const std::byte one : some) {
        a_ += std::to_integer<std::uint32_t>(one);
        b_ += a_;
      }
      a_ %= kModulus;
      b_ %= kModulus;
      bytes = bytes.subspan(some.size());
    }
  }
  std::string text() const { return HexText(b_ << 16 | a_, 8); }

 private:
  static constexpr std::uint32_t kModulus = 65521;
  std::uint32_t a_ = 1;
  std::uint32_t b_ = 0;
};

void Xor(ByteSpan other, MutableByteSpan bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] ^= other[i];
}

struct ContextDeleter {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

// Applies one delta of a tensor.
class Layer {
 public:
  Layer(const ForeignDelta& delta, std::string path, std::uint64_t raw_bytes, SourceFiles& files)
      : delta_(delta), path_(std::move(path)), raw_bytes_(raw_bytes), files_(files) {
    constexpr std::uint64_t kHeaderBytesMax = 18;
    const std::string head =
        files_.Open(path_)->Read(delta_.begin, std::min(delta_.size, kHeaderBytesMax));
    const auto header = codec::ParseFrameHeader(std::as_bytes(std::span(head)));
    if (!header.ok()) Fail("it begins with no zstd frame");
    if (header->content_size_bytes.value_or(raw_bytes_) != raw_bytes_) {
      Fail("the zstd frame declares ", *header->content_size_bytes,
           " bytes, expected those of the tensor, ", raw_bytes_);
    }
    memory_bytes_ = CappedAdd(header->window_size_bytes, kPerFrameBytes);
  }

  std::uint64_t memory_bytes() const { return memory_bytes_; }

  // The next bytes of the tensor: those before the delta become those after it. `scratch`: of the
  // same size.
  void Apply(MutableByteSpan scratch, MutableByteSpan bytes) {
    if (Decode(scratch) < scratch.size()) {
      Fail("the zstd frame has ", decoded_bytes_, " bytes, expected those of the tensor, ",
           raw_bytes_);
    }
    Xor(scratch, bytes);
    is_adler() ? adler_.Update(bytes) : hasher_.Update(bytes);
  }

  void Finish() {
    std::array<std::byte, 1> more{};
    if (Decode(more) > 0) {
      Fail("the zstd frame goes on after the ", raw_bytes_, " bytes of the tensor");
    }
    if (in_.pos < in_.size || taken_bytes_ < delta_.size) Fail("bytes follow the zstd frame");
    const std::string found = is_adler() ? adler_.text() : hasher_.Finish().ToHex();
    if (found == delta_.checksum) return;
    Fail(is_adler() ? "Adler-32" : "XXH3-128", " after the delta is ", found, ", expected ",
         delta_.checksum,
         ": the base is not the version that the delta was made from, or one of them is damaged");
  }

 private:
  bool is_adler() const { return delta_.checksum.size() == 8; }

  // Less than all of `out` at the end of the frame.
  std::size_t Decode(MutableByteSpan out) {
    if (!context_) context_.reset(ZSTD_createDCtx());
    if (!context_) throw std::bad_alloc();
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    while (to.pos < to.size && !is_done_) {
      if (in_.pos == in_.size) Refill();
      const std::size_t before = to.pos + in_.pos;
      const std::size_t result = ZSTD_decompressStream(context_.get(), &to, &in_);
      if (ZSTD_isError(result)) Fail("zstd: ", ZSTD_getErrorName(result));
      is_done_ = result == 0;
      if (!is_done_ && to.pos + in_.pos == before && taken_bytes_ == delta_.size) {
        Fail("the zstd frame is cut off");
      }
    }
    decoded_bytes_ += to.pos;
    return to.pos;
  }

  void Refill() {
    const std::uint64_t size =
        std::min<std::uint64_t>(kDeltaBlockBytes, delta_.size - taken_bytes_);
    text_ = files_.Open(path_)->Read(delta_.begin + taken_bytes_, size);
    taken_bytes_ += size;
    in_ = {text_.data(), text_.size(), 0};
  }

  template <typename... Parts>
  [[noreturn]] void Fail(const Parts&... parts) const {
    throw Failure{MakeError(Code::kCorrupt, parts...).AtPath(path_).AtOffset(delta_.begin)};
  }

  const ForeignDelta& delta_;
  const std::string path_;
  const std::uint64_t raw_bytes_;
  SourceFiles& files_;
  std::uint64_t memory_bytes_ = 0;
  std::unique_ptr<ZSTD_DCtx, ContextDeleter> context_;
  std::string text_;
  ZSTD_inBuffer in_{};
  std::uint64_t taken_bytes_ = 0;    // of the entry
  std::uint64_t decoded_bytes_ = 0;  // of the frame
  bool is_done_ = false;
  Adler32 adler_;
  digest::Hasher hasher_;
};

template <typename Call>
Status Caught(const std::string& tensor, const Call& call) {
  try {
    call();
    return {};
  } catch (Failure& failure) {
    return std::move(failure.status).AtTensor(tensor);
  } catch (const std::bad_alloc&) {
    return Status(Code::kLimitExceeded, "not enough memory").AtTensor(tensor);
  }
}

class DeltaReader final : public ForeignDeltaReader {
 public:
  DeltaReader(const ForeignCheckpoint& checkpoint, std::string name, const ForeignTensor& tensor,
              std::uint64_t memory_bytes, const ForeignOptions& options)
      : checkpoint_(checkpoint),
        name_(std::move(name)),
        tensor_(tensor),
        raw_bytes_(tensor.parts.front().entry_size),
        memory_bytes_(memory_bytes),
        files_(options, checkpoint.directories),
        scratch_(kDeltaBlockBytes) {}

  // Throws Failure.
  void Start() {
    at_ = 0;
    is_finished_ = false;
    layers_.clear();
    std::uint64_t needed = 0;
    for (const ForeignDelta& delta : tensor_.deltas) {
      layers_.push_back(
          std::make_unique<Layer>(delta, checkpoint_.paths.at(delta.file), raw_bytes_, files_));
      needed = CappedAdd(needed, layers_.back()->memory_bytes());
    }
    if (needed <= memory_bytes_) return;
    Fail(Code::kLimitExceeded, checkpoint_.path, "to decode ", layers_.size(), " deltas takes ",
         needed, " bytes of memory, expected ", memory_bytes_,
         " at most; allow more memory or fewer threads, or convert an older version first");
  }

  Status Read(std::uint64_t offset, MutableByteSpan out) override {
    return Caught(name_, [&] {
      if (offset < at_) Start();
      SkipTo(offset);
      while (!out.empty()) {
        const MutableByteSpan block = out.first(std::min(out.size(), kDeltaBlockBytes));
        Next(block);
        out = out.subspan(block.size());
      }
    });
  }

  Status Finish() override {
    return Caught(name_, [&] {
      if (is_finished_) return;
      SkipTo(raw_bytes_);
      for (const auto& layer : layers_) layer->Finish();
      is_finished_ = true;
    });
  }

 private:
  void SkipTo(std::uint64_t offset) {
    if (offset > at_ && skipped_.empty()) skipped_.resize(kDeltaBlockBytes);
    while (at_ < offset) {
      Next(
          MutableByteSpan(skipped_).first(std::min<std::uint64_t>(offset - at_, kDeltaBlockBytes)));
    }
  }

  void Next(MutableByteSpan block) {
    const ForeignPart& base = tensor_.parts.front();
    files_.Open(checkpoint_.paths.at(base.file))->ReadInto(base.entry_begin + at_, block);
    for (const auto& layer : layers_) {
      layer->Apply(MutableByteSpan(scratch_).first(block.size()), block);
    }
    at_ += block.size();
  }

  const ForeignCheckpoint& checkpoint_;
  const std::string name_;
  const ForeignTensor& tensor_;
  const std::uint64_t raw_bytes_;
  const std::uint64_t memory_bytes_;
  SourceFiles files_;
  std::vector<std::unique_ptr<Layer>> layers_;
  Bytes scratch_;
  Bytes skipped_;
  std::uint64_t at_ = 0;
  bool is_finished_ = false;
};

class DeltaEncoder final : public ForeignDeltaEncoder {
 public:
  explicit DeltaEncoder(std::uint64_t size_bytes)
      : left_bytes_(size_bytes), context_(ZSTD_createCCtx()), scratch_(kDeltaBlockBytes) {
    if (!context_) throw std::bad_alloc();
    for (const std::size_t result :
         {ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kDeltaLevel),
          ZSTD_CCtx_setPledgedSrcSize(context_.get(), size_bytes)}) {
      if (ZSTD_isError(result)) throw std::bad_alloc();
    }
  }

  Status Add(ByteSpan base, ByteSpan current, Bytes& out) override {
    if (base.size() != current.size() || current.size() > left_bytes_) {
      return InvalidArgument("base has ", base.size(), " bytes and current ", current.size(),
                             ", expected equal sizes, and ", left_bytes_, " bytes at most");
    }
    do {
      const std::size_t size = std::min(current.size(), kDeltaBlockBytes);
      const MutableByteSpan block = MutableByteSpan(scratch_).first(size);
      std::ranges::copy(base.first(size), block.begin());
      Xor(current.first(size), block);
      is_changed_ = is_changed_ ||
                    std::ranges::any_of(block, [](std::byte one) { return one != std::byte{}; });
      adler_.Update(current.first(size));
      left_bytes_ -= size;
      SEALPOINT_RETURN_IF_ERROR(Compress(block, out));
      base = base.subspan(size);
      current = current.subspan(size);
    } while (!current.empty());
    return {};
  }

  bool is_changed() const override { return is_changed_; }
  std::string checksum() const override { return adler_.text(); }

 private:
  Status Compress(ByteSpan block, Bytes& out) {
    ZSTD_inBuffer in{block.data(), block.size(), 0};
    const ZSTD_EndDirective end = left_bytes_ == 0 ? ZSTD_e_end : ZSTD_e_continue;
    std::size_t left = 1;
    while (left > 0) {
      const std::size_t before = out.size();
      out.resize(before + kDeltaBlockBytes);
      ZSTD_outBuffer to{out.data() + before, kDeltaBlockBytes, 0};
      left = ZSTD_compressStream2(context_.get(), &to, &in, end);
      out.resize(before + to.pos);
      if (ZSTD_isError(left)) return MakeError(Code::kIo, "zstd: ", ZSTD_getErrorName(left));
      if (end == ZSTD_e_continue && in.pos == in.size) return {};
    }
    return {};
  }

  std::uint64_t left_bytes_;
  const std::unique_ptr<ZSTD_CCtx, ContextDeleter> context_;
  Bytes scratch_;
  Adler32 adler_;
  bool is_changed_ = false;
};

}  // namespace
}  // namespace internal::foreign

Result<std::unique_ptr<ForeignDeltaReader>> ForeignDeltaReader::Open(
    const ForeignCheckpoint& checkpoint, const std::string& tensor, std::uint64_t memory_bytes,
    const ForeignOptions& options) {
  namespace foreign = internal::foreign;
  const auto found = checkpoint.tensors.find(tensor);
  if (found == checkpoint.tensors.end() || found->second.deltas.empty()) {
    return Status(Code::kNotFound, "no such tensor with deltas")
        .AtPath(checkpoint.path)
        .AtTensor(tensor);
  }
  auto reader = std::make_unique<foreign::DeltaReader>(checkpoint, tensor, found->second,
                                                       memory_bytes, options);
  SEALPOINT_RETURN_IF_ERROR(foreign::Caught(tensor, [&] { reader->Start(); }));
  return std::unique_ptr<ForeignDeltaReader>(std::move(reader));
}

Result<std::unique_ptr<ForeignDeltaEncoder>> ForeignDeltaEncoder::Create(std::uint64_t size_bytes) {
  try {
    return std::unique_ptr<ForeignDeltaEncoder>(
        std::make_unique<internal::foreign::DeltaEncoder>(size_bytes));
  } catch (const std::bad_alloc&) {
    return Status(Code::kIo, "out of memory in the codec");
  }
}

}  // namespace sealpoint
