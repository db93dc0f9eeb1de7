/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Errors of the module, for one file. */

#include <stdarg.h>
#include <stdio.h>
#include "base/base.h"
#include "pipeline/pipeline.h"

/* Always PIPELINE_E_BAD. */
__attribute__((format(printf, 3, 4))) static inline int
video_fail(struct pipeline_error *ret_error, enum pipeline_fail stage, const char *format, ...)
{
	va_list args;

	*ret_error = (struct pipeline_error){.stage = stage};
	va_start(args, format);
	vsnprintf(ret_error->text, sizeof(ret_error->text), format, args);
	va_end(args);
	return PIPELINE_E_BAD;
}
