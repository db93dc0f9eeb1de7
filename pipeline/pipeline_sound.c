/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sounds through pipelines that begin with the same audio: the file is decoded once, into the memory of one of those that
 * want the waveform as it is, or into some of the run's. Each of the others changes a copy of that, in its own memory where
 * it wants a waveform, or makes its spectrogram of it.
 */

#include "pipeline/pipeline_inner.h"

struct pipeline_sounds {
	struct sound_room *room;                     /* owned */
	float *wave;                                 /* owned; NULL: all want it as it is */
	float *copy, *spare;                         /* owned; NULL: nobody has ops on it */
	struct mel_room *mel[PIPELINE_MAX_VARIANTS]; /* owned; NULL: no spectrogram */
};

void pipeline_sounds_free(struct pipeline_sounds *sounds)
{
	if (!sounds)
		return;
	for (unsigned v = 0; v < PIPELINE_MAX_VARIANTS; v++)
		mel_room_free(sounds->mel[v]);
	sound_room_free(sounds->room);
	free(sounds->wave);
	free(sounds->copy);
	free(sounds->spare);
	free(sounds);
}

static unsigned pipeline_planes(const struct pipeline *pipeline)
{
	return BASE_MAX(pipeline->sound.channels, 1u);
}

static size_t pipeline_wave(const struct pipeline *pipeline)
{
	return (size_t)pipeline->sound.frames * pipeline_planes(pipeline);
}

/* What comes out is the decoded waveform. */
static bool pipeline_is_wave(const struct pipeline *pipeline)
{
	return pipeline->sound.wave.end == 1 && pipeline->sound.mel.n_mels == 0;
}

static bool pipeline_make_room(float **room, size_t n)
{
	if (!*room)
		*room = malloc(n * sizeof(**room));
	return *room != NULL;
}

static int pipeline_sounds_add(struct pipeline_run *run, unsigned v)
{
	const struct pipeline *pipeline = run->pipeline[v];
	const size_t n = pipeline_wave(pipeline);
	struct pipeline_sounds *sounds = run->sounds;

	if (!sounds)
		run->sounds = sounds = calloc(1, sizeof(*sounds));
	if (!sounds || (!sounds->room && sound_room_new(&sounds->room) != 0))
		return -ENOMEM;
	if (pipeline_is_wave(pipeline))
		return 0;
	if (!pipeline_make_room(&sounds->wave, n) ||
	    (pipeline->sound.wave.end > 1 &&
	     (!pipeline_make_room(&sounds->copy, n) ||
	      !pipeline_make_room(&sounds->spare, pipeline->sound.frames))))
		return -ENOMEM;
	return pipeline->sound.mel.n_mels
		   ? mel_room_new(&pipeline->sound.mel, mel_best(), &sounds->mel[v])
		   : 0;
}

static void pipeline_run_mel(const struct pipeline_run *run, unsigned v, const float *wave,
			     int64_t length, const struct pipeline_key *key, float *out)
{
	const struct mel *mel = &run->pipeline[v]->sound.mel;
	struct mel_room *room = run->sounds->mel[v];

	if (run->watch.fn)
		run->watch.fn(run->watch.arg, mel->frames * mel->channels, mel->n_fft);
	for (unsigned c = 0; c < mel->channels; c++)
		mel_run(room, wave + (size_t)c * mel->wave, length,
			mel_room_at(room, out) + (size_t)c * mel->n_mels * mel->frames);
	mel_finish(room, &run->pipeline[v]->ops, key, out);
}

/* The waveform behind the ops on it: where it is. */
static const float *pipeline_run_wave(const struct pipeline_run *run, unsigned v, const float *wave,
				      int64_t length, const struct pipeline_key *key, float *out)
{
	const struct pipeline *pipeline = run->pipeline[v];
	const bool is_last = !run->sounds->mel[v] && !pipeline->sound.wave.codes;
	float *to = is_last ? out : run->sounds->copy;

	if (pipeline->sound.wave.end == 1 && !is_last)
		return wave;
	if (to != wave)
		memcpy(to, wave, pipeline_wave(pipeline) * sizeof(*to));
	if (pipeline->sound.wave.end == 1)
		return to;
	if (run->watch.fn)
		run->watch.fn(run->watch.arg, pipeline->sound.frames,
			      pipeline_planes(pipeline) * pipeline->sound.wave.end);
	wave_run(&pipeline->sound.wave, &pipeline->ops, key, pipeline_planes(pipeline),
		 pipeline->sound.frames, length, to, run->sounds->spare);
	return to;
}

/* Of one pipeline, of the decoded waveform and its length. */
static void pipeline_run_sound(const struct pipeline_run *run, unsigned v, const float *wave,
			       int64_t length, const struct pipeline_key *key,
			       const struct pipeline_out *out)
{
	const struct pipeline *pipeline = run->pipeline[v];
	int64_t frames = length;

	wave = pipeline_run_wave(run, v, wave, length, key, out->field[0]);
	if (run->sounds->mel[v]) {
		pipeline_run_mel(run, v, wave, length, key, out->field[0]);
		frames = mel_length(&pipeline->sound.mel, length);
	} else if (pipeline->sound.wave.codes) {
		wave_encode(&pipeline->sound.wave, wave, pipeline_wave(pipeline), out->field[0]);
	}
	memcpy(out->field[2], &frames, sizeof(frames));
}

static int pipeline_run_sounds(struct pipeline_run *run, uint32_t who,
			       const struct pipeline_input *input, const struct pipeline_key *key,
			       const struct pipeline_out out[], struct pipeline_error *ret_error)
{
	const struct pipeline *first = run->pipeline[__builtin_ctz(who)];
	const struct sound_place place = {input->time_us, input->record.part};
	float *wave = run->sounds->wave;
	int64_t length = 0;
	int r;

	for (unsigned v = 0; v < run->n; v++)
		if ((who >> v & 1) && pipeline_is_wave(run->pipeline[v]))
			wave = out[v].field[0];
	r = sound_run(&first->sound, run->sounds->room, &run->watch, input->data, input->size, key,
		      &place, wave, &length, ret_error);
	for (unsigned v = 0; r == 0 && v < run->n; v++)
		if (who >> v & 1)
			pipeline_run_sound(run, v, wave, length, key, &out[v]);
	return r;
}

const struct pipeline_medium pipeline_sound = {true, pipeline_sounds_add, pipeline_run_sounds};
