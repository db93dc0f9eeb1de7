/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What becomes of a variant among the others of its stream. */

#include "base/base.h"

struct domain;
struct stream;
struct variant;

/* A new one may be left from now on. 0 or negative errno. */
int variant_begin(struct variant *variant);
/* A connection comes, or is gone. */
void variant_ref(struct variant *variant);
void variant_unref(struct variant *variant);
/* Makes those that can run run, and counts the slots that all of them have. */
void variant_settle(struct stream *stream);
/* It will never run: who waits for it is refused. */
void variant_fail(struct variant *variant, uint64_t code, const char *text);
/* Gives back the memory of those that leave and are in no chunk any more. */
void variant_sweep(struct stream *stream);
/* From the worker parent: nobody maps it any more. */
void variant_removed(struct variant *variant);
/* Gives back the memory of one that no connection has; payer: whose, NULL: anybody's. false: there is
 * none. */
bool variant_free_idle(struct stream *stream, const struct domain *payer);
