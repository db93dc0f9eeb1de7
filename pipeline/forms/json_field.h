/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Values of fields out of parsed JSON. */

#include "base/json.h"
#include "pipeline/types.h"

#define JSON_FIELD_PATH 64 /* bytes of a path, with its NUL */

/* What is at "key/0/key"; NULL: nothing. */
const struct json_in *json_field_at(const struct json_in *value, const char *path);
/* Its numbers to the field's place, which has field->bytes. false: they are of other shape or type. */
bool json_field_put(const struct json_in *value, const struct pipeline_field *field, uint8_t *to);
/* A whole number to a type of whole numbers. false: the type does not hold it. */
bool json_field_put_whole(enum pipeline_dtype dtype, int64_t value, uint8_t *to);
