/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Masked language modelling (Devlin et al., "BERT", 2019), by the rules of transformers' DataCollatorForLanguageModeling:
 * each token that is not special is chosen with the same probability, by itself. With words each word is chosen so, by its first
 * token, and all of its tokens are. Of those that are chosen each becomes the mask's token, any token, or stays,
 * by itself; its label is what it was, and all other labels are ignored.
 *
 * A word ends where the next token does not continue it, at special tokens, and where a document does.
 */

#include "plan/objective/objective.h"

static bool masked_shape(const struct objective *objective, const struct objective_from *from,
			 struct objective_shape *ret)
{
	(void)objective;
	*ret = (struct objective_shape){from->is_packed ? OBJECTIVE_ROWS : 2, from->length};
	return true;
}

static unsigned masked_what(const struct objective_masked *masked, int64_t token)
{
	return (uint64_t)token < masked->n_what ? masked->what[token] : 0;
}

/* What a chosen token becomes. */
static int64_t masked_token(const struct objective_masked *masked, struct philox_seq *seq,
			    int64_t token)
{
	uint64_t u = philox_u32(seq);
	uint64_t mask = (uint64_t)(masked->mask * 4294967296.0);

	if (u < mask)
		return masked->mask_token;
	if (u - mask < (uint64_t)(masked->random * 4294967296.0))
		return (int64_t)philox_below(seq, masked->vocabulary);
	return token;
}

static void masked_make(const struct objective *objective, const struct objective_from *from,
			struct philox_seq *seq, const int64_t *sample, int64_t *ret)
{
	const struct objective_masked *masked = &objective->masked;
	const uint32_t length = from->length;
	int64_t *labels = ret + length, *places = ret + (uint64_t)OBJECTIVE_PLACES * length;
	bool is_in_word = false, is_chosen = false;

	if (from->is_packed)
		memcpy(places, sample + (uint64_t)OBJECTIVE_PLACES * length,
		       2 * (uint64_t)length * sizeof(*ret));
	for (uint32_t i = 0; i < length; i++) {
		const int64_t token = sample[i];
		const unsigned what = masked_what(masked, token);
		const bool is_part = from->is_packed && objective_begins(places, length, i);

		ret[i] = token;
		labels[i] = OBJECTIVE_IGNORED;
		if ((what & OBJECTIVE_SPECIAL) || (from->is_packed && places[length + i] < 0)) {
			is_in_word = false;
			continue;
		}
		if (!is_in_word || is_part || !(what & OBJECTIVE_CONTINUES))
			is_chosen = objective_chance(seq, masked->probability);
		is_in_word = true;
		if (!is_chosen)
			continue;
		labels[i] = token;
		ret[i] = masked_token(masked, seq, token);
	}
}

const struct objective_ops objective_masked_ops = {masked_shape, masked_make};
