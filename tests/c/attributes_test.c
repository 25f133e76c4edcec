// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "sealpoint_attributes.h"

static sealpoint_attribute attribute(const char* name, uint32_t type, const void* values,
                                     uint64_t count, uint32_t is_list) {
  sealpoint_attribute made;
  made.name = str(name);
  made.values = values;
  made.count = count;
  made.type = type;
  made.is_list = is_list;
  return made;
}

static void check_types(const sealpoint_attributes* found) {
  sealpoint_error* error = NULL;
  sealpoint_attribute out;
  CHECK(sealpoint_attributes_count(found) == 5);
  CHECK_OK(sealpoint_attributes_get(found, 0, &out, &error));
  CHECK(equals(out.name, "dimensions") && out.is_list == 1 && out.count == 2);
  CHECK(out.type == SEALPOINT_ATTRIBUTE_STRING &&
        equals(((const sealpoint_string*)out.values)[1], "lon"));
  CHECK_OK(sealpoint_attributes_get(found, 1, &out, &error));
  CHECK(equals(out.name, "flags") && out.type == SEALPOINT_ATTRIBUTE_BOOL && out.count == 2);
  CHECK(((const uint8_t*)out.values)[0] == 0 && ((const uint8_t*)out.values)[1] == 1);
  CHECK_OK(sealpoint_attributes_get(found, 2, &out, &error));
  CHECK(equals(out.name, "none") && out.type == SEALPOINT_ATTRIBUTE_INT64 && out.count == 0);
  CHECK_OK(sealpoint_attributes_get(found, 3, &out, &error));
  CHECK(equals(out.name, "scale") && out.type == SEALPOINT_ATTRIBUTE_FLOAT64);
  CHECK(out.is_list == 0 && *(const double*)out.values == 0.5);
  CHECK_OK(sealpoint_attributes_get(found, 4, &out, &error));
  CHECK(equals(out.name, "valid_min") && *(const int64_t*)out.values == -5);
  CHECK_CODE(SEALPOINT_INVALID_ARGUMENT, sealpoint_attributes_get(found, 5, &out, &error));
}

static void write_with_attributes(sealpoint_string directory, const sealpoint_attribute* all,
                                  uint64_t count) {
  static const float values[2] = {1, 2};
  static const uint64_t shape[1] = {2};
  static const sealpoint_string title = {"a run", 5};
  const sealpoint_attribute own = attribute("title", SEALPOINT_ATTRIBUTE_STRING, &title, 1, 0);
  sealpoint_error* error = NULL;
  sealpoint_engine* engine = NULL;
  sealpoint_blob_writer* writer = NULL;
  sealpoint_summaries* summaries = NULL;
  sealpoint_tensor_spec spec;
  sealpoint_source source;
  sealpoint_init(&spec, sizeof spec);
  spec.name = str("t");
  spec.dtype = SEALPOINT_DTYPE_F32;
  spec.shape = shape;
  spec.ndim = 1;
  sealpoint_init(&source, sizeof source);
  source.data = values;
  source.size_bytes = sizeof values;
  CHECK_OK(sealpoint_create_directories(directory, &error));
  CHECK_OK(sealpoint_engine_create(NULL, &engine, &error));
  CHECK_OK(sealpoint_blob_writer_create(engine, directory, NULL, &writer, &error));
  CHECK_OK(sealpoint_blob_writer_set_attributes(writer, str("t"), all, count, &error));
  CHECK_OK(sealpoint_blob_writer_add(writer, &spec, NULL, &source, &error));
  CHECK_OK(sealpoint_blob_writer_finish(writer, &summaries, &error));
  CHECK_OK(sealpoint_summaries_set_attributes(summaries, &own, 1, &error));
  CHECK_OK(sealpoint_commit(directory, NULL, summaries, NULL, &error));
  sealpoint_summaries_free(summaries);
  sealpoint_blob_writer_free(writer);
  sealpoint_engine_free(engine);
}

