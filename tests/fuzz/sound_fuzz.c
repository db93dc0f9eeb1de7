/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes that claim to be a sound, or a record with one of which a part is meant, in memory that ends where they do. The first byte of the input chooses the pipeline and the
 * sample's draws. What comes out is finite in length: as many frames as were asked for, and of waveforms zeros behind those that the sound has.
 */

#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
/* libsndfile 1.2 forgets some of an Ogg file that is damaged in its head. */
const char *__lsan_default_suppressions(void)
{
	return "leak:vorbis_info_init\n";
}

#define FUZZ_FRAMES 500

static const struct {
	const char *text;
	int64_t frames; /* that come out */
	bool is_wave;
} fuzz_spec[] = {
    {"[{\"op\":\"audio\",\"sample_rate\":16000,\"frames\":500}]", 500, true},
    {"[{\"op\":\"audio\",\"sample_rate\":11025,\"frames\":500,\"crop\":\"center\"}]", 500, true},
    {"[{\"op\":\"audio\",\"sample_rate\":44100,\"frames\":250,\"channels\":2,\"crop\":\"begin\"}]",
     250, true},
    {"[{\"op\":\"audio\",\"sample_rate\":16000,\"frames\":500},{\"op\":\"mel_spectrogram\",\"n_"
     "fft\":64,\"n_mels\":8,"
     "\"log\":\"whisper\"},{\"op\":\"time_masking\",\"time_mask_param\":5}]",
     15, false},
    {"[{\"op\":\"audio\",\"sample_rate\":16000,\"frames\":500,\"speeds\":[0.5,1,1.7]},{\"op\":"
     "\"vol\",\"gain\":[-6,6],"
     "\"gain_type\":\"db\"},{\"op\":\"polarity_inversion\"},{\"op\":\"add_noise\",\"snr\":[0,20]},{"
     "\"op\":\"fade\","
     "\"fade_in_len\":100,\"fade_out_len\":500},{\"op\":\"low_pass\",\"cutoff_freq\":[100,8000]},{"
     "\"op\":\"preemphasis\"},"
     "{\"op\":\"standardize\"}]",
     500, true},
    {"[{\"op\":\"audio\",\"sample_rate\":16000,\"frames\":250,\"channels\":2},{\"op\":\"mel_"
     "spectrogram\",\"n_fft\":64,"
     "\"n_mels\":8},{\"op\":\"mfcc\",\"n_mfcc\":5},{\"op\":\"frequency_masking\",\"freq_mask_"
     "param\":9}]",
     8, false},
    {"[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":250},{\"op\":\"mu_law_encoding\"}]", 250,
     false},
    {"[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":500,\"source\":\"record\"}]", 500, true},
};
#define FUZZ_SPECS BASE_ARRAY_LEN(fuzz_spec)

static struct pipeline_run *fuzz_run[FUZZ_SPECS];

/* false: this build decodes no sounds. */
static bool fuzz_init(void)
{
	for (unsigned i = 0; i < FUZZ_SPECS && !fuzz_run[i]; i++) {
		struct pipeline *pipeline; /* the run's, for ever */
		const struct pipeline *one;
		struct diag diag;

		if (pipeline_compile(fuzz_spec[i].text, strlen(fuzz_spec[i].text), &pipeline,
				     &diag) != 0) {
			if (strstr(diag.text, "--without-audio"))
				return false;
			abort();
		}
		one = pipeline;
		if (pipeline_run_new(&one, 1, &fuzz_run[i]) != 0)
			abort();
	}
	return true;
}

static void fuzz_check(unsigned spec, const float *audio, int64_t length)
{
	const int64_t frames = fuzz_spec[spec].frames;

	if (length < 0 || length > frames)
		abort();
	for (int64_t i = 0; i < FUZZ_FRAMES && fuzz_spec[spec].is_wave; i++)
		if (i % frames >= length && audio[i] != 0)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_Alignas(int64_t) float audio[FUZZ_FRAMES]; /* or half as many codes */
	int64_t label, length = -1;
	const struct pipeline_out out = {.field = {audio, &label, &length}};
	struct pipeline_key key = {1, 2, 3};
	struct pipeline_error error;
	uint8_t *copy;
	unsigned spec;

	if (size < 1 || size > 1 << 16 || !fuzz_init())
		return 0;
	spec = (data[0] & 7) % FUZZ_SPECS;
	key.sample = data[0] >> 3;
	copy = malloc(size - 1 ? size - 1 : 1);
	if (!copy)
		abort();
	memcpy(copy, data + 1, size - 1);
	if (pipeline_run_sample(fuzz_run[spec], 1, copy, size - 1, 7, &key, &out, &error) == 0)
		fuzz_check(spec, audio, length);
	free(copy);
	return 0;
}
