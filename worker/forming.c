/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stored forms are made here because this is where hostile bytes may be looked at. They are made in the
 * worker's own memory and copied to the write-back ring when their size is known, so that the write-back ring has no gaps;
 * the copy is a small part of what making takes.
 *
 * Of a crop index the file's bytes are not kept: the reader puts them behind it again.
 */

#include "worker/forming.h"

#include "pipeline/forms/form.h"

#define FORMING_EARLIER_MOST ((size_t)1 << 20) /* bytes: a worker has them as long as it lives */

_Static_assert(LAYOUT_FORM_AUGMENTED - LAYOUT_FORM_PIXELS == PIPELINE_CUT_AUGMENTED,
	       "a form of pixels has the number of its cut");

/* One of the source's forms: the maker gives memory of its own for each. */
static int make_of_source(struct forming *forming, enum form_kind kind, const uint8_t *data,
			  size_t size, struct forming_form *ret)
{
	uint8_t *made;
	size_t bytes;
	int r = forming->maker ? 0 : form_maker_new(&forming->maker);

	r = r ? r : form_make(forming->maker, kind, data, size, &made, &bytes);
	if (r != 0)
		return r < 0 ? r : FORMING_E_UNFIT;
	free(forming->buffer);
	forming->buffer = made;
	forming->room = bytes;
	*ret = (struct forming_form){.data = made, .size = bytes, .kept = form_kept(made, bytes)};
	return 0;
}

/* A sample that is packed has the form of what is in it. run: NULL, if it is none. */
static int make_packed(struct forming *forming, struct pipeline_run *run, const uint8_t *data,
		       size_t size, struct forming_form *ret)
{
	const void *plain = data;
	struct pipeline_error error;

	if (run && pipeline_run_unpack(run, &plain, &size, &error) != 0)
		return error.stage == PIPELINE_FAIL_MEMORY ? -ENOMEM : FORMING_E_UNFIT;
	return make_of_source(forming, FORM_PACKED, plain, size, ret);
}

static int make_of_pixels(struct forming *forming, unsigned cut, struct pipeline_run *run,
			  unsigned number, const struct pipeline_key *key, const uint8_t *data,
			  size_t size, struct forming_form *ret)
{
	struct pipeline_error error;
	size_t bytes = 0;
	int r = pipeline_cut_make(run, number, cut, data, size, key, forming->buffer, forming->room,
				  &bytes, &error);

	if (r == PIPELINE_E_ROOM) {
		free(forming->buffer);
		forming->buffer = malloc(bytes);
		forming->room = forming->buffer ? bytes : 0;
		r = pipeline_cut_make(run, number, cut, data, size, key, forming->buffer,
				      forming->room, &bytes, &error);
	}
	if (r == -ENOMEM || r == PIPELINE_E_ROOM ||
	    (r == PIPELINE_E_BAD && error.stage == PIPELINE_FAIL_MEMORY))
		return -ENOMEM;
	if (r != 0)
		return FORMING_E_UNFIT;
	*ret = (struct forming_form){.data = forming->buffer, .size = bytes, .kept = bytes};
	return 0;
}

int forming_make(struct forming *forming, unsigned form, struct pipeline_run *run, unsigned number,
		 const struct pipeline_key *key, const uint8_t *data, size_t size,
		 struct forming_form *ret)
{
	if (form == LAYOUT_FORM_INDEXED)
		return make_of_source(forming, FORM_INDEXED, data, size, ret);
	if (form == LAYOUT_FORM_PACKED)
		return make_packed(forming, run, data, size, ret);
	return make_of_pixels(forming, form - LAYOUT_FORM_PIXELS, run, number, key, data, size,
			      ret);
}

void forming_set_aside(struct forming *forming, unsigned form, const struct forming_form *made)
{
	struct forming_earlier *earlier;

	if (form > LAYOUT_FORM_PIXELS || made->size > FORMING_EARLIER_MOST)
		return;
	earlier = &forming->earlier[form];
	free(earlier->data);
	earlier->size = made->size;
	earlier->data = base_take_ptr(forming->buffer);
	forming->room = 0;
}

struct forming_form forming_earlier_of(const struct forming *forming, unsigned form,
				       const struct forming_form *made)
{
	const struct forming_earlier *earlier;

	if (form > LAYOUT_FORM_PIXELS || !forming->earlier[form].data)
		return *made;
	earlier = &forming->earlier[form];
	return (struct forming_form){.data = earlier->data, .size = earlier->size};
}

bool forming_hand_over(const struct rings *rings, uint32_t ring, uint32_t queue,
		       const struct queue_task *task, const struct forming_form *form)
{
	struct rings_item item = {
	    .queue = queue,
	    .row = task->row,
	    .task = task->index,
	    .form = task->make,
	    .bytes = (uint32_t)form->kept,
	    .sample = task->sample,
	};
	uint8_t *at;

	if (form->kept > rings_most(rings))
		return false;
	at = rings_begin(rings, ring, form->kept);
	if (!at)
		return false;
	memcpy(at, form->data, form->kept);
	rings_end(rings, ring, &item);
	return true;
}

void forming_hand_over_none(const struct rings *rings, uint32_t ring, uint32_t queue,
			    const struct queue_task *task)
{
	const struct forming_form none = {.data = (const uint8_t *)""};

	forming_hand_over(rings, ring, queue, task, &none);
}
