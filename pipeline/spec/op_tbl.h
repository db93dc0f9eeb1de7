/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every op and every parameter, once. Included several times, each time with other meanings of
 *
 *   OP(ident, name, impl, help)
 *   PARAM(op, ident, name, type, default, help)
 *
 * A parameter follows its op. impl is the op's struct op_impl (op_run.h); type is one of op.h's,
 * with OP_OR_NULL() and OP_LATE() around it where they apply; default is the JSON text that stands
 * for a parameter left out, or NULL where it must be given. Names and defaults are
 * torchvision.transforms.v2's. help completes "give ..." in messages and the manual page.
 */

OP(DECODE, "decode", op_run_decode,
   "the picture's bytes become 8-bit RGB, as Pillow's convert(\"RGB\")")
PARAM(DECODE, EXIF_TRANSPOSE, "exif_transpose", OP_LATE(OP_TYPE_BOOL), "false",
      "true or false: is the picture turned as its EXIF orientation says?")
PARAM(DECODE, FAST, "fast", OP_LATE(OP_TYPE_BOOL), "false",
      "true or false: may a JPEG be decoded smaller, and its pixels differ a little, where the "
      "next op "
      "shrinks it?")
PARAM(DECODE, SOURCE, "source", OP_LATE(OP_TYPE_WORD(op_source_words)), "\"file\"",
      "file; or record, random_record: the picture of a wrapped data set's sample, which is the "
      "same, "
      "or another, whenever it is asked for")
PARAM(DECODE, FIELDS, "fields", OP_LATE(OP_OR_NULL(OP_TYPE_LISTS(1, INT32_MAX))), "null",
      "with source record: a list for each field of the sample beside picture and label, as record "
      "has them; or null")
PARAM(DECODE, KINDS, "kinds", OP_LATE(OP_OR_NULL(OP_TYPE_LIST(0, 10))), "null",
      "of each of fields, as record has them; 3: boxes on the picture, which follow its ops; 4: "
      "ragged, with a row for each box; 5: a mask, a picture of labels, which follows, too; 6: the "
      "same, with Pillow's nearest; 7: key points, which follow, too, with a row for each box; 8: "
      "another picture, which follows; 9: the same, without ops on colours; 10: a file that a view "
      "of its name decodes; or null")
PARAM(DECODE, NAMES, "names", OP_LATE(OP_OR_NULL(OP_TYPE_NAMES)), "null",
      "of each of fields; or null")
PARAM(
    DECODE, MEMBERS, "members", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
    "of a sample of shards that were opened with ?members=all: the suffixes of the picture's "
    "file (\"jpg;png\"), its feature or column, then that of each of fields, or a key of its JSON "
    "(\"json:boxes\"); or null")
PARAM(DECODE, COLORS, "colors", OP_LATE(OP_OR_NULL(OP_TYPE_LISTS(0, UINT16_MAX))), "null",
      "of masks in colours: [red, green, blue] of each label from 0 on, or [red, green, blue, "
      "label]; or null: masks are grey or have a palette")
PARAM(DECODE, COLUMNS, "columns", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "with members of MDS shards: all columns that they have, as their index.json and the option "
      "?columns= say (\"NAME:ENCODING\"); or null")
PARAM(
    DECODE, FLIP_INDICES, "flip_indices", OP_LATE(OP_OR_NULL(OP_TYPE_LIST(0, UINT16_MAX))), "null",
    "of each key point of a row, from 0: which one it is when the picture is mirrored, as the left "
    "eye is the right one then; or null: it stays what it is")
PARAM(
    DECODE, ONLY_SIZE, "only_size", OP_LATE(OP_TYPE_BOOL), "false",
    "true or false: does the picture's size, int64 [height, width], take the place of its pixels, "
    "which are not decoded then?")

OP(RECORD, "record", packed_op, "a wrapped data set's sample, its fields as they are")
PARAM(RECORD, FIELDS, "fields", OP_TYPE_LISTS(1, INT32_MAX), NULL,
      "a list for each field: its dtype (1 uint8, 2 float16, 3 float32, 4 int64, 5 bfloat16, 6 "
      "int8, 7 int16, 8 int32, 9 uint16, 10 uint32, 11 uint64, 12 float64, 13 bool) and its shape")
PARAM(RECORD, KINDS, "kinds", OP_LATE(OP_OR_NULL(OP_TYPE_LIST(0, 2))), "null",
      "of each field: 0 dense; 1 ragged: the first dimension is the most that a sample has; 2 a "
      "ragged text; or null, all are dense")
PARAM(RECORD, NAMES, "names", OP_LATE(OP_OR_NULL(OP_TYPE_NAMES)), "null",
      "of each field; or null for image, label, field2, ...")
PARAM(RECORD, RANDOM, "random", OP_TYPE_BOOL, "true",
      "true or false: is a sample another one each time that it is asked for?")
PARAM(RECORD, MEMBERS, "members", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "of a sample of shards that were opened with ?members=all: the file of each of fields, "
      "as decode has it; or null")
PARAM(RECORD, COLUMNS, "columns", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "with members of MDS shards: all of their columns, as decode has them; or null")

OP(AUDIO, "audio", sound_op, "the sound's bytes become float32 of one rate and length")
PARAM(AUDIO, SAMPLE_RATE, "sample_rate", OP_TYPE_INTEGER(1000, 768000), NULL,
      "frames a second, to which every sound is resampled, 1000 to 768000")
PARAM(
    AUDIO, FRAMES, "frames", OP_TYPE_INTEGER(1, 1 << 24), NULL,
    "how many frames each sound has, 1 to 16777216: a part of a longer one, zeros behind a shorter "
    "one")
PARAM(AUDIO, CHANNELS, "channels", OP_OR_NULL(OP_TYPE_INTEGER(1, 16)), "null",
      "how many channels come out, 1 to 16, in a dimension before the frames; or null: the mean of "
      "all, "
      "and no such dimension")
PARAM(AUDIO, CROP, "crop", OP_TYPE_WORD(op_crop_words), "\"random\"",
      "which part of a longer sound: random, center or begin")
PARAM(AUDIO, SOURCE, "source", OP_LATE(OP_TYPE_WORD(op_source_words)), "\"file\"",
      "file; or record, random_record: the sound of a wrapped data set's sample, as decode has it")
PARAM(AUDIO, FIELDS, "fields", OP_LATE(OP_OR_NULL(OP_TYPE_LISTS(1, INT32_MAX))), "null",
      "a list for each field of the sample beside sound and label, as record has them; or null")
PARAM(AUDIO, KINDS, "kinds", OP_LATE(OP_OR_NULL(OP_TYPE_LIST(0, 10))), "null",
      "of each of fields, as record has them; or null")
PARAM(AUDIO, NAMES, "names", OP_LATE(OP_OR_NULL(OP_TYPE_NAMES)), "null",
      "of each of fields; or null")
PARAM(AUDIO, MEMBERS, "members", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "of a sample of shards that were opened with ?members=all: the suffixes of the sound's file "
      "(\"flac;wav\"), its feature or column, then those of fields, as decode has them; or null")
PARAM(AUDIO, COLUMNS, "columns", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "with members of MDS shards: all of their columns, as decode has them; or null")
PARAM(AUDIO, SPEEDS, "speeds", OP_LATE(OP_OR_NULL(OP_TYPE_NUMBERS(0.1, 10))), "null",
      "how fast sounds are played, 0.1 to 10, a list of up to 16 that one is drawn from; or null: "
      "as they are")

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

OP(CLOUD, "cloud", cloud_op, "the file's points become rows of float32, as many for each file")
PARAM(CLOUD, POINTS, "points", OP_TYPE_INTEGER(1, 1 << 20), NULL,
      "how many points come out, 1 to 1048576: a part of those of a larger file")
PARAM(CLOUD, CHANNELS, "channels", OP_OR_NULL(OP_TYPE_INTEGER(3, 32)), "null",
      "numbers of each point, 3 to 32, the first ones of the file, or its properties; the first "
      "three are x, y and "
      "z; or null: as many as there are properties, or 3")
PARAM(CLOUD, PROPERTIES, "properties", OP_OR_NULL(OP_TYPE_TEXTS), "null",
      "names of a PLY's or PCD's properties, one for each channel; or null: the file's first ones")
PARAM(CLOUD, RAW_COLUMNS, "raw_columns", OP_OR_NULL(OP_TYPE_INTEGER(3, 64)), "null",
      "of files that are nothing but float32, how many a point has, 3 to 64; or null: such files "
      "are bad")
PARAM(CLOUD, NORMALS, "normals", OP_OR_NULL(OP_TYPE_INTEGER(3, 29)), "null",
      "the channel, from 0, that is a normal's x, before its y and z, which turn and flip with the "
      "points; or null")
PARAM(CLOUD, PICK, "pick", OP_TYPE_WORD(op_pick_words), "\"random\"",
      "which points of a larger file: random, even or first")
