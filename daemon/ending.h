/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Letting go of something large, a little a turn of the loop: a hundred megabytes that are freed at once take a tenth of a
 * second, in which nobody else has his turn.
 */

#include <sys/queue.h>
#include "base/base.h"

struct loop;

struct endings { /* but for loop zeroed: none */
	struct loop *loop;
	LIST_HEAD(endings_begun, ending) list;
};

/* Frees some of the thing. false: that was all. */
typedef bool (*ending_some_fn)(void *thing);
/* Frees what is left of it. */
typedef void (*ending_rest_fn)(void *thing);

/* Calls some(thing) once a turn from now on. */
void ending_begin(struct endings *endings, ending_some_fn some, ending_rest_fn rest, void *thing);
void endings_fini(struct endings *endings); /* the rest at once */
