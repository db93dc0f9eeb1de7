/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sounds through pipelines that begin with the same audio: the file is decoded once, into the memory of one of those that
 * want the waveform, or into some of the run's, and each spectrogram is made of that.
 */

#include "pipeline/pipeline_inner.h"

struct pipeline_sounds {
	struct sound_room *room;                     /* owned */
	float *wave;                                 /* owned; NULL: nobody has a spectrogram */
	struct mel_room *mel[PIPELINE_MAX_VARIANTS]; /* owned; NULL: the waveform it is */
};

void pipeline_sounds_free(struct pipeline_sounds *sounds)
{
	if (!sounds)
		return;
	for (unsigned v = 0; v < PIPELINE_MAX_VARIANTS; v++)
		mel_room_free(sounds->mel[v]);
	sound_room_free(sounds->room);
	free(sounds->wave);
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

int pipeline_sounds_add(struct pipeline_run *run, unsigned v)
{
	const struct pipeline *pipeline = run->pipeline[v];
	struct pipeline_sounds *sounds = run->sounds;

	if (!sounds)
		run->sounds = sounds = calloc(1, sizeof(*sounds));
	if (!sounds || (!sounds->room && sound_room_new(&sounds->room) != 0))
		return -ENOMEM;
	if (pipeline->mel.n_mels == 0)
		return 0;
	if (!sounds->wave)
		sounds->wave = malloc(pipeline_wave(pipeline) * sizeof(*sounds->wave));
	return sounds->wave ? mel_room_new(&pipeline->mel, mel_best(), &sounds->mel[v]) : -ENOMEM;
}

static void pipeline_run_mel(const struct pipeline_run *run, unsigned v, const float *wave,
			     int64_t length, const struct pipeline_key *key, float *out)
{
	const struct pipeline *pipeline = run->pipeline[v];
	const struct mel *mel = &pipeline->mel;
	const unsigned planes = pipeline_planes(pipeline);

	if (run->watch.fn)
		run->watch.fn(run->watch.arg, mel->frames * planes, mel->n_fft);
	for (unsigned c = 0; c < planes; c++)
		mel_run(run->sounds->mel[v], wave + (size_t)c * mel->wave, length,
			out + (size_t)c * mel->n_mels * mel->frames);
	mel_finish(mel, &pipeline->ops, key, planes, out);
}

int pipeline_run_sounds(struct pipeline_run *run, uint32_t who, const struct pipeline_input *input,
			const struct pipeline_key *key, const struct pipeline_out out[],
			struct pipeline_error *ret_error)
{
	const struct pipeline *first = run->pipeline[__builtin_ctz(who)];
	float *wave = run->sounds->wave;
	int64_t length = 0, frames;
	int r;

	for (unsigned v = 0; v < run->n; v++)
		if ((who >> v & 1) && !run->sounds->mel[v])
			wave = out[v].field[0];
	r = sound_run(&first->sound, run->sounds->room, &run->watch, input->data, input->size, key,
		      wave, &length, ret_error);
	for (unsigned v = 0; r == 0 && v < run->n; v++) {
		if (!(who >> v & 1))
			continue;
		frames = length;
		if (run->sounds->mel[v]) {
			pipeline_run_mel(run, v, wave, length, key, out[v].field[0]);
			frames = mel_length(&run->pipeline[v]->mel, length);
		} else if (wave != out[v].field[0]) {
			memcpy(out[v].field[0], wave, pipeline_wave(first) * sizeof(*wave));
		}
		memcpy(out[v].field[2], &frames, sizeof(frames));
	}
	return r;
}
