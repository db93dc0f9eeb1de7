/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One parameter's value, from JSON and back to text. */

#include <stdio.h>
#include "base/json.h"
#include "pipeline/spec/op.h"

#define SPEC_VALUE_WHY 96 /* bytes of a complaint */

/* value as that type; lists go to ops->pool. What is wrong with it, as the rest of a sentence that
 * begins with the parameter's name, stands in why or is constant; NULL: nothing is, *ret is set. */
const char *spec_value_read(const struct json_in *value, const struct op_type *type,
			    struct op_list *ops, struct op_value *ret, char why[SPEC_VALUE_WHY]);

/* The one text that stands for the value. */
void spec_value_put(FILE *out, const struct op_list *ops, const struct op_value *value,
		    const struct op_type *type);
