/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ops behind the fused step as a tree: a line of ops for all, until they differ; there each part
 * of them goes on with a copy of the picture, in the scratch of one of its own, and one part with the
 * picture itself. Those whose ops end somewhere on the line take what they want from the picture
 * there, before anybody changes it.
 *
 * An op that refuses the picture does so for all on its line, as it would for each alone. Which one
 * tells of it follows from their numbers and not from the order here: the lowest.
 */

#include "pipeline/engine/branch.h"

struct branch_line { /* that waits to be run */
	uint32_t who;
	unsigned owner; /* of the scratch that the picture stands in */
	unsigned next;  /* op */
};

struct branch_tree {
	struct branch *const *branch;
	struct branch_line line[PIPELINE_MAX_PARTS];
	unsigned n;
	unsigned *failed;
	struct pipeline_error *error;
};

static unsigned branch_lowest(uint32_t who)
{
	return (unsigned)__builtin_ctz(who);
}

/* Those whose ops end here. The others are returned. */
static uint32_t branch_finish(const struct branch_tree *tree, const struct branch_line *line)
{
	const struct branch *owner = tree->branch[line->owner];
	uint32_t rest = 0;

	for (uint32_t left = line->who; left; left &= left - 1) {
		struct branch *own = tree->branch[branch_lowest(left)];

		if (line->next < own->steps->shape.pixel_ops) {
			rest |= left & -left;
			continue;
		}
		steps_finish(own->steps, owner->scratch, &owner->picture, own->draw, own->out);
		own->height = owner->picture.height;
		own->width = owner->picture.width;
	}
	return rest;
}

/* A line of its own for `who`, with a copy of the line's picture. */
static void branch_split(struct branch_tree *tree, const struct branch_line *line, uint32_t who)
{
	const unsigned number = branch_lowest(who);
	struct branch *own = tree->branch[number];
	int r = picture_copy(&tree->branch[line->owner]->picture, &own->scratch->buffer[0],
			     &own->picture);

	own->scratch->at = 0;
	own->work->copies++;
	if (r == 0) {
		tree->line[tree->n++] = (struct branch_line){who, number, line->next};
	} else if (number < *tree->failed) {
		*tree->failed = number;
		steps_fail(tree->error, &own->steps->ops->op[line->next], r);
	}
}

/* Who of `who` has the next op in common with the lowest of them. */
static uint32_t branch_with(const struct branch_tree *tree, uint32_t who, unsigned next)
{
	return (who & -who) | (who & tree->branch[branch_lowest(who)]->alike[next + 1]);
}

/* One op for all on the line, those who want another one first put on lines of their own. False: the
 * line ends. */
static bool branch_step(struct branch_tree *tree, struct branch_line *line)
{
	struct branch *owner = tree->branch[line->owner];
	unsigned number;

	line->who = branch_finish(tree, line);
	if (!line->who || branch_lowest(line->who) >= *tree->failed)
		return false;
	number = branch_lowest(line->who);
	for (uint32_t others = line->who & ~branch_with(tree, line->who, line->next); others;) {
		uint32_t part = branch_with(tree, others, line->next);

		branch_split(tree, line, part);
		others &= ~part;
		line->who &= ~part;
	}
	owner->work->ops++;
	if (steps_one(tree->branch[number]->steps, owner->scratch, line->next++, &owner->picture,
		      tree->branch[number]->draw, tree->error) == 0)
		return true;
	*tree->failed = number;
	return false;
}

void branch_run(struct branch *const branch[], uint32_t who, unsigned from, unsigned *failed,
		struct pipeline_error *ret_error)
{
	struct branch_tree tree = {.branch = branch,
				   .line = {{who, branch_lowest(who), from}},
				   .n = 1,
				   .failed = failed,
				   .error = ret_error};

	while (tree.n > 0) {
		struct branch_line line = tree.line[--tree.n];

		while (branch_step(&tree, &line))
			;
	}
}
