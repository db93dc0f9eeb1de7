/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/value.h"

#include "base/owner.h"
#include "shmring/layout.h"

static bool has_value(uint32_t type)
{
	return type == VALUE_HAVE || type == VALUE_PUT;
}

static bool has_form(uint32_t type)
{
	return has_value(type) || type == VALUE_GROUP;
}

/* Of a type that is known. */
static bool is_about_a_sample(uint32_t type)
{
	return type != VALUE_GROUP && type != VALUE_GONE;
}

/* Numbers that only some types have. */
static bool numbers_fit(const struct value_head *head)
{
	const uint32_t type = head->type;

	if ((type == VALUE_GROUP) != (head->samples != 0) || head->samples > VALUE_MOST_SAMPLES)
		return false;
	if (!is_about_a_sample(type) && (head->sample || head->id))
		return false;
	if (head->sample >= VALUE_MOST_SAMPLES || (type == VALUE_PUT && head->id))
		return false;
	if (has_form(type) ? head->form == 0 || head->form >= LAYOUT_FORMS : head->form != 0)
		return false;
	if (type == VALUE_SPREAD)
		return head->room >= 1 && head->room <= OWNER_SPREAD && head->sample < head->room;
	return type == VALUE_GET || head->room <= (type == VALUE_HAVE || type == VALUE_MISS);
}

bool value_head_check(const struct value_head *head)
{
	if (head->magic != VALUE_MAGIC || head->type < VALUE_GROUP || head->type > VALUE_SPREAD)
		return false;
	if (head->peer >= VALUE_MOST_PEERS || head->reserved[0] || head->reserved[1])
		return false;
	if (head->type == VALUE_HAVE && head->bytes == 0)
		return false;
	if (has_value(head->type) ? head->bytes > VALUE_MOST
				  : head->bytes > (head->type == VALUE_GROUP ? VALUE_MOST_NOTE : 0))
		return false;
	return numbers_fit(head);
}
