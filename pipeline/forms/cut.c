/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pipeline's first ops have made of a picture, kept so that they need not do it again.
 *
 * A *cut* is a place behind an op where every nonce has the same 8-bit picture: all ops up to there are
 * deterministic. Its name is that of the ops before it, so pipelines that begin alike share what is kept
 * there, whatever they do afterwards; what ops behind it draw depends on their number and on the picture's
 * size alone, which is the same. Behind random ops there is one more, *augmented*: the last 8-bit picture, which is
 * kept for jobs that see it several times. It is one instance's, so the seed, the nonce and the sample that its draws
 * are of are hashed into its name, and nobody takes it for another instance. One place is none: behind a decode that may make the picture smaller for
 * the op after it ("fast"), where the two are one step.
 *
 * The form has the pixels as the fused pass wants them, planes whose rows follow each other, with bytes
 * around that a kernel may read past a row's end: nothing is unpacked, and of a crop only its own rows are
 * touched. Of a picture whose planes are all the same, a grey one, one is kept. Between the form's head (form.c)
 * and the pixels stands what the rest of the pipeline must know:
 *
 *	 0  the name of the cut
 *	32  ops (u16), planes (u16)
 *	36  height, width; of the picture as it was decoded, the same; the label (u32 each)
 *	56  zeros, to 96
 *
 * Behind the pixels stand CUT_PAD zeros. All of it is hostile: who goes on from a cut compares name and
 * size with what his own pipeline has there, since later ops count on the size.
 */

#include "base/little.h"
#include "pipeline/forms/cut.h"
#include "pipeline/forms/form.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/spec/spec.h"

#define CUT_HEAD 96

enum {
	CUT_AT_OPS = 32,
	CUT_AT_PLANES = 34,
	CUT_AT_HEIGHT = 36,
	CUT_AT_WIDTH = 40,
	CUT_AT_SOURCE_HEIGHT = 44,
	CUT_AT_SOURCE_WIDTH = 48,
	CUT_AT_LABEL = 52,
};

_Static_assert(FORM_HEAD + CUT_HEAD >= CUT_PAD, "what stands before the pixels may be read");
_Static_assert((FORM_HEAD + CUT_HEAD) % 64 == 0, "pixels begin where a line of the cache does");

/* ---- what can be kept of a pipeline ---- */

/* As pipeline_hash() of a pipeline that has these ops alone; of none: of an empty text. */
static int cut_hash(const struct op_list *ops, const char *pixels, struct hash_id *ret)
{
	_cleanup_free_ char *text = ops->count > 0 ? spec_canonical(ops) : strdup("");
	struct hash *hash;

	if (!text || hash_new(&hash) != 0)
		return -ENOMEM;
	hash_add(hash, text, strlen(text));
	hash_add(hash, "\n", 1);
	hash_add(hash, pixels, strlen(pixels));
	hash_finish(hash, ret);
	hash_free(hash);
	return 0;
}

bool cut_is_joined(const struct op_list *ops, unsigned end)
{
	return ops->op[0].id == OP_DECODE && op_number(&ops->op[0], OP_DECODE_FAST, 0) != 0 &&
	       end > 1 && (ops->op[1].id == OP_RESIZE || ops->op[1].id == OP_RANDOM_RESIZED_CROP);
}

int cut_list_make(struct op_list *ops, const struct shape *shape, const char *pixels,
		  struct cut_list *ret)
{
	const unsigned count = ops->count;
	struct shape so_far = {.channels = 3, .dtype = PIPELINE_U8};
	int r;

	*ret = (struct cut_list){.n = 1};
	ops->count = 0;
	r = cut_hash(ops, pixels, &ret->place[0].id);
	while (r == 0 && ret->n <= shape->pixel_ops && !op_is_random(&ops->op[ret->n - 1])) {
		struct cut_place *place = &ret->place[ret->n];
		const struct op *op = &ops->op[ret->n - 1];

		if (op_impl(op->id)->shape)
			op_impl(op->id)->shape(op, &so_far);
		if (so_far.views)
			break;
		ops->count = ret->n++;
		place->is_cut = ops->count > 1 || !cut_is_joined(ops, shape->pixel_ops);
		place->height = so_far.height;
		place->width = so_far.width;
		r = cut_hash(ops, pixels, &place->id);
	}
	if (r == 0 && ret->n > 1 && ret->n <= shape->pixel_ops && !shape->views) {
		ret->augmented = ops->count = shape->pixel_ops;
		ret->place[ret->augmented].height = shape->height;
		ret->place[ret->augmented].width = shape->width;
		r = cut_hash(ops, pixels, &ret->place[ret->augmented].id);
	}
	ops->count = count;
	return r;
}

