/* SPDX-License-Identifier: Apache-2.0 */

/* Data sets that others have given names, which he may use or not, and pipelines that no folder fits; and questions of all
 * kinds about jobs and samples, of others, too. */

#include "tests/scenarios/foe.h"

#include <stdio.h>
#include <string.h>

static const char *some_name(struct foe *foe)
{
	static const char *const names[] = {
	    "name:open",     "name:open", "name:open",    "name:closed",
	    "name:nobody",   "name:",     "name:../open", "name:open?image=jpg",
	    "name:open/cat", "name:OPEN", "/name:open",   "name:\x1b[2J\n"};

	return names[foe_below(foe, BASE_ARRAY_LEN(names))];
}

/* Views, boxes and masks, in good order or not: the folder has no records. */
static const char *some_pipeline(struct foe *foe)
{
	static const char *const heads[] = {
	    "{\"op\":\"decode\"}",
	    ("{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[1,9,9],[3,5,4]],\"kinds\":[5,3]"
	     "}"),
	    "{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[4,2147483647]],\"kinds\":[4]}",
	    "{\"op\":\"record\",\"fields\":[[12,64,64,64,64]],\"kinds\":[1]}",
	};
	static const char *const tails[] = {
	    "{\"op\":\"random_resized_crop\",\"size\":32}",
	    ("{\"op\":\"rotate\",\"degrees\":[-90,90],\"expand\":true},{\"op\":\"center_crop\","
	     "\"size\":24}"),
	    "{\"op\":\"center_crop\",\"size\":4096}",
	};
	static char text[4096];
	size_t n = (size_t)snprintf(text, sizeof(text), "[%s,%s", heads[foe_below(foe, 8) % 4],
				    tails[foe_below(foe, BASE_ARRAY_LEN(tails))]);

	for (uint64_t i = 0, views = foe_below(foe, 18); i < views; i++)
		n += (size_t)snprintf(
		    text + n, sizeof(text) - n, ",{\"op\":\"view\",\"names\":[\"v%u\"]},%s",
		    (unsigned)foe_below(foe, 20), tails[foe_below(foe, BASE_ARRAY_LEN(tails))]);
	snprintf(text + n, sizeof(text) - n, "]");
	return text;
}

void foe_named(struct foe *foe)
{
	const char *dataset = foe_below(foe, 4) ? some_name(foe) : foe->data;
	int sock = foe_greet(foe);
	struct wire_out out;
	struct wire_in in;

	if (sock < 0)
		return;
	foe_begin_open(foe, &out, foe_below(foe, 3) ? PROTO_OPEN : PROTO_DESCRIBE);
	if (foe_below(foe, 2))
		wire_put_string(&out, PROTO_KEY_PIPELINE, some_pipeline(foe));
	if (foe_below(foe, 4) == 0)
		foe_put_odd(foe, &out, 3);
	foe_end_open(foe, &out, dataset);
	foe_send(sock, &out);
	foe_hear(foe, sock, &in);
	wire_in_fini(&in);
	if (foe_below(foe, 2))
		raw_say(sock, PROTO_STATUS);
	foe_rest(foe, 50);
}

static void put_question(struct foe *foe, struct wire_out *out, uint16_t type)
{
	uint64_t ids[256];

	wire_out_init(out, type);
	for (size_t i = 0; i < BASE_ARRAY_LEN(ids); i++)
		ids[i] = foe_number(foe);
	wire_put_u64(out, PROTO_KEY_JOB_ID,
		     foe_below(foe, 2) ? foe_below(foe, 4000) : foe_number(foe));
	wire_put_u64(out, PROTO_KEY_FROM, foe_number(foe));
	if (foe_below(foe, 2))
		wire_put_bytes(out, PROTO_KEY_IDS, ids, foe_below(foe, sizeof(ids) + 8));
	wire_put_u64(out, PROTO_KEY_PERIOD, foe_number(foe));
	wire_put_u64(out, PROTO_KEY_VERB, foe_number(foe));
	if (foe_below(foe, 4) == 0)
		wire_put_string(out, PROTO_KEY_WHO, foe_below(foe, 2) ? "name:open" : "65203");
}

/* Of bad samples, of jobs by their numbers; and he watches. */
void foe_asks(struct foe *foe)
{
	static const uint16_t types[] = {PROTO_BAD, PROTO_WATCH, PROTO_CACHE, PROTO_STATUS};

	for (unsigned n = 1 + (unsigned)foe_below(foe, 20); n > 0; n--) {
		int sock = foe_greet(foe);
		struct wire_in in;
		struct wire_out out;

		if (sock < 0)
			return;
		for (uint64_t k = 1 + foe_below(foe, 4); k > 0; k--) {
			put_question(foe, &out, types[foe_below(foe, BASE_ARRAY_LEN(types))]);
			foe_send(sock, &out);
		}
		if (foe_below(foe, 2) && foe_hear(foe, sock, &in))
			wire_in_fini(&in);
	}
}
