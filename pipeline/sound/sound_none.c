/* SPDX-License-Identifier: Apache-2.0 */

/* A build without libsndfile and libsoxr: no pipeline with "audio" is compiled, so nothing else is called. */

#include "pipeline/formats/decode.h"
#include "pipeline/sound/sound.h"

const char *sound_missing(void)
{
	return "this build of OneAccess decodes no sounds (--without-audio, as in a wheel): take "
	       "the "
	       "packages of Debian or rpm, or build it with libsndfile, libmpg123 and libsoxr";
}

int sound_room_new(struct sound_room **ret)
{
	*ret = NULL;
	return 0;
}

void sound_room_free(struct sound_room *room)
{
	(void)room;
}

int sound_run(const struct sound *sound, struct sound_room *room, const struct sound_watch *watch,
	      const void *data, size_t size, const struct pipeline_key *key,
	      const struct sound_place *place, float *out, int64_t *ret_length,
	      struct pipeline_error *ret_error)
{
	(void)sound, (void)room, (void)watch, (void)data, (void)size, (void)key, (void)place,
	    (void)out;
	(void)ret_length;
	return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "this build decodes no sounds");
}

int sound_measure(const void *data, size_t size, const struct pipeline_part *part,
		  struct sound_head *ret, struct pipeline_error *ret_error)
{
	(void)data, (void)size, (void)part, (void)ret;
	return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "this build decodes no sounds");
}
