/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Stored forms of the samples that a worker has just run its pipelines on, made because accessd asked for it:
 * to be kept (into the worker's write-back ring, which the reader empties) or to be tried out.
 */

#include "pipeline/pipeline.h"
#include "shmring/queue.h"
#include "shmring/rings.h"

struct form_maker;

struct forming {                  /* a worker's; zeros: nothing was made yet */
	struct form_maker *maker; /* owned, as is buffer */
	uint8_t *buffer;
	size_t room;
	struct forming_earlier { /* of the source's forms, one each that was tried before */
		uint8_t *data;   /* owned */
		size_t size;
	} earlier[LAYOUT_FORM_PIXELS + 1];
};

struct forming_form {        /* borrowed until the next one is made */
	const uint8_t *data; /* as pipelines take it */
	size_t size, kept;   /* bytes; the first `kept` are what is kept */
};

enum { FORMING_E_UNFIT = 1 };

/* Makes a stored form (LAYOUT_FORM_...) of a file's (hostile) bytes. For one of pixels, run is asked for
 * its pipeline `number`, with key's draws. 0; FORMING_E_UNFIT: the sample has none, wherever it is tried; -ENOMEM. */
int forming_make(struct forming *forming, unsigned form, struct pipeline_run *run, unsigned number,
		 const struct pipeline_key *key, const uint8_t *data, size_t size,
		 struct forming_form *ret);
/* The form that was just made is kept to be the earlier one of its kind, if it is the source's and not large. */
void forming_set_aside(struct forming *forming, unsigned form, const struct forming_form *made);
/* The one before it, or itself: where there is none, and of pixels, which take as long whatever came before. Borrowed until
 * the next is set aside. */
struct forming_form forming_earlier_of(const struct forming *forming, unsigned form,
				       const struct forming_form *made);
/* Hands it to the reader. false: the write-back ring has no room. */
bool forming_hand_over(const struct rings *rings, uint32_t ring, uint32_t queue,
		       const struct queue_task *task, const struct forming_form *form);
/* Tells it that the form that the task wanted is not to be had. */
void forming_hand_over_none(const struct rings *rings, uint32_t ring, uint32_t queue,
			    const struct queue_task *task);
