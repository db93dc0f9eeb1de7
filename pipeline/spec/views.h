/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A spec whose op "view" says that there are several pictures of each sample: one list of ops for each. */

#include "pipeline/spec/op.h"

#define VIEWS_MOST 15 /* beside the first picture */

struct views_one {
	char name[OP_MAX_NAME + 1];
	unsigned first, end; /* its ops in the list, behind decode */
};
struct views {
	unsigned n; /* of one; 0: the list is of one picture */
	struct views_one one[VIEWS_MOST];
	/* The first op "view", and the first one behind the last view's ops */
	unsigned begin, tail;
};

/* 0, or PIPELINE_E_BAD with diag. */
int views_find(const struct op_list *ops, struct views *ret, struct diag *diag);
/* What the first picture is made by, with what stands behind all pictures' ops. */
void views_first(const struct op_list *ops, const struct views *views, struct op_list *ret);
/* Does it begin with a first op of its own? */
bool views_is_own(const struct op_list *ops, const struct views_one *one);
/* What another one is made by: the first op, and its ops; or its ops alone, where they begin with one. */
void views_take(const struct op_list *ops, const struct views_one *one, struct op_list *ret);
