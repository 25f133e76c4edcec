// SPDX-License-Identifier: Apache-2.0
//
// Proves that no file of safetensors and no index makes the reader crash, read beyond the file or
// blame anything but the bytes; that what it accepts covers the file exactly and can be read, and
// that a header which is accepted, encoded and decoded again is the same.
#include <memory>
#include <string>
#include <utility>

#include "fuzz/support/target.h"
#include "lib/safetensors/header.h"
#include "lib/safetensors/index_file.h"
#include "sealpoint/safetensors.h"
#include "sealpoint/storage.h"
#include "tests/support/storage/write_file.h"

namespace sealpoint::fuzz {
namespace {

constexpr std::uint64_t kHeaderMax = 64 * kKiB;
constexpr std::uint64_t kPayloadMax = 4 * kKiB;

void RequireBlame(const Status& error) {
  const Code code = error.code();
  Require(code == Code::kNotACheckpoint || code == Code::kIncomplete || code == Code::kCorrupt ||
              code == Code::kUnsupported || code == Code::kLimitExceeded,
          "not the fault of the bytes: " + error.ToString());
}

void CheckTensors(const SafetensorsModel& model) {
  std::uint64_t sum = 0;
  for (const SafetensorsTensor& tensor : model.tensors()) {
    sum += tensor.raw_bytes;
    // Exactly as large, so that a sanitizer sees a byte too many.
    const auto memory = std::make_unique<std::byte[]>(tensor.raw_bytes);
    const Status read =
        model.Read(tensor.name, MutableMemoryView::Host(memory.get(), tensor.raw_bytes));
    Require(read.ok(), "an accepted tensor cannot be read: " + read.ToString());
  }
  Require(sum <= model.files().front().size_bytes, "tensors have more bytes than the file");
}

void CheckFile(std::string_view content) {
  const std::shared_ptr<Storage> storage = MemoryStorage();
  testing::WriteFile(*storage, "m/x.safetensors", content);
  for (const char* const path : {"m/x.safetensors", "m"}) {
    const auto model = SafetensorsModel::Open(
        path, {.storage = storage, .header_size_max_bytes = kHeaderMax, .limits = {}});
    if (!model.ok()) {
      RequireBlame(model.error());
    } else {
      CheckTensors(**model);
    }
  }
}

void CheckHeader(std::string_view text, std::uint64_t payload_size) {
  const auto header = internal::safetensors::DecodeSafetensorsHeader(text, payload_size);
  if (!header.ok()) RequireBlame(header.error());
}

void CheckIndex(std::string_view text) {
  const auto index = internal::safetensors::DecodeSafetensorsIndex(text);
  if (!index.ok()) RequireBlame(index.error());
}

}  // namespace
}  // namespace sealpoint::fuzz

// The first byte chooses between a file, a header with as many bytes behind it as the next two say
// (alone, and in a file), and an index.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sealpoint;
  fuzz::InputReader input(fuzz::AsInput(data, size));
  const std::uint64_t kind = input.Take8() % 3;
  if (kind == 0) {
    fuzz::CheckFile(AsText(input.rest()));
    return 0;
  }
  if (kind == 2) {
    fuzz::CheckIndex(AsText(input.rest()));
    return 0;
  }
  const std::uint64_t payload_size = (input.Take8() * 256u + input.Take8()) % fuzz::kPayloadMax;
  const std::string_view text = AsText(input.rest());
  fuzz::CheckHeader(text, payload_size);
  std::string file;
  for (int i = 0; i < 8; ++i)
    file.push_back(static_cast<char>(std::uint64_t{text.size()} >> 8 * i));
  fuzz::CheckFile(file.append(text).append(payload_size, 'x'));
  return 0;
}
