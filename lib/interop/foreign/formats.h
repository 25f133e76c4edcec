// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_FORMATS_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_FORMATS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/interop/foreign/files.h"
#include "lib/interop/foreign/state.h"
#include "lib/interop/foreign/torch_archive.h"
#include "sealpoint/safetensors.h"

// The readers of the formats. All throw Failure, except for the last two.

namespace sealpoint::internal::foreign {

ForeignCheckpoint ReadSafetensors(const std::string& path, SourceFiles& files);
// Without what lies beside them.
ForeignCheckpoint ReadSafetensorsAlone(const std::string& path, SourceFiles& files);
// Names the files at the path of the state.
void AddFiles(const SafetensorsModel& model, SourceFiles& files, ForeignCheckpoint& state);
ForeignCheckpoint ReadDelta(const std::string& path, SourceFiles& files);
ForeignCheckpoint ReadTorchFile(const std::string& path, SourceFiles& files);
ForeignCheckpoint ReadTorchFolder(const std::string& path, SourceFiles& files);
// A file of a directory; and a file with a mapping of names.
std::unique_ptr<TorchArchive> OpenTorchShard(const std::string& path, SourceFiles& files);
ForeignCheckpoint ReadTorchShard(const std::string& path, SourceFiles& files);
ForeignCheckpoint ReadDeepSpeed(const std::string& path, SourceFiles& files);
ForeignCheckpoint ReadLlama(const std::string& path, SourceFiles& files);
// A file of GGUF, with the other files of its model unless the options allow a part.
ForeignCheckpoint ReadGgufFile(const std::string& path, SourceFiles& files);
ForeignCheckpoint ReadGgufFolder(const std::string& path, SourceFiles& files);
ForeignCheckpoint ReadAccelerate(const std::string& path, SourceFiles& files);
ForeignCheckpoint ReadDcp(const std::string& path, SourceFiles& files);
// Megatron's format before torch_dist.
ForeignCheckpoint ReadMegatronTorch(const std::string& path, SourceFiles& files);
ForeignCheckpoint ReadMegatron(const std::string& path, SourceFiles& files);

// True if a directory has Megatron's marker. Throws Unsupported if it names another Megatron
// format.
bool IsMegatron(const std::string& path, SourceFiles& files);
// True if a directory has directories of Megatron's model-parallel ranks.
bool IsMegatronTorch(const std::vector<SourceEntry>& entries);
// The directory of the newest iteration, of a folder of iterations.
std::optional<std::string> NewestIteration(const std::string& path, SourceFiles& files);
// The directory that DeepSpeed's file `latest` or `latest_universal` names.
std::optional<std::string> NewestTag(const std::string& path, SourceFiles& files);
// True if a directory has a model in torch.save files, as stored by transformers.
bool IsTorchFolder(const std::vector<SourceEntry>& entries);
// True if a directory has the state of one model that accelerate saved for FSDP.
bool IsAccelerate(const std::vector<SourceEntry>& entries);
bool IsDcp(const std::vector<SourceEntry>& entries);
// True if a directory has partitions of a state that DeepSpeed's ZeRO divided, or their universal
// form.
bool IsDeepSpeed(const std::vector<SourceEntry>& entries);
// True if a directory has files of torch.save for the model-parallel ranks of a Llama model.
bool IsLlama(const std::vector<SourceEntry>& entries);
// True if a directory has files of GGUF.
bool IsGguf(const std::vector<SourceEntry>& entries);
// True if a directory of safetensors has differences to another version in the place of tensors.
bool IsDelta(const std::string& path, SourceFiles& files);

// As sealpoint::ReadForeign, of a path that is known to be a directory or a file.
Result<std::optional<ForeignCheckpoint>> ReadPath(const std::string& path, bool is_directory,
                                                  SourceFiles& files);
// As sealpoint::KindOfForeign, likewise.
Result<std::optional<ForeignKind>> KindOfPath(const std::string& path, bool is_directory,
                                              SourceFiles& files);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_FORMATS_H_
