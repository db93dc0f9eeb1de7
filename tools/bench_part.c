/* SPDX-License-Identifier: Apache-2.0 */

/*
 * --split and --classes: which part of the dataset a job of access-bench asks for.
 */

#include "tools/bench.h"

#define BENCH_ALL "all"

static const char *bench_part_text(const struct option_texts *texts, unsigned job)
{
	const char *text = texts->n ? texts->text[job % texts->n] : BENCH_ALL;

	return strcmp(text, BENCH_ALL) == 0 ? NULL : text;
}

/* FROM:TO[@SEED] */
static bool bench_part_split(const char *text, struct oa_sampler *ret)
{
	char *end;

	if (!text)
		return true;
	ret->from = strtod(text, &end);
	if (end == text || *end != ':')
		return false;
	text = end + 1;
	ret->to = strtod(text, &end);
	if (end == text || (*end && *end != '@'))
		return false;
	if (*end == '@') {
		text = end + 1;
		if (!base_parse_number(&text, UINT64_MAX, &ret->split_seed) || *text)
			return false;
	}
	return ret->from >= 0 && ret->from < ret->to && ret->to <= 1;
}

bool bench_part_check(const struct bench_config *config, struct diag *diag)
{
	for (unsigned i = 0; i < config->dealt.split.n; i++) {
		struct oa_sampler sampler = {0};

		if (bench_part_split(bench_part_text(&config->dealt.split, i), &sampler))
			continue;
		diag_set(diag,
			 "--split %s: expected FROM:TO or FROM:TO@SEED with 0 <= FROM < TO <= 1, "
			 "or all",
			 config->dealt.split.text[i]);
		return false;
	}
	return true;
}

bool bench_part_of(const struct bench_config *config, unsigned job, struct bench_part *ret)
{
	const char *classes = bench_part_text(&config->dealt.classes, job);

	*ret = (struct bench_part){.sampler.size = sizeof(ret->sampler)};
	bench_part_split(bench_part_text(&config->dealt.split, job), &ret->sampler);
	if (classes) {
		ret->text = strdup(classes);
		ret->names = calloc(strlen(classes) + 1, sizeof(*ret->names));
	}
	if (!ret->text || !ret->names)
		return bench_part_is_asked(ret);
	for (char *at = ret->text, *name; (name = strsep(&at, ","));)
		ret->names[ret->sampler.n_classes++] = name;
	ret->sampler.classes = ret->names;
	return true;
}

void bench_part_fini(struct bench_part *part)
{
	free(part->text);
	free(part->names);
	part->text = NULL;
	part->names = NULL;
}
