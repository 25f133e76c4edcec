// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_OTHERS_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_OTHERS_H_

#include <optional>
#include <string>
#include <string_view>

#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/files.h"
#include "lib/interop/foreign/torch_zip.h"

// Formats of other programs that no reader here supports, recognised by names and first bytes, with
// the step that makes them readable.

namespace sealpoint::internal::foreign {

struct Other {
  Code code = Code::kUnsupported;
  std::string what;      // the message of an error
  bool is_text = false;  // a page or a pointer, which stands in the place of a file
};
[[noreturn]] void Fail(const Other& other, const std::string& path);

std::optional<Other> OtherFile(const SourceFile& file);
std::optional<Other> OtherZip(const Zip& zip);
std::optional<Other> OtherFolder(const std::string& path, SourceFiles& files);

// How to make one state of parts that programs of these names wrote.
inline constexpr std::string_view kFromDeepSpeed =
    "load it there, and save the module's state with torch.save";
inline constexpr std::string_view kFromMegatron =
    "a run of Megatron with --load, --ckpt-convert-format torch_dist and --ckpt-convert-save turns "
    "them into a directory that can be converted";
inline constexpr std::string_view kFromLlama =
    "transformers' convert_llama_weights_to_hf.py turns them into a model that can be converted";

// Files that accelerate stores for FSDP next to its DCP directories.
bool IsOfAccelerate(std::string_view name);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_OTHERS_H_
