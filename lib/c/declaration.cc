// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/declaration.h"

#include "lib/c/memory.h"
#include "lib/c/ranks.h"

using sealpoint::Status;
using sealpoint::c_api::Guarded;
using sealpoint::c_api::Make;
using sealpoint::c_api::Noting;
using sealpoint::c_api::NotNull;
using sealpoint::c_api::Take;

extern "C" {

int32_t sealpoint_declaration_create(sealpoint_declaration** out, sealpoint_error** error) {
  return Make(out, error, []() -> sealpoint::Result<std::unique_ptr<sealpoint_declaration>> {
    auto handle = std::make_unique<sealpoint_declaration>();
    handle->declaration = std::make_shared<sealpoint::Declaration>();
    return handle;
  });
}

void sealpoint_declaration_free(sealpoint_declaration* declaration) { delete declaration; }

int32_t sealpoint_declaration_add(sealpoint_declaration* declaration,
                                  const sealpoint_tensor_spec* tensor,
                                  const sealpoint_region* region, const int32_t* replicas,
                                  uint64_t replica_count, uint64_t* slot, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(declaration, "declaration"));
    SEALPOINT_C_TRY(sealpoint::c_api::CheckHasNoSources(*declaration));
    return Noting(*declaration->declaration, [&]() -> Status {
      sealpoint::DeclaredTensor held;
      SEALPOINT_C_TRY(sealpoint::c_api::TakeTensor(tensor, held.tensor));
      declaration->attributes.ApplyTo(held.tensor);
      SEALPOINT_C_TRY(sealpoint::c_api::TakeRegion(region, held.region));
      SEALPOINT_C_TRY(sealpoint::c_api::CheckArray(replicas, replica_count, "replicas"));
      held.replicas.assign(replicas, replicas + replica_count);
      const auto number = declaration->declaration->Add(held);
      if (number.ok() && slot != nullptr) *slot = *number;
      return number.status();
    });
  });
}

int32_t sealpoint_declaration_add_object(sealpoint_declaration* declaration, sealpoint_string name,
                                         sealpoint_string media_type, uint32_t codec,
                                         sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(declaration, "declaration"));
    SEALPOINT_C_TRY(sealpoint::c_api::CheckHasNoSources(*declaration));
    return Noting(*declaration->declaration, [&]() -> Status {
      sealpoint::ObjectSpec object;
      SEALPOINT_C_TRY(Take(name, "name", object.name));
      SEALPOINT_C_TRY(Take(media_type, "media_type", object.media_type));
      SEALPOINT_C_TRY(sealpoint::c_api::TakeCodec(codec, object.codec));
      return declaration->declaration->AddObject(std::move(object));
    });
  });
}

int32_t sealpoint_sources_create(const sealpoint_declaration* declaration, sealpoint_sources** out,
                                 sealpoint_error** error) {
  return Make(out, error, [&]() -> sealpoint::Result<std::unique_ptr<sealpoint_sources>> {
    SEALPOINT_C_TRY(NotNull(declaration, "declaration"));
    return std::make_unique<sealpoint_sources>(declaration->declaration);
  });
}

void sealpoint_sources_free(sealpoint_sources* sources) { delete sources; }

int32_t sealpoint_sources_bind(sealpoint_sources* sources, uint64_t slot,
                               const sealpoint_source* source, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(sources, "sources"));
    return Noting(
        sources->sources,
        [&]() -> Status {
          sealpoint::MemoryView view;
          SEALPOINT_C_TRY(sealpoint::c_api::TakeSource(source, view));
          return sources->sources.Bind(slot, std::move(view));
        },
        slot);
  });
}

int32_t sealpoint_sources_bind_dlpack(sealpoint_sources* sources, uint64_t slot,
                                      const sealpoint_dl_tensor* source, void* stream,
                                      sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(sources, "sources"));
    return Noting(
        sources->sources,
        [&]() -> Status {
          sealpoint::c_api::Array array;
          SEALPOINT_C_TRY(sealpoint::c_api::TakeArray(source, stream, array));
          const auto tensors = sources->declaration->tensors();
          if (slot < tensors.size()) {  // else Bind has the words for it
            const sealpoint::DeclaredTensor held = tensors[slot];
            SEALPOINT_C_TRY(sealpoint::c_api::CheckArrayShape(array, held.region, held.tensor.shape)
                                .AtTensor(held.tensor.name));
          }
          return sources->sources.Bind(slot, sealpoint::MemoryView(array.view));
        },
        slot);
  });
}

int32_t sealpoint_sources_bind_object(sealpoint_sources* sources, sealpoint_string object,
                                      sealpoint_bytes bytes, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(sources, "sources"));
    return Noting(sources->sources, [&]() -> Status {
      std::string_view name;
      sealpoint::ByteSpan span;
      SEALPOINT_C_TRY(Take(object, "object", name));
      SEALPOINT_C_TRY(Take(bytes, "bytes", span));
      return sources->sources.BindObject(name, span);
    });
  });
}

}  // extern "C"
