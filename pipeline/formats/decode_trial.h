/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether a way to decode that depends on the inside of a library is right on this machine. */

#include "pipeline/formats/decode_format.h"

enum decode_tried { DECODE_UNTRIED, DECODE_TRIED_WELL, DECODE_TRIED_BADLY };

/* Decodes small JPEGs of each kind, whole and by rows. Did all rows come as planes, with the same
 * pixels? state is the format's, as good as new; the caller ends it. */
bool decode_trial(const struct decode_format *format, void *state);
