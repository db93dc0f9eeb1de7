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

static void pipeline_sounds_free(void *room)
{
	struct pipeline_sounds *sounds = room;

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
	struct pipeline_sounds *sounds = run->medium_room;

	if (!sounds)
		run->medium_room = sounds = calloc(1, sizeof(*sounds));
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
	const struct pipeline_sounds *sounds = run->medium_room;
	const struct mel *mel = &run->pipeline[v]->sound.mel;
	struct mel_room *room = sounds->mel[v];

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
	const struct pipeline_sounds *sounds = run->medium_room;
	const struct pipeline *pipeline = run->pipeline[v];
	const bool is_last = !sounds->mel[v] && !pipeline->sound.wave.codes;
	float *to = is_last ? out : sounds->copy;

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
		 pipeline->sound.frames, length, to, sounds->spare);
	return to;
}

/* Of one pipeline, of the decoded waveform and its length. */
static void pipeline_run_sound(const struct pipeline_run *run, unsigned v, const float *wave,
			       int64_t length, const struct pipeline_key *key,
			       const struct pipeline_out *out)
{
	const struct pipeline_sounds *sounds = run->medium_room;
	const struct pipeline *pipeline = run->pipeline[v];
	int64_t frames = length;

	wave = pipeline_run_wave(run, v, wave, length, key, out->field[0]);
	if (sounds->mel[v]) {
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
	const struct pipeline_sounds *sounds = run->medium_room;
	float *wave = sounds->wave;
	int64_t length = 0;
	int r;

	for (unsigned v = 0; v < run->n; v++)
		if ((who >> v & 1) && pipeline_is_wave(run->pipeline[v]))
			wave = out[v].field[0];
	r = sound_run(&first->sound, sounds->room, &run->watch, input->data, input->size, key,
		      &place, wave, &length, ret_error);
	for (unsigned v = 0; r == 0 && v < run->n; v++)
		if (who >> v & 1)
			pipeline_run_sound(run, v, wave, length, key, &out[v]);
	return r;
}

/* A sound or its spectrogram, its label, and how many of its frames are not of the zeros behind it. */
static int pipeline_compile_sound(struct pipeline *pipeline, struct op_list *whole,
				  const struct views *views, struct diag *diag)
{
	static const struct shape none = {.dtype = PIPELINE_F32};
	const struct mel *mel = &pipeline->sound.mel;
	const char *wrong = sound_init(&pipeline->ops.op[0], &pipeline->sound);
	const struct sound *sound = &pipeline->sound;
	const unsigned planes = BASE_MAX(sound->channels, 1u);
	uint64_t shape[3] = {sound->channels};
	const unsigned skip = sound->channels == 0; /* a dimension that nobody asked for */
	int r;

	r = wrong ? 0 : tail_infer(&pipeline->ops, &none, &pipeline->tail, diag);
	if (r != 0)
		return r;
	if (!wrong)
		wrong = pipeline_check_tail(pipeline);
	if (wrong)
		return diag_fail(diag, PIPELINE_E_BAD, "pipeline: op 1 (audio): %s", wrong);
	r = wave_init(&pipeline->ops, pipeline->tail.first, sound->rate, sound->frames,
		      &pipeline->sound.wave, diag);
	r = r ? r
	      : mel_init(&pipeline->ops, pipeline->sound.wave.end, pipeline->tail.first,
			 sound->rate, sound->frames, planes, &pipeline->sound.mel, diag);
	if (r != 0)
		return r;
	shape[1] = mel->n_mels ? mel_rows(mel) : sound->frames;
	shape[2] = mel->frames;
	pipeline_add_field(pipeline, "audio",
			   pipeline->sound.wave.codes ? PIPELINE_I64 : PIPELINE_F32,
			   (mel->n_mels ? 3 : 2) - skip, shape + skip);
	pipeline_add_label(pipeline);
	pipeline_add_field(pipeline, "length", PIPELINE_I64, 0, NULL);
	shape_intake(&pipeline->ops.op[0], &pipeline->shape);
	r = pipeline_set_fields(pipeline, diag);
	return r ? r : pipeline_set_sides(pipeline, whole, views, diag);
}

const struct pipeline_medium pipeline_sound = {
    .first = OP_AUDIO,
    .is_shared = true,
    .is_timed = true,
    .compile = pipeline_compile_sound,
    .add = pipeline_sounds_add,
    .free = pipeline_sounds_free,
    .run = pipeline_run_sounds,
};
