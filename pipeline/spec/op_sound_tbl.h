/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on waveforms and spectrograms, behind audio; a part of op_tbl.h. */

OP(VOL, "vol", wave_vol_op, "the waveform times a number, which may be drawn")
PARAM(VOL, GAIN, "gain", OP_TYPE_SPAN(-200, 1e6), NULL,
      "a number, or [least, most] of what is drawn from; from 0 on, of decibels -200 to 200")
PARAM(VOL, GAIN_TYPE, "gain_type", OP_TYPE_WORD(op_gain_words), "\"amplitude\"",
      "what it is: amplitude, power or db")
PARAM(VOL, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")
PARAM(VOL, CLAMP, "clamp", OP_TYPE_BOOL, "true",
      "true or false: is what is beyond -1 and 1 cut off there?")

OP(POLARITY_INVERSION, "polarity_inversion", wave_invert_op, "the waveform upside down, at random")
PARAM(POLARITY_INVERSION, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")

OP(FADE, "fade", wave_fade_op, "the sound grows louder at its begin, and quieter at its end")
PARAM(FADE, FADE_IN_LEN, "fade_in_len", OP_TYPE_INTEGER(0, 1 << 24), "0",
      "frames that it grows louder for, 0 to those of audio")
PARAM(FADE, FADE_OUT_LEN, "fade_out_len", OP_TYPE_INTEGER(0, 1 << 24), "0",
      "frames that it grows quieter for, 0 to those of audio")
PARAM(FADE, FADE_SHAPE, "fade_shape", OP_TYPE_WORD(op_fade_words), "\"linear\"",
      "how: linear, exponential, logarithmic, quarter_sine or half_sine")

OP(ADD_NOISE, "add_noise", wave_noise_op, "white noise is added to the waveform, drawn anew")
PARAM(ADD_NOISE, SNR, "snr", OP_TYPE_SPAN(-200, 200), NULL,
      "the sound's energy over the noise's in decibels, -200 to 200, or [least, most]")
PARAM(ADD_NOISE, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")

OP(PREEMPHASIS, "preemphasis", wave_preemphasis_op,
   "from each number of the waveform a share of the one before it is taken")
PARAM(PREEMPHASIS, COEFF, "coeff", OP_TYPE_NUMBER(-1, 1), "0.97", "the share, -1 to 1")

OP(LOW_PASS, "low_pass", wave_low_op, "high frequencies are weakened, by a filter of second order")
PARAM(LOW_PASS, CUTOFF_FREQ, "cutoff_freq", OP_TYPE_SPAN(1, 384000), NULL,
      "the frequency in Hz where that begins, 1 to half of sample_rate, or [least, most]")
PARAM(LOW_PASS, Q, "Q", OP_TYPE_NUMBER(0.01, 100), "0.707", "the filter's quality, 0.01 to 100")
PARAM(LOW_PASS, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")

OP(HIGH_PASS, "high_pass", wave_high_op,
   "low frequencies are weakened, by a filter of second order")
PARAM(HIGH_PASS, CUTOFF_FREQ, "cutoff_freq", OP_TYPE_SPAN(1, 384000), NULL,
      "the frequency in Hz where that ends, 1 to half of sample_rate, or [least, most]")
PARAM(HIGH_PASS, Q, "Q", OP_TYPE_NUMBER(0.01, 100), "0.707", "the filter's quality, 0.01 to 100")
PARAM(HIGH_PASS, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")

OP(STANDARDIZE, "standardize", wave_standardize_op,
   "the waveform gets the mean 0 and the variance 1, each sound for itself")
PARAM(STANDARDIZE, EPS, "eps", OP_TYPE_NUMBER(0, 1), "1e-7",
      "what is added to the variance, 0 to 1")

OP(MU_LAW_ENCODING, "mu_law_encoding", wave_mu_law_op,
   "each number of the waveform becomes a whole one, finer where it is quiet")
PARAM(MU_LAW_ENCODING, QUANTIZATION_CHANNELS, "quantization_channels", OP_TYPE_INTEGER(2, 65536),
      "256", "how many there are, 2 to 65536")

OP(SPECTROGRAM, "spectrogram", mel_bins_op,
   "the waveform becomes the powers of its frequencies, window by window")
PARAM(SPECTROGRAM, N_FFT, "n_fft", OP_TYPE_INTEGER(16, 16384), "400",
      "the length of the transform in frames of the waveform: an even product of 2, 3 and 5, 16 to "
      "16384")
PARAM(SPECTROGRAM, WIN_LENGTH, "win_length", OP_OR_NULL(OP_TYPE_INTEGER(2, 16384)), "null",
      "the length of Hann's window in it, 2 to n_fft; or null: n_fft")
PARAM(SPECTROGRAM, HOP_LENGTH, "hop_length", OP_OR_NULL(OP_TYPE_INTEGER(1, 1 << 24)), "null",
      "frames of the waveform from window to window, 1 to 16777216; or null: half of win_length")
PARAM(SPECTROGRAM, POWER, "power", OP_TYPE_INTEGER(1, 2), "2", "1 for magnitudes, 2 for powers")
PARAM(SPECTROGRAM, CENTER, "center", OP_TYPE_BOOL, "true",
      "true or false: does the sound, reflected at its ends, have the first window around its "
      "first frame?")

OP(MEL_SPECTROGRAM, "mel_spectrogram", mel_op,
   "the waveform becomes the energies of bands of frequencies, window by window")
PARAM(MEL_SPECTROGRAM, N_FFT, "n_fft", OP_TYPE_INTEGER(16, 16384), "400",
      "the length of the transform in frames of the waveform: an even product of 2, 3 and 5, 16 to "
      "16384")
PARAM(MEL_SPECTROGRAM, WIN_LENGTH, "win_length", OP_OR_NULL(OP_TYPE_INTEGER(2, 16384)), "null",
      "the length of Hann's window in it, 2 to n_fft; or null: n_fft")
PARAM(MEL_SPECTROGRAM, HOP_LENGTH, "hop_length", OP_OR_NULL(OP_TYPE_INTEGER(1, 1 << 24)), "null",
      "frames of the waveform from window to window, 1 to 16777216; or null: half of win_length")
PARAM(MEL_SPECTROGRAM, F_MIN, "f_min", OP_TYPE_NUMBER(0, 384000), "0",
      "the lowest frequency in Hz, from 0 on")
PARAM(MEL_SPECTROGRAM, F_MAX, "f_max", OP_OR_NULL(OP_TYPE_NUMBER(0, 384000)), "null",
      "the highest one, above f_min; or null: half of sample_rate")
PARAM(MEL_SPECTROGRAM, N_MELS, "n_mels", OP_TYPE_INTEGER(1, 1024), "128",
      "how many bands there are, 1 to 1024")
PARAM(MEL_SPECTROGRAM, POWER, "power", OP_TYPE_INTEGER(1, 2), "2", "1 for magnitudes, 2 for powers")
PARAM(MEL_SPECTROGRAM, CENTER, "center", OP_TYPE_BOOL, "true",
      "true or false: does the sound, reflected at its ends, have the first window around its "
      "first frame?")
PARAM(MEL_SPECTROGRAM, NORM, "norm", OP_OR_NULL(OP_TYPE_WORD(op_norm_words)), "null",
      "slaney: bands are divided by their width; or null")
PARAM(MEL_SPECTROGRAM, MEL_SCALE, "mel_scale", OP_TYPE_WORD(op_scale_words), "\"htk\"",
      "where the bands are: htk or slaney")
PARAM(MEL_SPECTROGRAM, LOG, "log", OP_OR_NULL(OP_TYPE_WORD(op_log_words)), "null",
      "the logarithm of what is at least 1e-10: ln, log10, db or whisper; or null: none")

OP(AMPLITUDE_TO_DB, "amplitude_to_db", mel_decibels_op, "a spectrogram in decibels")
PARAM(AMPLITUDE_TO_DB, STYPE, "stype", OP_TYPE_WORD(op_stype_words), "\"power\"",
      "what the spectrogram has: power or magnitude")
PARAM(AMPLITUDE_TO_DB, TOP_DB, "top_db", OP_OR_NULL(OP_TYPE_NUMBER(0, 1000)), "null",
      "what is so many decibels below the loudest of the sound, 0 to 1000, is raised to that; or "
      "null")

OP(MFCC, "mfcc", mel_cepstra_op, "the cosine transform of mel_spectrogram's bands in decibels")
PARAM(MFCC, N_MFCC, "n_mfcc", OP_TYPE_INTEGER(1, 1024), "40",
      "how many coefficients there are, 1 to n_mels")
PARAM(MFCC, NORM, "norm", OP_OR_NULL(OP_TYPE_WORD(op_ortho_words)), "\"ortho\"",
      "ortho: the transform is orthonormal; or null")
PARAM(MFCC, LOG_MELS, "log_mels", OP_TYPE_BOOL, "false",
      "true or false: is it of ln(band + 1e-6), in place of decibels?")

OP(TIME_MASKING, "time_masking", mel_times_op,
   "frames of a spectrogram in a row, drawn at random, are masked")
PARAM(TIME_MASKING, TIME_MASK_PARAM, "time_mask_param", OP_TYPE_INTEGER(0, 1 << 24), NULL,
      "the most frames that are masked, from 0 on")
PARAM(TIME_MASKING, P, "p", OP_TYPE_CHANCE, "1", "the share of all frames that is masked at most")
PARAM(TIME_MASKING, MASK_VALUE, "mask_value", OP_TYPE_NUMBER(-1e6, 1e6), "0",
      "the number that stands there then, -1000000 to 1000000")

OP(FREQUENCY_MASKING, "frequency_masking", mel_frequencies_op,
   "bands of a spectrogram side by side, drawn at random, are masked")
PARAM(FREQUENCY_MASKING, FREQ_MASK_PARAM, "freq_mask_param", OP_TYPE_INTEGER(0, 1024), NULL,
      "the most bands that are masked, 0 to 1024")
PARAM(FREQUENCY_MASKING, MASK_VALUE, "mask_value", OP_TYPE_NUMBER(-1e6, 1e6), "0",
      "the number that stands there then, -1000000 to 1000000")
