/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The keys of a log line: printf() that knows which of its texts stand between quotes. */

#include <stdarg.h>

#include "base/base.h"

/*
 * As vsnprintf(), but no text ends the quotes it stands in: in key="%s" a '"' of the text becomes
 * \x22, a control byte \xNN, and '\' \x5c unless it begins such a \xNN already. Knows %s, %c, %d,
 * %i, %u, %x, %f, %%, with #, a precision, and l, ll or z; the line ends where the format has
 * anything else. ret is terminated (size > 0). Returns its length.
 */
size_t log_keys_format(char *ret, size_t size, const char *fmt, va_list args)
    __attribute__((format(printf, 3, 0)));