void cut_instance(const struct hash_id *ops, const struct pipeline_key *key, struct hash_id *ret)
{
	const struct {
		struct hash_id ops;
		uint64_t seed, nonce, sample;
	} all = {*ops, key->seed, key->nonce, key->sample};

	hash_of(&all, sizeof(all), ret);
}

bool cut_is_of(const struct cut *cut, const struct cut_list *list, const struct pipeline_key *key)
{
	const struct cut_place *place = &list->place[cut->ops];
	struct hash_id id = place->id;

	if (cut->ops == list->augmented)
		cut_instance(&place->id, key, &id);
	else if (cut->ops >= list->n || !place->is_cut)
		return false;
	return memcmp(&id, &cut->id, sizeof(cut->id)) == 0 &&
	       (place->height == 0 || (place->height == cut->height && place->width == cut->width));
}

/* ---- one picture ---- */

uint64_t cut_bytes(uint64_t height, uint64_t width, unsigned planes)
{
	return FORM_HEAD + CUT_HEAD + height * width * planes + CUT_PAD;
}

uint8_t *cut_pixels(uint8_t *form)
{
	return form + FORM_HEAD + CUT_HEAD;
}

void cut_write(const struct cut *cut, uint8_t *form)
{
	const size_t pixels = (size_t)cut->height * cut->width * cut->planes;
	uint8_t *head = form + FORM_HEAD;

	memset(head, 0, CUT_HEAD);
	memcpy(head, cut->id.bytes, sizeof(cut->id.bytes));
	little_put(head + CUT_AT_OPS, cut->ops, 2);
	little_put(head + CUT_AT_PLANES, cut->planes, 2);
	little_put(head + CUT_AT_HEIGHT, cut->height, 4);
	little_put(head + CUT_AT_WIDTH, cut->width, 4);
	little_put(head + CUT_AT_SOURCE_HEIGHT, cut->source_height, 4);
	little_put(head + CUT_AT_SOURCE_WIDTH, cut->source_width, 4);
	little_put(head + CUT_AT_LABEL, cut->label, 4);
	memset(head + CUT_HEAD + pixels, 0, CUT_PAD);
	form_seal(form, FORM_PIXELS, CUT_HEAD, pixels + CUT_PAD);
}

/* Sizes that a picture may have, and a label that a record may give. */
static bool cut_is_sound(const struct cut *cut)
{
	return cut->ops >= 1 && cut->ops <= PIPELINE_MAX_OPS &&
	       (cut->planes == 1 || cut->planes == 3) && cut->height > 0 && cut->width > 0 &&
	       (uint64_t)cut->height * cut->width <= OP_MAX_PIXELS && cut->label <= INT32_MAX;
}

int cut_read(const uint8_t *data, size_t size, struct cut *ret)
{
	struct form form;
	struct cut cut;
	const uint8_t *head;
	int r = form_read(data, size, &form);

	if (r != 0)
		return r;
	if (form.kind != FORM_PIXELS || form.index_size != CUT_HEAD)
		return FORM_E_OTHER;
	head = form.index;
	cut = (struct cut){
	    .ops = little_16(head + CUT_AT_OPS),
	    .planes = little_16(head + CUT_AT_PLANES),
	    .height = little_32(head + CUT_AT_HEIGHT),
	    .width = little_32(head + CUT_AT_WIDTH),
	    .source_height = little_32(head + CUT_AT_SOURCE_HEIGHT),
	    .source_width = little_32(head + CUT_AT_SOURCE_WIDTH),
	    .label = little_32(head + CUT_AT_LABEL),
	    .pixels = form.file,
	};
	memcpy(cut.id.bytes, head, sizeof(cut.id.bytes));
	if (!cut_is_sound(&cut) || cut_bytes(cut.height, cut.width, cut.planes) != size)
		return FORM_E_OTHER;
	*ret = cut;
	return 0;
}