PARAM(CLOUD, PADDING, "padding", OP_TYPE_WORD(op_padding_words), "\"repeat\"",
      "what is behind the points of a smaller one: repeat (the same ones again), zero; or ragged: "
      "the field is so long "
      "as there are points")
PARAM(CLOUD, SOURCE, "source", OP_TYPE_WORD(op_source_words), "\"file\"",
      "file; or record, random_record: the points of a wrapped data set's sample, as decode has it")
PARAM(CLOUD, FIELDS, "fields", OP_OR_NULL(OP_TYPE_LISTS(1, INT32_MAX)), "null",
      "a list for each field of the sample beside points and label, as record has them; or null")
PARAM(CLOUD, KINDS, "kinds", OP_OR_NULL(OP_TYPE_LIST(0, 11)), "null",
      "of each of fields, 0 to 2 and 10 as record has them; 11: boxes in space, which follow the "
      "points; "
      "4: ragged, with a row for each box; or null")
PARAM(CLOUD, NAMES, "names", OP_OR_NULL(OP_TYPE_NAMES), "null", "of each of fields; or null")
PARAM(CLOUD, MEMBERS, "members", OP_OR_NULL(OP_TYPE_TEXTS), "null",
      "of a sample of shards that were opened with ?members=all: the suffixes of the points' file "
      "(\"ply;bin\"), its feature or column, then those of fields, as decode has them; or null")
PARAM(CLOUD, COLUMNS, "columns", OP_OR_NULL(OP_TYPE_TEXTS), "null",
      "with members of MDS shards: all of their columns, as decode has them; or null")

OP(DURATION, "duration", duration_op, "how long the sound or video is, which is not decoded")
PARAM(DURATION, OF, "of", OP_TYPE_WORD(op_medium_words), "\"sound\"",
      "sound or video: which of the two is measured of a file that has both")
PARAM(DURATION, SOURCE, "source", OP_TYPE_WORD(op_source_words), "\"file\"",
      "file; or record, random_record: of a wrapped data set's sample, as decode has it")
PARAM(DURATION, FIELDS, "fields", OP_OR_NULL(OP_TYPE_LISTS(1, INT32_MAX)), "null",
      "a list for each field of the sample beside file and label, as record has them; or null")
PARAM(DURATION, KINDS, "kinds", OP_OR_NULL(OP_TYPE_LIST(0, 2)), "null",
      "of each of fields, as record has them; or null")
PARAM(DURATION, NAMES, "names", OP_OR_NULL(OP_TYPE_NAMES), "null", "of each of fields; or null")
PARAM(DURATION, MEMBERS, "members", OP_OR_NULL(OP_TYPE_TEXTS), "null",
      "of a sample of shards that were opened with ?members=all: the suffixes of the file "
      "(\"flac;wav\"), its feature or column, then those of fields, as decode has them; or null")
PARAM(DURATION, COLUMNS, "columns", OP_OR_NULL(OP_TYPE_TEXTS), "null",
      "with members of MDS shards: all of their columns, as decode has them; or null")

OP(POINT_RANGE, "point_range", cloud_range_op, "points outside of a box are left out")
PARAM(POINT_RANGE, RANGE, "range", OP_TYPE_NUMBERS(-1e6, 1e6), NULL,
      "x, y and z of its least corner and then of its most, six numbers; its faces are in it")

OP(POINT_SAMPLE, "point_sample", cloud_sample_op, "of more points a part is taken")
PARAM(POINT_SAMPLE, POINTS, "points", OP_TYPE_INTEGER(1, 1 << 20), NULL,
      "the most points that are left, 1 to 1048576, and so many come out")
PARAM(POINT_SAMPLE, PICK, "pick", OP_TYPE_WORD(op_pick_words), "\"random\"",
      "which: random, even or first")

OP(POINT_ROTATION, "point_rotation", cloud_rotation_op,
   "the points turn about an axis, by an angle that is drawn")
PARAM(POINT_ROTATION, DEGREES, "degrees", OP_TYPE_AROUND_0(360), "180",
      "[least, most], or a number x for [-x, x], up to 360; counter-clockwise against the axis")
PARAM(POINT_ROTATION, AXIS, "axis", OP_TYPE_WORD(op_axis_words), "\"z\"",
      "x, y or z; or any: each rotation alike")