static void check_mistakes(void) {
  static const int64_t numbers[2] = {1, 2};
  static const uint8_t two = 2;
  static const sealpoint_string not_text = {"\xff", 1};
  sealpoint_error* error = NULL;
  sealpoint_declaration* declaration = NULL;
  sealpoint_attribute wrong[2];
  const struct {
    sealpoint_attribute attribute;
    const char* text;
  } rows[] = {
      {attribute("a", SEALPOINT_ATTRIBUTE_INT64, numbers, 2, 0), "has 2 values"},
      {attribute("a", SEALPOINT_ATTRIBUTE_INT64, NULL, 1, 0), "is NULL"},
      {attribute("a", 5, numbers, 1, 0), "is 5, expected 1 to 4"},
      {attribute("a", SEALPOINT_ATTRIBUTE_INT64, numbers, 1, 2), "is_list"},
      {attribute("a", SEALPOINT_ATTRIBUTE_BOOL, &two, 1, 0), "bool"},
      {attribute("a", SEALPOINT_ATTRIBUTE_STRING, &not_text, 1, 0), "UTF-8"},
      {attribute("", SEALPOINT_ATTRIBUTE_INT64, numbers, 1, 0), "0 bytes"},
  };
  size_t i;
  for (i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    CHECK_OK(sealpoint_declaration_create(&declaration, &error));
    CHECK_ERROR(
        SEALPOINT_INVALID_ARGUMENT, rows[i].text,
        sealpoint_declaration_set_attributes(declaration, str("t"), &rows[i].attribute, 1, &error));
    sealpoint_declaration_free(declaration);
  }
  wrong[0] = wrong[1] = attribute("a", SEALPOINT_ATTRIBUTE_INT64, numbers, 1, 0);
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "declaration is NULL",
              sealpoint_declaration_set_attributes(NULL, str("t"), wrong, 1, &error));
  CHECK_OK(sealpoint_declaration_create(&declaration, &error));
  CHECK_ERROR(SEALPOINT_INVALID_ARGUMENT, "given twice",
              sealpoint_declaration_set_attributes(declaration, str("t"), wrong, 2, &error));
  sealpoint_declaration_free(declaration);
}

void test_attributes(void) {
  static const sealpoint_string names[2] = {{"lat", 3}, {"lon", 3}};
  static const uint8_t flags[2] = {0, 1};
  static const double scale = 0.5;
  static const int64_t valid_min = -5;
  const sealpoint_attribute all[] = {
      attribute("valid_min", SEALPOINT_ATTRIBUTE_INT64, &valid_min, 1, 0),
      attribute("scale", SEALPOINT_ATTRIBUTE_FLOAT64, &scale, 1, 0),
      attribute("none", SEALPOINT_ATTRIBUTE_INT64, NULL, 0, 1),
      attribute("flags", SEALPOINT_ATTRIBUTE_BOOL, flags, 2, 1),
      attribute("dimensions", SEALPOINT_ATTRIBUTE_STRING, names, 2, 1)};
  const sealpoint_string directory = in_work_dir("attributes");
  sealpoint_error* error = NULL;
  sealpoint_checkpoint* checkpoint = NULL;
  sealpoint_attributes* found = NULL;
  sealpoint_attribute out;
  write_with_attributes(directory, all, 5);
  CHECK_OK(sealpoint_checkpoint_open(directory, NULL, &checkpoint, &error));
  CHECK_OK(sealpoint_checkpoint_tensor_attributes(checkpoint, str("t"), &found, &error));
  check_types(found);
  sealpoint_attributes_free(found);
  CHECK_OK(sealpoint_checkpoint_attributes(checkpoint, &found, &error));
  CHECK(sealpoint_attributes_count(found) == 1);
  CHECK_OK(sealpoint_attributes_get(found, 0, &out, &error));
  CHECK(equals(out.name, "title") && equals(*(const sealpoint_string*)out.values, "a run"));
  sealpoint_attributes_free(found);
  CHECK_CODE(SEALPOINT_NOT_FOUND,
             sealpoint_checkpoint_tensor_attributes(checkpoint, str("u"), &found, &error));
  CHECK(found == NULL && sealpoint_attributes_count(NULL) == 0);
  sealpoint_attributes_free(NULL);
  sealpoint_checkpoint_free(checkpoint);
  check_mistakes();
}
