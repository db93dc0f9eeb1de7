/* SPDX-License-Identifier: Apache-2.0 */

#include "libaccess/mixed_ask.h"

#include "libaccess/error.h"

/* The numbers are looked at where the fields are known: mosaic_batch_begin(). */
static int mixed_ask_read_mosaic(const struct wire_in *opened, struct mixed_ask *ret,
				 struct diag *diag)
{
	const void *bytes;
	size_t size;

	if (wire_get_bytes(opened, PROTO_KEY_MOSAIC, &bytes, &size))
		return 0;
	if (size != sizeof(ret->mosaic))
		return diag_fail(diag, -EPROTO, MIXED_ASK_NONSENSE);
	memcpy(&ret->mosaic, bytes, size);
	ret->has_mosaic = true;
	return 0;
}

int mixed_ask_read(const struct wire_in *opened, struct mixed_ask *ret, struct diag *diag)
{
	struct proto_batch_mix item[BATCH_MIX_MAX];
	struct mixed_ask ask = {.n = 0};
	const void *bytes;
	size_t size;

	*ret = ask;
	if (wire_get_bytes(opened, PROTO_KEY_BATCH_MIX, &bytes, &size))
		return mixed_ask_read_mosaic(opened, ret, diag);
	if (size == 0 || size > sizeof(item) || size % sizeof(item[0]))
		return diag_fail(diag, -EPROTO, MIXED_ASK_NONSENSE);
	memcpy(item, bytes, size);
	ask.n = (uint32_t)(size / sizeof(item[0]));
	ask.is_planar = item[0].is_planar;
	ask.classes = item[0].classes;
	for (uint32_t i = 0; i < ask.n; i++) {
		if (item[i].is_planar != ask.is_planar || item[i].classes != ask.classes ||
		    item[i].kind > BATCH_MIX_CUTMIX)
			return diag_fail(diag, -EPROTO, MIXED_ASK_NONSENSE);
		ask.op[i] = (struct batch_mix_op){(enum batch_mix_kind)item[i].kind, item[i].alpha,
						  item[i].p};
	}
	if (!batch_mix_is_good(ask.op, ask.n) || ask.classes > BATCH_MIX_MAX_CLASSES)
		return diag_fail(diag, -EPROTO, MIXED_ASK_NONSENSE);
	*ret = ask;
	return 0;
}

bool mixed_ask_same(const struct mixed_ask *a, const struct mixed_ask *b)
{
	if (a->has_mosaic != b->has_mosaic ||
	    (a->has_mosaic && memcmp(&a->mosaic, &b->mosaic, sizeof(a->mosaic)) != 0))
		return false;
	if (a->n != b->n || a->is_planar != b->is_planar || a->classes != b->classes)
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->op[i].kind != b->op[i].kind || a->op[i].alpha != b->op[i].alpha ||
		    a->op[i].p != b->op[i].p)
			return false;
	return true;
}