PARAM(POINT_ROTATION, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")

OP(POINT_FLIP, "point_flip", cloud_flip_op, "a coordinate of all points is negated, at random")
PARAM(POINT_FLIP, AXIS, "axis", OP_TYPE_WORD(op_flip_words), NULL, "which: x, y or z")
PARAM(POINT_FLIP, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")

OP(POINT_SCALE, "point_scale", cloud_scale_op, "x, y and z times a number that is drawn")
PARAM(POINT_SCALE, SCALE, "scale", OP_TYPE_SPAN(1e-6, 1e6), "[0.95, 1.05]",
      "it, or [least, most], 0.000001 to 1000000")
PARAM(POINT_SCALE, ANISOTROPIC, "anisotropic", OP_TYPE_BOOL, "false",
      "true or false: is one drawn for each of x, y and z?")
PARAM(POINT_SCALE, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")

OP(POINT_TRANSLATION, "point_translation", cloud_translation_op,
   "all points move by what is drawn of each axis")
PARAM(POINT_TRANSLATION, TRANSLATE, "translate", OP_TYPE_NUMBERS(0, 1e6), NULL,
      "how far at most, in both directions: a number, or one for each of x, y and z, 0 to 1000000")
PARAM(POINT_TRANSLATION, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")

OP(POINT_JITTER, "point_jitter", cloud_jitter_op,
   "each point moves a little, by normal noise on x, y and z")
PARAM(POINT_JITTER, SIGMA, "sigma", OP_TYPE_NUMBER(0, 1e6), "0.01",
      "the noise's standard deviation, 0 to 1000000")
PARAM(POINT_JITTER, CLIP, "clip", OP_OR_NULL(OP_TYPE_NUMBER(0, 1e6)), "0.05",
      "what it is cut off at, 0 to 1000000; or null")
PARAM(POINT_JITTER, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")

OP(POINT_DROPOUT, "point_dropout", cloud_dropout_op,
   "each point is left out with a probability that is drawn")
PARAM(POINT_DROPOUT, RATIO, "ratio", OP_TYPE_SPAN(0, 1), "[0, 0.875]",
      "it, or [least, most], 0 to 1")
PARAM(POINT_DROPOUT, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")

OP(POINT_SHUFFLE, "point_shuffle", cloud_shuffle_op, "the points come in random order")

OP(POINT_CENTER, "point_center", cloud_center_op, "the points' middle becomes 0")
PARAM(POINT_CENTER, BY, "by", OP_TYPE_WORD(op_middle_words), "\"mean\"",
      "what that is: mean, or box, the middle of the least and the most of each of x, y and z")

OP(POINT_UNIT, "point_unit", cloud_unit_op,
   "the points' mean becomes 0, and the farthest point is 1 away")
PARAM(POINT_UNIT, TO, "to", OP_TYPE_WORD(op_unit_words), "\"sphere\"",
      "how far is told: sphere, or cube, by the most of |x|, |y| and |z|")

OP(VIDEO, "video", video_op,
   "frames of the video become 8-bit RGB pictures, a clip of them; ops on pictures draw once for "
   "all")
PARAM(VIDEO, FRAMES, "frames", OP_TYPE_INTEGER(1, 1024), NULL,
      "how many frames each clip has, 1 to 1024; of a shorter video the last one is repeated")
PARAM(VIDEO, STEP, "step", OP_TYPE_INTEGER(1, 65536), "1",
      "each so many-th frame of the video, 1 to 65536")
PARAM(VIDEO, FPS, "fps", OP_OR_NULL(OP_TYPE_NUMBER(0.001, 1000)), "null",
      "frames a second of the video's time, 0.001 to 1000, in place of step: each the last one "
      "that is "
      "shown by then; or null")
PARAM(VIDEO, CLIP, "clip", OP_TYPE_WORD(op_clip_words), "\"random\"",
      "which part of a longer video: random, center or begin; or spread: the middles of so many "
      "equal "
      "parts of all of it")
PARAM(VIDEO, SOURCE, "source", OP_LATE(OP_TYPE_WORD(op_source_words)), "\"file\"",
      "file; or record, random_record: the video of a wrapped data set's sample, as decode has it")
PARAM(VIDEO, FIELDS, "fields", OP_LATE(OP_OR_NULL(OP_TYPE_LISTS(1, INT32_MAX))), "null",
      "a list for each field of the sample beside video and label, as record has them; or null")
PARAM(VIDEO, KINDS, "kinds", OP_LATE(OP_OR_NULL(OP_TYPE_LIST(0, 10))), "null",
      "of each of fields, as record has them; or null")
PARAM(VIDEO, NAMES, "names", OP_LATE(OP_OR_NULL(OP_TYPE_NAMES)), "null",
      "of each of fields; or null")
PARAM(VIDEO, MEMBERS, "members", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "of a sample of shards that were opened with ?members=all: the suffixes of the video's file "
      "(\"mp4;webm\"), its feature or column, then those of fields, as decode has them; or null")
PARAM(VIDEO, COLUMNS, "columns", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "with members of MDS shards: all of their columns, as decode has them; or null")

OP(BANDS, "bands", bands_op,
   "the file's numbers become float32, a picture of as many channels as there are")
PARAM(BANDS, CHANNELS, "channels", OP_OR_NULL(OP_TYPE_INTEGER(1, 32)), "null",
      "how many channels each file has, 1 to 32; or null, with bands")
PARAM(
    BANDS, BANDS, "bands", OP_OR_NULL(OP_TYPE_LIST(0, 4095)), "null",
    "which of the file's channels, counted from 0, 1 to 32 of them in the order of the output; or "
    "null: all")
PARAM(BANDS, SCALE, "scale", OP_TYPE_NUMBER(-1e9, 1e9), "1", "what each number is multiplied by")
PARAM(BANDS, CLAMP, "clamp", OP_OR_NULL(OP_TYPE_PAIR(-1e9, 1e9)), "null",
      "[least, most] of the numbers then: what is beyond becomes that; or null")
PARAM(BANDS, SOURCE, "source", OP_LATE(OP_TYPE_WORD(op_source_words)), "\"file\"",
      "file; or record, random_record: the file of a wrapped data set's sample, as decode has it")
PARAM(BANDS, FIELDS, "fields", OP_LATE(OP_OR_NULL(OP_TYPE_LISTS(1, INT32_MAX))), "null",
      "a list for each field of the sample beside image and label, as record has them; or null")
PARAM(BANDS, KINDS, "kinds", OP_LATE(OP_OR_NULL(OP_TYPE_LIST(0, 10))), "null",
      "of each of fields, as decode has them; or null")
PARAM(BANDS, NAMES, "names", OP_LATE(OP_OR_NULL(OP_TYPE_NAMES)), "null",
      "of each of fields; or null")
PARAM(BANDS, MEMBERS, "members", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "of a sample of shards that were opened with ?members=all: the suffixes of the file "
      "(\"tif;png\"), its feature or column, then those of fields, as decode has them; or null")
PARAM(BANDS, COLORS, "colors", OP_LATE(OP_OR_NULL(OP_TYPE_LISTS(0, UINT16_MAX))), "null",
      "of masks in colours, as decode has them; or null")
PARAM(BANDS, COLUMNS, "columns", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "with members of MDS shards: all of their columns, as decode has them; or null")
PARAM(BANDS, FLIP_INDICES, "flip_indices", OP_LATE(OP_OR_NULL(OP_TYPE_LIST(0, UINT16_MAX))), "null",
      "of key points, as decode has them; or null")
PARAM(
    BANDS, INVERT, "invert", OP_LATE(OP_TYPE_BOOL), "false",
    "true: of DICOM files whose least number is white (MONOCHROME1) the stored numbers are turned "
    "round; or false")

OP(VOLUME, "volume", volume_op,
   "the file's numbers become float32 of three dimensions: its slices are one volume")
PARAM(VOLUME, CHANNELS, "channels", OP_TYPE_INTEGER(1, 32), "1",
      "how many volumes each file has, 1 to 32")
PARAM(VOLUME, SCALE, "scale", OP_TYPE_NUMBER(-1e9, 1e9), "1", "what each number is multiplied by")
PARAM(VOLUME, CLAMP, "clamp", OP_OR_NULL(OP_TYPE_PAIR(-1e9, 1e9)), "null",
      "[least, most] of the numbers then: what is beyond becomes that; or null")
PARAM(VOLUME, FILL, "fill", OP_TYPE_NUMBER(-1e9, 1e9), "0",
      "the number of what is outside, where a crop is larger than the volume")
PARAM(VOLUME, INVERT, "invert", OP_TYPE_BOOL, "false", "true or false, as bands has it")
PARAM(VOLUME, SOURCE, "source", OP_LATE(OP_TYPE_WORD(op_source_words)), "\"file\"",
      "file; or record, random_record: the file of a wrapped data set's sample, as decode has it")
PARAM(VOLUME, FIELDS, "fields", OP_LATE(OP_OR_NULL(OP_TYPE_LISTS(1, INT32_MAX))), "null",
      "a list for each field of the sample beside image and label, as record has them; or null")
PARAM(VOLUME, KINDS, "kinds", OP_LATE(OP_OR_NULL(OP_TYPE_LIST(0, 10))), "null",
      "of each of fields, 0 to 2 as record has them; 5: a volume of labels, which follows; or null")
PARAM(VOLUME, NAMES, "names", OP_LATE(OP_OR_NULL(OP_TYPE_NAMES)), "null",
      "of each of fields; or null")
PARAM(VOLUME, MEMBERS, "members", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "of a sample of shards that were opened with ?members=all: the suffixes of the file "
      "(\"nii;nii.gz\"), its feature or column, then those of fields, as decode has them; or null")
PARAM(VOLUME, COLUMNS, "columns", OP_LATE(OP_OR_NULL(OP_TYPE_TEXTS)), "null",
      "with members of MDS shards: all of their columns, as decode has them; or null")

OP(RANDOM_CROP_3D, "random_crop_3d", volume_random_crop_op,
   "a part of the volume at a random place")
PARAM(RANDOM_CROP_3D, SIZE, "size", OP_TYPE_WHOLES(1, OP_MAX_SIDE), NULL,
      "the output's side, or [depth, height, width]")

OP(CENTER_CROP_3D, "center_crop_3d", volume_center_crop_op, "the middle of the volume")
PARAM(CENTER_CROP_3D, SIZE, "size", OP_TYPE_WHOLES(1, OP_MAX_SIDE), NULL,
      "the output's side, or [depth, height, width]")

OP(RANDOM_CROP_BY_LABEL, "random_crop_by_label", volume_label_crop_op,
   "a part of the volume around a random place that has a label, or around one that has none")
PARAM(RANDOM_CROP_BY_LABEL, SIZE, "size", OP_TYPE_WHOLES(1, OP_MAX_SIDE), NULL,
      "the output's side, or [depth, height, width]")
PARAM(RANDOM_CROP_BY_LABEL, POS, "pos", OP_TYPE_NUMBER(0, 1e6), "1",
      "pos / (pos + neg) is the probability of a place with a label above 0")
PARAM(RANDOM_CROP_BY_LABEL, NEG, "neg", OP_TYPE_NUMBER(0, 1e6), "1",
      "neg / (pos + neg) is that of a place without one")

OP(RANDOM_FLIP_3D, "random_flip_3d", volume_flip_op, "the volume's axes reversed, at random")
PARAM(RANDOM_FLIP_3D, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(RANDOM_FLIP_3D, AXES, "axes", OP_TYPE_WHOLES(0, 2), NULL,
      "one of 0 (depth), 1 (height) and 2 (width), or a list of them, which are reversed together")

OP(RANDOM_ROTATE90, "random_rotate90", volume_rotate_op,
   "the volume turned by a quarter, a half or three quarters, at random")
PARAM(RANDOM_ROTATE90, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(RANDOM_ROTATE90, AXES, "axes", OP_TYPE_WHOLES(0, 2), "[1, 2]",
      "two of 0 (depth), 1 (height) and 2 (width): from the first one towards the second")

OP(RANDOM_SCALE_INTENSITY, "random_scale_intensity", volume_scale_op,
   "the volume's numbers times 1 + a drawn factor")
PARAM(RANDOM_SCALE_INTENSITY, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")
PARAM(RANDOM_SCALE_INTENSITY, FACTORS, "factors", OP_TYPE_AROUND_0(1e6), NULL,
      "[least, most] of the factor, or x for [-x, x]")

OP(RANDOM_SHIFT_INTENSITY, "random_shift_intensity", volume_shift_op,
   "a drawn number is added to the volume's")
PARAM(RANDOM_SHIFT_INTENSITY, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")
PARAM(RANDOM_SHIFT_INTENSITY, OFFSETS, "offsets", OP_TYPE_AROUND_0(1e9), NULL,
      "[least, most] of it, or x for [-x, x]")

OP(RANDOM_RESIZED_CROP, "random_resized_crop", crop_resized_op,
   "a random part of the picture, resized")
PARAM(RANDOM_RESIZED_CROP, SIZE, "size", OP_TYPE_SIZE, NULL,
      "the output's side in pixels, or [height, width]")
PARAM(RANDOM_RESIZED_CROP, SCALE, "scale", OP_TYPE_RANGE, "[0.08, 1]",
      "[least, most] share of the picture's area, 0 < least <= most")
PARAM(RANDOM_RESIZED_CROP, RATIO, "ratio", OP_TYPE_RANGE, "[0.75, 1.3333333333333333]",
      "[least, most] width over height of the part, 0 < least <= most")
PARAM(RANDOM_RESIZED_CROP, INTERPOLATION, "interpolation", OP_TYPE_FILTER, "\"bilinear\"",
      "the filter: nearest, box, bilinear, hamming, bicubic or lanczos")
PARAM(RANDOM_RESIZED_CROP, OR_INTERPOLATION, "or_interpolation",
      OP_LATE(OP_OR_NULL(OP_TYPE_FILTER)), "null",
      "another filter, drawn for half of the samples; or null")

OP(RESIZE, "resize", scale_op, "the picture in another size")
PARAM(RESIZE, SIZE, "size", OP_OR_NULL(OP_TYPE_SIDE), NULL,
      "the shorter side in pixels, or [height, width]; or null, with max_size")
PARAM(RESIZE, INTERPOLATION, "interpolation", OP_TYPE_FILTER, "\"bilinear\"",
      "the filter: nearest, box, bilinear, hamming, bicubic or lanczos")
PARAM(RESIZE, MAX_SIZE, "max_size", OP_LATE(OP_OR_NULL(OP_TYPE_INTEGER(1, OP_MAX_SIDE))), "null",
      "the most that the longer side gets, in pixels, beside one number as size; or null")
PARAM(RESIZE, ANTIALIAS, "antialias", OP_LATE(OP_TYPE_BOOL), "true",
      "true: Pillow's pictures are always resized so")
PARAM(RESIZE, FIT, "fit", OP_LATE(OP_TYPE_WORD(op_fit_words)), "\"exact\"",
      "what [height, width] means: exact; or, the proportion kept, cover (no side is shorter) or "
      "contain (no side is longer)")

OP(SCALE_JITTER, "scale_jitter", scale_drawn_op,
   "the picture in a size drawn around what fits a target, its proportion kept")
PARAM(SCALE_JITTER, TARGET_SIZE, "target_size", OP_TYPE_SIZE, NULL,
      "the target's side in pixels, or [height, width]")
PARAM(SCALE_JITTER, INTERPOLATION, "interpolation", OP_TYPE_FILTER, "\"bilinear\"",
      "the filter: nearest, box, bilinear, hamming, bicubic or lanczos")
PARAM(SCALE_JITTER, SCALE_RANGE, "scale_range", OP_TYPE_PAIR(0.001, 1000), "[0.1, 2]",
      "[least, most] of what the size that fits is multiplied by, from 0.001 to 1000")

OP(RANDOM_SHORTEST_SIZE, "random_shortest_size", scale_drawn_op,
   "the picture in another size, whose shorter side is drawn from a list")
PARAM(RANDOM_SHORTEST_SIZE, MIN_SIZE, "min_size", OP_TYPE_WHOLES(1, OP_MAX_SIDE), NULL,
      "the shorter side in pixels, or a list of up to 16 to draw from")
PARAM(RANDOM_SHORTEST_SIZE, INTERPOLATION, "interpolation", OP_TYPE_FILTER, "\"bilinear\"",
      "the filter: nearest, box, bilinear, hamming, bicubic or lanczos")
PARAM(RANDOM_SHORTEST_SIZE, MAX_SIZE, "max_size", OP_OR_NULL(OP_TYPE_INTEGER(1, OP_MAX_SIDE)),
      "null", "the most that the longer side gets, in pixels; or null")

OP(RANDOM_RESIZE, "random_resize", scale_drawn_op,
   "the picture in another size, whose shorter side is drawn")
PARAM(RANDOM_RESIZE, MIN_SIZE, "min_size", OP_TYPE_INTEGER(1, OP_MAX_SIDE), NULL,
      "the least that the shorter side gets, in pixels")
PARAM(RANDOM_RESIZE, INTERPOLATION, "interpolation", OP_TYPE_FILTER, "\"bilinear\"",
      "the filter: nearest, box, bilinear, hamming, bicubic or lanczos")
PARAM(RANDOM_RESIZE, MAX_SIZE, "max_size", OP_TYPE_INTEGER(2, OP_MAX_SIDE), NULL,
      "one pixel more than the most that it gets")

OP(PATCHES, "patches", patches_op,
   "the picture in a size near its own proportion, as a sequence of square patches")
PARAM(PATCHES, PATCH_SIZE, "patch_size", OP_TYPE_INTEGER(1, 64), "16",
      "the side of a patch in pixels, 1 to 64")
PARAM(PATCHES, INTERPOLATION, "interpolation", OP_TYPE_FILTER, "\"bilinear\"",
      "the filter: nearest, box, bilinear, hamming, bicubic or lanczos")
PARAM(PATCHES, MAX_PATCHES, "max_patches", OP_OR_NULL(OP_TYPE_INTEGER(1, 65536)), "null",
      "the most patches that a picture gets, 1 to 65536, as many as fit: NaFlex's; or null, with "
      "max_pixels")
PARAM(PATCHES, MAX_PIXELS, "max_pixels", OP_OR_NULL(OP_TYPE_INTEGER(1, OP_MAX_PIXELS)), "null",
      "the most pixels that a picture keeps, no less than a block of patches has: Qwen2-VL's; or "
      "null, with max_patches")
PARAM(PATCHES, MIN_PIXELS, "min_pixels", OP_TYPE_INTEGER(1, OP_MAX_PIXELS), "3136",
      "with max_pixels: a picture of fewer pixels is enlarged")
PARAM(PATCHES, MERGE_SIZE, "merge_size", OP_TYPE_INTEGER(1, 16), "1",
      "with max_pixels: patches come in blocks of so many by so many, 1 to 16")
PARAM(PATCHES, TEMPORAL_PATCH_SIZE, "temporal_patch_size", OP_OR_NULL(OP_TYPE_INTEGER(1, 16)),
      "null",
      "how often a patch has the picture, as if it were so many frames, 1 to 16; the grid then "
      "begins with 1; or null: "
      "once")

OP(CENTER_CROP, "center_crop", crop_center_op,
   "the middle of the picture, black around where it is smaller")
PARAM(CENTER_CROP, SIZE, "size", OP_TYPE_SIZE, NULL,
      "the output's side in pixels, or [height, width]")
PARAM(CENTER_CROP, FILL, "fill", OP_LATE(OP_TYPE_COLOR), "0",
      "the colour around a picture that is smaller, 0 to 255: one number or [red, green, blue]")
PARAM(
    CENTER_CROP, HALF, "half", OP_LATE(OP_TYPE_WORD(op_half_words)), "\"even\"",
    "where half a pixel goes: even (to the even number, as torchvision) or down (as Hugging Face)")

OP(HFLIP, "hflip", flip_across_op, "left and right exchanged, at random")
PARAM(HFLIP, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")

OP(VFLIP, "vflip", flip_down_op, "top and bottom exchanged, at random")
PARAM(VFLIP, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")

OP(COLOR_JITTER, "color_jitter", colour_op_jitter,
   "brightness, contrast, saturation and hue changed at random, in random order")
PARAM(COLOR_JITTER, BRIGHTNESS, "brightness", OP_OR_NULL(OP_TYPE_AROUND_1(1e6)), "null",
      "the factor's [least, most] from 0 on, x for [1 - x, 1 + x], or null")
PARAM(COLOR_JITTER, CONTRAST, "contrast", OP_OR_NULL(OP_TYPE_AROUND_1(1e6)), "null",
      "the factor's [least, most] from 0 on, x for [1 - x, 1 + x], or null")
PARAM(COLOR_JITTER, SATURATION, "saturation", OP_OR_NULL(OP_TYPE_AROUND_1(1e6)), "null",
      "the factor's [least, most] from 0 on, x for [1 - x, 1 + x], or null")
PARAM(COLOR_JITTER, HUE, "hue", OP_OR_NULL(OP_TYPE_AROUND_0(0.5)), "null",
      "the part of the colour circle, [least, most] within -0.5 and 0.5, x for [-x, x], or null")
PARAM(COLOR_JITTER, P, "p", OP_LATE(OP_TYPE_CHANCE), "1", "the probability, from 0 to 1")

OP(RANDOM_PHOTOMETRIC_DISTORT, "random_photometric_distort", colour_op_distort,
   "brightness, contrast, saturation, hue and the channels' order changed, each at random: SSD's")
PARAM(RANDOM_PHOTOMETRIC_DISTORT, BRIGHTNESS, "brightness", OP_TYPE_PAIR(0, 1e6), "[0.875, 1.125]",
      "the factor's [least, most] from 0 on")
PARAM(RANDOM_PHOTOMETRIC_DISTORT, CONTRAST, "contrast", OP_TYPE_PAIR(0, 1e6), "[0.5, 1.5]",
      "the factor's [least, most] from 0 on")
PARAM(RANDOM_PHOTOMETRIC_DISTORT, SATURATION, "saturation", OP_TYPE_PAIR(0, 1e6), "[0.5, 1.5]",
      "the factor's [least, most] from 0 on")
PARAM(RANDOM_PHOTOMETRIC_DISTORT, HUE, "hue", OP_TYPE_PAIR(-0.5, 0.5), "[-0.05, 0.05]",
      "the part of the colour circle, [least, most] within -0.5 and 0.5")
PARAM(RANDOM_PHOTOMETRIC_DISTORT, P, "p", OP_TYPE_CHANCE, "0.5",
      "the probability of each of the five changes, from 0 to 1")

OP(GRAYSCALE, "grayscale", colour_op_grayscale, "the picture in gray")
PARAM(GRAYSCALE, NUM_OUTPUT_CHANNELS, "num_output_channels", OP_TYPE_INTEGER(1, 3), "1",
      "1, or 3 for the same value three times")

OP(RANDOM_GRAYSCALE, "random_grayscale", colour_op_chance,
   "the picture in gray, at random, with as many channels as before")
PARAM(RANDOM_GRAYSCALE, P, "p", OP_TYPE_CHANCE, "0.1", "the probability, from 0 to 1")

OP(AUTOCONTRAST, "autocontrast", colour_op_chance, "each channel stretched to 0 .. 255, at random")
PARAM(AUTOCONTRAST, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")

OP(EQUALIZE, "equalize", colour_op_chance, "each channel's histogram made even, at random")
PARAM(EQUALIZE, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")

OP(INVERT, "invert", colour_op_chance, "255 - value, at random")
PARAM(INVERT, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")

OP(POSTERIZE, "posterize", colour_op_chance, "only the highest bits of each value, at random")
PARAM(POSTERIZE, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(POSTERIZE, BITS, "bits", OP_TYPE_INTEGER(1, 8), NULL, "the bits that are kept, 1 to 8")

OP(SOLARIZE, "solarize", colour_op_chance, "values from a threshold on inverted, at random")
PARAM(SOLARIZE, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(SOLARIZE, THRESHOLD, "threshold", OP_TYPE_NUMBER(0, 256), NULL,
      "the least value that is inverted, from 0 to 256")

OP(SHARPNESS, "sharpness", colour_op_chance, "the picture sharpened or smoothed, at random")
PARAM(SHARPNESS, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(SHARPNESS, SHARPNESS_FACTOR, "sharpness_factor", OP_TYPE_NUMBER(0, 1e6), NULL,
      "0 for smoothed, 1 for as it is, more for sharper")

OP(LEVELS, "levels", levels_op,
   "each value becomes another by gamma, contrast, brightness and shifts, drawn for the picture")
PARAM(LEVELS, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(LEVELS, GAMMA, "gamma", OP_TYPE_SPAN(0.01, 100), "1",
      "the power of value / 255, from 0.01 to 100, or [least, most]")
PARAM(LEVELS, CONTRAST, "contrast", OP_TYPE_SPAN(0, 1000), "1",
      "what values are multiplied by, from 0 to 1000, or [least, most]")
PARAM(LEVELS, BRIGHTNESS, "brightness", OP_TYPE_SPAN(-1, 1), "0",
      "what is added, in parts of 255, from -1 to 1, or [least, most]")
PARAM(LEVELS, RED, "red", OP_TYPE_SPAN(-255, 255), "0",
      "what is added to red, from -255 to 255, or [least, most]")
PARAM(LEVELS, GREEN, "green", OP_TYPE_SPAN(-255, 255), "0",
      "what is added to green, from -255 to 255, or [least, most]")
PARAM(LEVELS, BLUE, "blue", OP_TYPE_SPAN(-255, 255), "0",
      "what is added to blue, from -255 to 255, or [least, most]")

OP(HUE_SATURATION_VALUE, "hue_saturation_value", hsv_op,
   "numbers added to hue, saturation and value, drawn for the picture")
PARAM(HUE_SATURATION_VALUE, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(HUE_SATURATION_VALUE, HUE, "hue", OP_TYPE_SPAN(-360, 360), "[-20, 20]",
      "what is added to hue, of which 180 are a whole turn, from -360 to 360, or [least, most]")
PARAM(HUE_SATURATION_VALUE, SATURATION, "saturation", OP_TYPE_SPAN(-255, 255), "[-30, 30]",
      "what is added to saturation, from -255 to 255, or [least, most]")
PARAM(HUE_SATURATION_VALUE, VALUE, "value", OP_TYPE_SPAN(-255, 255), "[-20, 20]",
      "what is added to value, from -255 to 255, or [least, most]")

OP(RANDOM_CHANNEL_PERMUTATION, "random_channel_permutation", colour_op_permute,
   "red, green and blue in random order")

OP(RAND_AUGMENT, "rand_augment", augment_rand_op,
   "changes drawn from fourteen, all of one magnitude: RandAugment")
PARAM(RAND_AUGMENT, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_warp_words), "\"nearest\"",
      "the filter of geometric changes: nearest, bilinear or bicubic")
PARAM(RAND_AUGMENT, FILL, "fill", OP_OR_NULL(OP_TYPE_COLOR), "null",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]; null: black")
PARAM(RAND_AUGMENT, NUM_OPS, "num_ops", OP_TYPE_INTEGER(0, 8), "2",
      "the changes of a picture, one after another, 0 to 8")
PARAM(RAND_AUGMENT, MAGNITUDE, "magnitude", OP_TYPE_INTEGER(0, 999), "9",
      "the bin of the magnitude, from 0 on")
PARAM(RAND_AUGMENT, NUM_MAGNITUDE_BINS, "num_magnitude_bins", OP_TYPE_INTEGER(2, 1000), "31",
      "the bins that magnitudes have, 2 to 1000")

OP(TRIVIAL_AUGMENT, "trivial_augment", augment_trivial_op,
   "one change drawn from fourteen with a drawn magnitude: TrivialAugmentWide")
PARAM(TRIVIAL_AUGMENT, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_warp_words), "\"nearest\"",
      "the filter of geometric changes: nearest, bilinear or bicubic")
PARAM(TRIVIAL_AUGMENT, FILL, "fill", OP_OR_NULL(OP_TYPE_COLOR), "null",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]; null: black")
PARAM(TRIVIAL_AUGMENT, NUM_MAGNITUDE_BINS, "num_magnitude_bins", OP_TYPE_INTEGER(2, 1000), "31",
      "the bins that magnitudes have, 2 to 1000")

OP(AUTO_AUGMENT, "auto_augment", augment_auto_op,
   "a pair of changes drawn from a policy's 25: AutoAugment")
PARAM(AUTO_AUGMENT, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_warp_words), "\"nearest\"",
      "the filter of geometric changes: nearest, bilinear or bicubic")
PARAM(AUTO_AUGMENT, FILL, "fill", OP_OR_NULL(OP_TYPE_COLOR), "null",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]; null: black")
PARAM(AUTO_AUGMENT, POLICY, "policy", OP_TYPE_WORD(op_policy_words), "\"imagenet\"",
      "the data set that the policy was found for: imagenet, cifar10 or svhn")

OP(TIMM_RAND_AUGMENT, "timm_rand_augment", augment_timm_op,
   "changes drawn from fifteen as timm makes them: its RandAugment")
PARAM(
    TIMM_RAND_AUGMENT, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_timm_words), "\"random\"",
    "the filter of geometric changes: nearest, bilinear, bicubic, or random: one of the latter two")
PARAM(TIMM_RAND_AUGMENT, FILL, "fill", OP_TYPE_COLOR, "128",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]")
PARAM(TIMM_RAND_AUGMENT, NUM_OPS, "num_ops", OP_TYPE_INTEGER(0, 5), "2",
      "the changes of a picture, one after another, 0 to 5")
PARAM(TIMM_RAND_AUGMENT, P, "p", OP_TYPE_CHANCE, "0.5", "the probability of each of them")
PARAM(TIMM_RAND_AUGMENT, MAGNITUDE, "magnitude", OP_TYPE_NUMBER(0, 1000), "10",
      "the magnitude, from 0; 10 is timm's usual scale")
PARAM(TIMM_RAND_AUGMENT, MAGNITUDE_STD, "magnitude_std", OP_TYPE_NUMBER(0, 1000), "0",
      "the standard deviation of what is drawn around magnitude")
PARAM(TIMM_RAND_AUGMENT, UNIFORM, "uniform", OP_TYPE_BOOL, "false",
      "true or false: is it drawn from 0 to magnitude instead?")
PARAM(TIMM_RAND_AUGMENT, MAGNITUDE_MAX, "magnitude_max", OP_TYPE_NUMBER(0, 1000), "10",
      "the most that is drawn")
PARAM(TIMM_RAND_AUGMENT, INCREASING, "increasing", OP_TYPE_BOOL, "false",
      "true or false: do all changes grow with the magnitude?")
PARAM(TIMM_RAND_AUGMENT, TRANSLATE, "translate", OP_TYPE_NUMBER(0, 1), "0.45",
      "the share of the side that magnitude 10 moves the picture by")

OP(AUG_MIX, "aug_mix", augment_mix_op, "several chains of changes, mixed with the picture: AugMix")
PARAM(AUG_MIX, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_warp_words), "\"bilinear\"",
      "the filter of geometric changes: nearest, bilinear or bicubic")
PARAM(AUG_MIX, FILL, "fill", OP_OR_NULL(OP_TYPE_COLOR), "null",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]; null: black")
PARAM(AUG_MIX, SEVERITY, "severity", OP_TYPE_INTEGER(1, 10), "3",
      "how many of the ten magnitudes are drawn from, 1 to 10")
PARAM(AUG_MIX, MIXTURE_WIDTH, "mixture_width", OP_TYPE_INTEGER(1, 16), "3",
      "how many chains there are, 1 to 16")
PARAM(AUG_MIX, CHAIN_DEPTH, "chain_depth", OP_TYPE_INTEGER(-1, 16), "-1",
      "the changes of a chain, 1 to 16; or -1: 1 to 3, drawn for each")
PARAM(AUG_MIX, ALPHA, "alpha", OP_TYPE_NUMBER(0.001, 1000), "1",
      "a number from 0.001 to 1000: weights are drawn from Dirichlet's distribution of it")
PARAM(AUG_MIX, ALL_OPS, "all_ops", OP_TYPE_BOOL, "true",
      "true or false: are brightness, colour, contrast and sharpness changed, too?")

OP(TIMM_AUG_MIX, "timm_aug_mix", augment_timm_mix_op,
   "several chains of changes as timm makes them, mixed with the picture: its AugMix")
PARAM(
    TIMM_AUG_MIX, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_timm_words), "\"random\"",
    "the filter of geometric changes: nearest, bilinear, bicubic, or random: one of the latter two")
PARAM(TIMM_AUG_MIX, FILL, "fill", OP_TYPE_COLOR, "128",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]")
PARAM(TIMM_AUG_MIX, WIDTH, "width", OP_TYPE_INTEGER(1, 16), "3",
      "how many chains there are, 1 to 16")
PARAM(TIMM_AUG_MIX, DEPTH, "depth", OP_TYPE_INTEGER(-1, 16), "-1",
      "the changes of a chain, 1 to 16; or -1: 1 to 3, drawn for each")
PARAM(TIMM_AUG_MIX, MAGNITUDE, "magnitude", OP_TYPE_NUMBER(0, 1000), "3",
      "the magnitude, from 0; 10 is timm's usual scale")
PARAM(TIMM_AUG_MIX, MAGNITUDE_STD, "magnitude_std", OP_TYPE_NUMBER(0, 1000), "0",
      "the standard deviation of what is drawn around magnitude")
PARAM(TIMM_AUG_MIX, UNIFORM, "uniform", OP_TYPE_BOOL, "true",
      "true or false: is it drawn from 0 to magnitude instead?")
PARAM(TIMM_AUG_MIX, MAGNITUDE_MAX, "magnitude_max", OP_TYPE_NUMBER(0, 1000), "10",
      "the most that is drawn")
PARAM(TIMM_AUG_MIX, INCREASING, "increasing", OP_TYPE_BOOL, "true",
      "true or false: do all changes grow with the magnitude?")
PARAM(TIMM_AUG_MIX, TRANSLATE, "translate", OP_TYPE_NUMBER(0, 1), "0.3",
      "the share of the side that magnitude 10 moves the picture by")
PARAM(TIMM_AUG_MIX, ALPHA, "alpha", OP_TYPE_NUMBER(0.001, 1000), "1",
      "a number from 0.001 to 1000: weights are drawn from Dirichlet's distribution of it")

OP(ROTATE, "rotate", turn_rotate_op, "the picture turned by a random angle")
PARAM(ROTATE, DEGREES, "degrees", OP_TYPE_AROUND_0(36000.0), NULL,
      "[least, most] degrees counter-clockwise, or x for [-x, x]")
PARAM(ROTATE, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_warp_words), "\"nearest\"",
      "the filter: nearest, bilinear or bicubic")
PARAM(ROTATE, EXPAND, "expand", OP_TYPE_BOOL, "false",
      "true or false: does the picture grow so that its corners stay in it?")
PARAM(ROTATE, CENTER, "center", OP_OR_NULL(OP_TYPE_TWO(-1e6, 1e6)), "null",
      "[x, y] in pixels from the upper left corner, or null: the middle")
PARAM(ROTATE, FILL, "fill", OP_TYPE_COLOR, "0",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]")
PARAM(ROTATE, PADDING_MODE, "padding_mode", OP_LATE(OP_TYPE_WORD(op_pad_words)), "\"constant\"",
      "what is outside: constant, edge, reflect or symmetric")

OP(AFFINE, "affine", turn_affine_op, "the picture turned, moved, scaled and sheared at random")
PARAM(AFFINE, DEGREES, "degrees", OP_TYPE_AROUND_0(36000.0), NULL,
      "[least, most] degrees clockwise, or x for [-x, x]")
PARAM(AFFINE, TRANSLATE, "translate", OP_OR_NULL(OP_TYPE_TWO(0, 1)), "null",
      "[a, b], from 0 to 1: the most that is moved, in widths and heights; or null")
PARAM(AFFINE, SCALE, "scale", OP_OR_NULL(OP_TYPE_PAIR(0.001, 1000)), "null",
      "[least, most], from 0.001 to 1000; or null")
PARAM(AFFINE, SHEAR, "shear", OP_OR_NULL(OP_TYPE_SHEAR(89.0)), "null",
      "degrees from -89 to 89: x for [-x, x] across, [least, most] across, or two such pairs, "
      "across and down; or null")
PARAM(AFFINE, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_warp_words), "\"nearest\"",
      "the filter: nearest, bilinear or bicubic")
PARAM(AFFINE, FILL, "fill", OP_TYPE_COLOR, "0",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]")
PARAM(AFFINE, CENTER, "center", OP_OR_NULL(OP_TYPE_TWO(-1e6, 1e6)), "null",
      "[x, y] in pixels from the upper left corner, or null: the middle")
PARAM(AFFINE, SCALE_Y, "scale_y", OP_LATE(OP_OR_NULL(OP_TYPE_PAIR(0.001, 1000))), "null",
      "[least, most] of what heights are scaled by, before the picture is turned, from 0.001 to "
      "1000; or null: as widths")
PARAM(AFFINE, PADDING_MODE, "padding_mode", OP_LATE(OP_TYPE_WORD(op_pad_words)), "\"constant\"",
      "what is outside: constant, edge, reflect or symmetric")

OP(RANDOM_PERSPECTIVE, "random_perspective", perspective_op,
   "the picture as if seen from elsewhere, at random: each corner goes to another place")
PARAM(RANDOM_PERSPECTIVE, DISTORTION_SCALE, "distortion_scale", OP_TYPE_NUMBER(0, 1), "0.5",
      "from 0 to 1: the most that corners move, in halves of a side")
PARAM(RANDOM_PERSPECTIVE, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(RANDOM_PERSPECTIVE, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_warp_words),
      "\"bilinear\"", "the filter: nearest, bilinear or bicubic")
PARAM(RANDOM_PERSPECTIVE, FILL, "fill", OP_TYPE_COLOR, "0",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]")

OP(ELASTIC_TRANSFORM, "elastic_transform", elastic_op,
   "each pixel moved by smooth noise, as if seen through water")
PARAM(ELASTIC_TRANSFORM, ALPHA, "alpha", OP_TYPE_TWO(0, 1e6), "[50, 50]",
      "[across, down]: how far pixels are moved")
PARAM(ELASTIC_TRANSFORM, SIGMA, "sigma", OP_TYPE_TWO(0, 31.75), "[5, 5]",
      "[across, down]: the deviation in pixels of the blur that makes the noise smooth, to 31.75; "
      "or "
      "0 for both: none")
PARAM(ELASTIC_TRANSFORM, INTERPOLATION, "interpolation", OP_TYPE_WORD(op_plain_warp_words),
      "\"bilinear\"", "the filter: nearest or bilinear")
PARAM(ELASTIC_TRANSFORM, FILL, "fill", OP_OR_NULL(OP_TYPE_COLOR), "0",
      "the colour of what is outside, 0 to 255: one number or [red, green, blue]; null: black, "
      "which a "
      "pixel at the edge is mixed with but once")

OP(PAD, "pad", pad_op, "the picture with more around it")
PARAM(PAD, PADDING, "padding", OP_TYPE_SIDES(0, OP_MAX_SIDE), NULL,
      "pixels: one number, [left and right, top and bottom] or [left, top, right, bottom]")
PARAM(PAD, FILL, "fill", OP_TYPE_COLOR, "0",
      "the colour of a constant padding, 0 to 255: one number or [red, green, blue]")
PARAM(PAD, PADDING_MODE, "padding_mode", OP_TYPE_WORD(op_pad_words), "\"constant\"",
      "the kind: constant, edge, reflect or symmetric")

OP(RANDOM_CROP, "random_crop", window_crop_op, "a part of the picture at a random place")
PARAM(RANDOM_CROP, SIZE, "size", OP_TYPE_SIZE, NULL,
      "the output's side in pixels, or [height, width]")
PARAM(RANDOM_CROP, PADDING, "padding", OP_OR_NULL(OP_TYPE_SIDES(0, OP_MAX_SIDE)), "null",
      "pixels around the picture: one number, [left and right, top and bottom] or [left, top, "
      "right, bottom]; or null")
PARAM(RANDOM_CROP, PAD_IF_NEEDED, "pad_if_needed", OP_TYPE_BOOL, "false",
      "true or false: is a picture that is too small padded?")
PARAM(RANDOM_CROP, FILL, "fill", OP_TYPE_COLOR, "0",
      "the colour of a constant padding, 0 to 255: one number or [red, green, blue]")
PARAM(RANDOM_CROP, PADDING_MODE, "padding_mode", OP_TYPE_WORD(op_pad_words), "\"constant\"",
      "the kind: constant, edge, reflect or symmetric")

OP(FIXED_SIZE_CROP, "fixed_size_crop", window_fixed_op,
   "a part of the picture at a random place; what is missing is added at the bottom and at the "
   "right")
PARAM(FIXED_SIZE_CROP, SIZE, "size", OP_TYPE_SIZE, NULL,
      "the output's side in pixels, or [height, width]")
PARAM(FIXED_SIZE_CROP, FILL, "fill", OP_TYPE_COLOR, "0",
      "the colour of a constant padding, 0 to 255: one number or [red, green, blue]")
PARAM(FIXED_SIZE_CROP, PADDING_MODE, "padding_mode", OP_TYPE_WORD(op_pad_words), "\"constant\"",
      "the kind: constant, edge, reflect or symmetric")

OP(RANDOM_ZOOM_OUT, "random_zoom_out", pad_zoom_op,
   "the picture at a random place of a larger one of one colour, at random")
PARAM(RANDOM_ZOOM_OUT, FILL, "fill", OP_TYPE_COLOR, "0",
      "the colour around it, 0 to 255: one number or [red, green, blue]")
PARAM(RANDOM_ZOOM_OUT, SIDE_RANGE, "side_range", OP_TYPE_PAIR(1, 1000), "[1, 4]",
      "[least, most] of the larger picture's sides, in sides of the picture, from 1 to 1000")
PARAM(RANDOM_ZOOM_OUT, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")

OP(RANDOM_IOU_CROP, "random_iou_crop", iou_crop_op,
   "a part of the picture that has a box's middle and overlaps a box by a drawn share: SSD's")
PARAM(RANDOM_IOU_CROP, MIN_SCALE, "min_scale", OP_TYPE_NUMBER(0, 1), "0.3",
      "the least share of each side, from 0 to 1")
PARAM(RANDOM_IOU_CROP, MAX_SCALE, "max_scale", OP_TYPE_NUMBER(0, 1), "1",
      "the greatest share of each side, from min_scale to 1")
PARAM(RANDOM_IOU_CROP, MIN_ASPECT_RATIO, "min_aspect_ratio", OP_TYPE_NUMBER(1e-6, 1e6), "0.5",
      "the least width over height of the part")
PARAM(RANDOM_IOU_CROP, MAX_ASPECT_RATIO, "max_aspect_ratio", OP_TYPE_NUMBER(1e-6, 1e6), "2",
      "the greatest width over height, from min_aspect_ratio on")
PARAM(RANDOM_IOU_CROP, SAMPLER_OPTIONS, "sampler_options", OP_TYPE_NUMBERS(0, 1000),
      "[0, 0.1, 0.3, 0.5, 0.7, 0.9, 1]",
      "overlaps (intersection over union) to draw from, a list of up to 16; 1 and above: the "
      "picture stays as it is")
PARAM(RANDOM_IOU_CROP, TRIALS, "trials", OP_TYPE_INTEGER(1, 1000), "40",
      "the parts that are drawn before another overlap is, 1 to 1000")

OP(FIVE_CROP, "five_crop", window_five_op, "the four corners and the middle: five pictures")
PARAM(FIVE_CROP, SIZE, "size", OP_TYPE_SIZE, NULL, "the side of each in pixels, or [height, width]")

OP(TEN_CROP, "ten_crop", window_ten_op,
   "the four corners and the middle, and those of the flipped picture: ten pictures")
PARAM(TEN_CROP, SIZE, "size", OP_TYPE_SIZE, NULL, "the side of each in pixels, or [height, width]")
PARAM(TEN_CROP, VERTICAL_FLIP, "vertical_flip", OP_TYPE_BOOL, "false",
      "true or false: is it flipped top and bottom, in place of left and right?")

OP(GAUSSIAN_BLUR, "gaussian_blur", blur_op, "the picture blurred")
PARAM(GAUSSIAN_BLUR, KERNEL_SIZE, "kernel_size", OP_TYPE_ODD(255), NULL,
      "an odd number of pixels from 1 to 255, or two: across and down")
PARAM(GAUSSIAN_BLUR, SIGMA, "sigma", OP_TYPE_SPAN(0.001, 1000), "[0.1, 2]",
      "the deviation in pixels, from 0.001 to 1000, or [least, most]")
PARAM(GAUSSIAN_BLUR, P, "p", OP_LATE(OP_TYPE_CHANCE), "1", "the probability, from 0 to 1")

OP(BOX_BLUR, "box_blur", convolve_square_op, "each value becomes the mean of those around it")
PARAM(BOX_BLUR, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(BOX_BLUR, SIZE, "size", OP_TYPE_SPAN(3, 99), "[3, 7]",
      "of the square of them, odd, from 3 to 99, or [least, most]")

OP(MEDIAN_BLUR, "median_blur", convolve_square_op,
   "each value becomes the median of those around it")
PARAM(MEDIAN_BLUR, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(MEDIAN_BLUR, SIZE, "size", OP_TYPE_SPAN(3, 15), "[3, 7]",
      "of the square of them, odd, from 3 to 15, or [least, most]")

OP(MOTION_BLUR, "motion_blur", convolve_motion_op,
   "each value becomes the mean of those along a line")
PARAM(MOTION_BLUR, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(MOTION_BLUR, SIZE, "size", OP_TYPE_SPAN(3, 99), "[3, 7]",
      "of the square that the line is in, odd, from 3 to 99, or [least, most]")
PARAM(MOTION_BLUR, ANGLE, "angle", OP_TYPE_SPAN(-360, 360), "[0, 360]",
      "the line's, in degrees clockwise, or [least, most]")
PARAM(MOTION_BLUR, DIRECTION, "direction", OP_TYPE_SPAN(-1, 1), "[-1, 1]",
      "to which side of the middle it is longer: 0 for none, -1 or 1 for a half line, or [least, "
      "most]")
PARAM(MOTION_BLUR, SHIFT, "shift", OP_TYPE_BOOL, "true",
      "true or false: is the line moved away from the middle, at random?")

OP(SHARPEN, "sharpen", convolve_sharpen_op, "the picture mixed with a sharper one")
PARAM(SHARPEN, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(SHARPEN, ALPHA, "alpha", OP_TYPE_SPAN(0, 1), "[0.2, 0.5]",
      "the sharper one's share, from 0 to 1, or [least, most]")
PARAM(SHARPEN, LIGHTNESS, "lightness", OP_TYPE_SPAN(0, 1000), "[0.5, 1]",
      "what the sharper one is multiplied by, from 0 to 1000, or [least, most]")

OP(GAUSSIAN_NOISE, "gaussian_noise", noise_op, "noise of a normal distribution added to floats")
PARAM(GAUSSIAN_NOISE, MEAN, "mean", OP_TYPE_NUMBER(-1000, 1000), "0",
      "the noise's mean, of values from 0 to 1")
PARAM(GAUSSIAN_NOISE, SIGMA, "sigma", OP_TYPE_SPAN(0, 1000), "0.1",
      "its standard deviation, or [least, most] of what is drawn for each picture")
PARAM(GAUSSIAN_NOISE, CLIP, "clip", OP_TYPE_BOOL, "true",
      "true or false: is the sum cut off at 0 and at 1?")
PARAM(GAUSSIAN_NOISE, P, "p", OP_TYPE_CHANCE, "1", "the probability, from 0 to 1")

OP(JPEG, "jpeg", recode_op, "the picture as a JPEG file of low quality gives it back")
PARAM(JPEG, QUALITY, "quality", OP_TYPE_SPAN(1, 100), NULL,
      "libjpeg's quality, whole, from 1 to 100, or [least, most]")

OP(RANDOM_ERASING, "random_erasing", erase_op, "a rectangle of one colour or of noise, at random")
PARAM(RANDOM_ERASING, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(RANDOM_ERASING, SCALE, "scale", OP_TYPE_PAIR(0, 1), "[0.02, 0.33]",
      "[least, most] share of the picture's area, 0 <= least <= most <= 1")
PARAM(RANDOM_ERASING, RATIO, "ratio", OP_TYPE_RANGE, "[0.3, 3.3]",
      "[least, most] height over width of the rectangle, 0 < least <= most")
PARAM(RANDOM_ERASING, VALUE, "value", OP_TYPE_VALUE(op_erase_words), "0",
      "one number, three (red, green, blue) or \"random\"")

OP(COARSE_DROPOUT, "coarse_dropout", erase_holes_op,
   "rectangles of one colour or of noise, at random")
PARAM(COARSE_DROPOUT, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(COARSE_DROPOUT, HOLES, "holes", OP_TYPE_SPAN(1, 256), "[1, 2]",
      "how many there are, whole, from 1 to 256, or [least, most]")
PARAM(COARSE_DROPOUT, HEIGHT, "height", OP_TYPE_SPAN(0, OP_MAX_SIDE), "[0.1, 0.2]",
      "of each, a share of the picture's height below 1, or pixels from 1 on, or [least, most]")
PARAM(COARSE_DROPOUT, WIDTH, "width", OP_TYPE_SPAN(0, OP_MAX_SIDE), "[0.1, 0.2]",
      "of each, a share of the picture's width below 1, or pixels from 1 on, or [least, most]")
PARAM(COARSE_DROPOUT, VALUE, "value", OP_TYPE_VALUE(op_hole_words), "0",
      "one number, three (red, green, blue), \"random\" for each pixel its own colour or "
      "\"random_uniform\" for each rectangle")

OP(RANDOM_APPLY, "random_apply", apply_op, "the ops behind it, or others, at random")
PARAM(RANDOM_APPLY, P, "p", OP_TYPE_CHANCE, "0.5", "the probability, from 0 to 1")
PARAM(RANDOM_APPLY, OPS, "ops", OP_TYPE_INTEGER(1, PIPELINE_MAX_OPS), "1",
      "how many ops behind it are done with that probability")
PARAM(RANDOM_APPLY, OTHERWISE, "otherwise", OP_TYPE_INTEGER(0, PIPELINE_MAX_OPS), "0",
      "how many ops behind those are done in their place")

OP(VIEW, "view", views_op, "another picture of the sample, with ops and draws of its own")
PARAM(VIEW, NAMES, "names", OP_TYPE_NAMES, NULL,
      "a list of names of fields, each of which gets what the ops behind it make of the decoded "
      "picture")

OP(NORMALIZE, "normalize", op_run_finish, "(value / 255 - mean) / std, in float32")
PARAM(NORMALIZE, MEAN, "mean", OP_TYPE_CHANNELS, NULL,
      "three numbers, the mean of red, green and blue, or one for all")
PARAM(NORMALIZE, STD, "std", OP_TYPE_SPREAD, NULL,
      "three numbers above 0, the standard deviation of red, green and blue, or one for all")
PARAM(NORMALIZE, OF, "of", OP_LATE(OP_OR_NULL(OP_TYPE_NAMES)), "null",
      "the names of further pictures (kinds 8 and 9) that are normalized so, and not as the first "
      "one; "
      "or null: it is of all others")

OP(CAST, "cast", op_run_finish, "the values' type; without normalize a float is value / 255")
PARAM(CAST, DTYPE, "dtype", OP_TYPE_DTYPE, "\"f32\"", "the type: u8, f16, bf16 or f32")

OP(LAYOUT, "layout", op_run_finish, "the order of height, width and channels in memory")
PARAM(LAYOUT, ORDER, "order", OP_TYPE_ORDER, "\"CHW\"", "the order: HWC or CHW")

OP(FILTER, "filter", label_filter_op, "samples that do not fit are left out")
PARAM(FILTER, KEEP, "keep", OP_OR_NULL(OP_TYPE_LIST(0, INT32_MAX)), "null",
      "the data set's classes that stay, a list of their numbers")
PARAM(FILTER, DROP, "drop", OP_OR_NULL(OP_TYPE_LIST(0, INT32_MAX)), "null",
      "the data set's classes that are left out, a list of their numbers")
PARAM(FILTER, MIN_WIDTH, "min_width", OP_OR_NULL(OP_TYPE_INTEGER(1, INT32_MAX)), "null",
      "pixels that the file's picture must be wide")
PARAM(FILTER, MAX_WIDTH, "max_width", OP_OR_NULL(OP_TYPE_INTEGER(1, INT32_MAX)), "null",
      "pixels that the file's picture may be wide")
PARAM(FILTER, MIN_HEIGHT, "min_height", OP_OR_NULL(OP_TYPE_INTEGER(1, INT32_MAX)), "null",
      "pixels that the file's picture must be high")
PARAM(FILTER, MAX_HEIGHT, "max_height", OP_OR_NULL(OP_TYPE_INTEGER(1, INT32_MAX)), "null",
      "pixels that the file's picture may be high")

OP(MAP, "map", label_op, "the label's class number becomes another")
PARAM(MAP, LABELS, "labels", OP_OR_NULL(OP_TYPE_LIST(INT32_MIN, INT32_MAX)), "null",
      "the new numbers of the data set's classes 0, 1, ...")
PARAM(MAP, TABLE, "table", OP_OR_NULL(OP_TYPE_LISTS(INT32_MIN, INT32_MAX)), "null",
      "pairs [[class, new number], ...]")
PARAM(MAP, DEFAULT, "default", OP_OR_NULL(OP_TYPE_INTEGER(INT32_MIN, INT32_MAX)), "null",
      "the number of classes that have no entry")

OP(ONE_HOT, "one_hot", label_op,
   "the label becomes a float32 for each class: 1 for its own, else 0")
PARAM(ONE_HOT, NUM_CLASSES, "num_classes", OP_TYPE_INTEGER(1, OP_MAX_CLASSES), NULL,
      "how many classes there are")

OP(SMOOTH, "smooth", label_op, "1 - epsilon of the label, and epsilon spread over all classes")
PARAM(SMOOTH, EPSILON, "epsilon", OP_TYPE_NUMBER(0, 1), "0.1", "a number from 0 to 1")
PARAM(SMOOTH, NUM_CLASSES, "num_classes", OP_OR_NULL(OP_TYPE_INTEGER(1, OP_MAX_CLASSES)), "null",
      "how many classes there are, without one_hot")

OP(MIXUP, "mixup", tail_batch_op, "each sample of a batch is mixed with the one before it")
PARAM(MIXUP, ALPHA, "alpha", OP_TYPE_NUMBER(0.001, 1000), "1",
      "a number from 0.001 to 1000: the share is drawn from Beta(alpha, alpha)")
PARAM(MIXUP, NUM_CLASSES, "num_classes", OP_OR_NULL(OP_TYPE_INTEGER(1, OP_MAX_CLASSES)), "null",
      "how many classes there are, without one_hot")
PARAM(MIXUP, P, "p", OP_TYPE_CHANCE, "1", "the probability that it is done to a batch")

OP(CUTMIX, "cutmix", tail_batch_op, "a part of each sample is cut out of the one before it")
PARAM(CUTMIX, ALPHA, "alpha", OP_TYPE_NUMBER(0.001, 1000), "1",
      "a number from 0.001 to 1000: the share is drawn from Beta(alpha, alpha)")
PARAM(CUTMIX, NUM_CLASSES, "num_classes", OP_OR_NULL(OP_TYPE_INTEGER(1, OP_MAX_CLASSES)), "null",
      "how many classes there are, without one_hot")
PARAM(CUTMIX, P, "p", OP_TYPE_CHANCE, "1", "the probability that it is done to a batch")

OP(MOSAIC, "mosaic", tail_batch_op, "four pictures of a batch meet at a point of each")
PARAM(MOSAIC, P, "p", OP_TYPE_CHANCE, "1", "the probability that it is done to a picture")
PARAM(MOSAIC, CENTER, "center", OP_TYPE_SPAN(0, 2), "[0.5, 1.5]",
      "where on a canvas of twice the picture's size they meet, in the picture's sides: [least, "
      "most], 0 to 2")
PARAM(MOSAIC, SCALE, "scale", OP_TYPE_SPAN(0.1, 10), "[0.5, 1.5]",
      "how much larger the canvas is seen: a number from 0.1 to 10, or [least, most]")
PARAM(MOSAIC, FILL, "fill", OP_TYPE_COLOR, "114",
      "the colour where no picture is: a number from 0 to 255, or one for red, green and blue")
PARAM(MOSAIC, MIN_SIZE, "min_size", OP_TYPE_NUMBER(0, OP_MAX_SIDE), "1",
      "boxes with a shorter side are removed: pixels, from 0 to 16384")
PARAM(MOSAIC, MIN_VISIBILITY, "min_visibility", OP_TYPE_CHANCE, "0.1",
      "boxes are removed of whose area a smaller share is left: a number from 0 to 1")
PARAM(MOSAIC, EPOCHS, "epochs", OP_OR_NULL(OP_TYPE_INTEGER(1, 1000000000)), "null",
      "it is done in the first so many epochs; or null: in all")
