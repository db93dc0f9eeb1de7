/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The scan of an MDS shard: its head, its columns, where its samples begin, and of each sample what leads to its
 * picture and its label; with the option columns a sample is all of its columns. Pictures are not read. Where samples begin is fetched in parts, MDS_STARTS of them at a
 * time; the last of a part is the first of the next one.
 */

#include "storage/source/scan/scan_shard.h"

#include <stdio.h>

#include "base/little.h"
#include "storage/source/scan/mds.h"
#include "storage/source/scan/scan_option.h"

#define MDS_STARTS 1024
/* Bytes of a sample that are looked at first: all sizes, and small columns behind them */
#define MDS_LOOK 1024
#define MDS_NAME 256

struct mds {
	enum { MDS_IN_HEAD, MDS_IN_COLUMNS, MDS_IN_STARTS, MDS_IN_SAMPLE, MDS_IN_LABEL } phase;
	bool is_litdata; /* which columns there are says the option layout, not the shard */
	char picture[MDS_NAME], label[MDS_NAME], names[MDS_MOST_NAMES];
	uint64_t file_bytes;
	struct mds_head head;
	struct mds_columns columns;
	uint64_t number;            /* of the sample */
	uint64_t first;             /* the sample of start[0] */
	unsigned n;                 /* starts that are there */
	uint32_t start[MDS_STARTS]; /* where samples begin, and where the last one ends */
	struct mds_sample sample;
};

static int mds_bad(const struct mds *shard, struct scan_sink *sink, uint64_t at, const char *why)
{
	if (shard->phase < MDS_IN_SAMPLE)
		return scan_bad(sink, at, "%s", why);
	return scan_bad(sink, at, "sample %llu: %s", (unsigned long long)shard->number, why);
}

/* ---- what comes next ---- */

static int want_starts(struct mds *shard, struct scan_want *ret)
{
	const uint64_t left = shard->head.samples + 1 - shard->number;

	shard->phase = MDS_IN_STARTS;
	shard->first = shard->number;
	shard->n = (unsigned)BASE_MIN(left, (uint64_t)MDS_STARTS);
	return scan_wants(4 + 4 * shard->number, 4 * (uint64_t)shard->n, ret);
}

static uint64_t sample_at(const struct mds *shard)
{
	return shard->start[shard->number - shard->first];
}

static uint64_t sample_bytes(const struct mds *shard)
{
	return shard->start[shard->number - shard->first + 1] - sample_at(shard);
}

static int want_sample(struct mds *shard, struct scan_sink *sink, struct scan_want *ret)
{
	if (shard->number == shard->head.samples)
		return SCAN_E_END;
	if (shard->number - shard->first + 1 == shard->n)
		return want_starts(shard, ret);
	shard->phase = MDS_IN_SAMPLE;
	if (sample_bytes(shard) < mds_sizes_bytes(&shard->columns) || sample_bytes(shard) == 0)
		return mds_bad(shard, sink, sample_at(shard), "it is shorter than its columns");
	return scan_wants(sample_at(shard), BASE_MIN(sample_bytes(shard), (uint64_t)MDS_LOOK), ret);
}

/* ---- what came ---- */

static int took_head(struct mds *shard, const uint8_t *bytes, struct scan_sink *sink,
		     struct scan_want *ret)
{
	if (!mds_head(bytes, shard->file_bytes, &shard->head) ||
	    (shard->head.columns_bytes == 0) != shard->is_litdata ||
	    shard->head.columns_bytes > SCAN_MOST_WANT)
		return mds_bad(shard, sink, 0, "its head is damaged; copy or write it anew");
	if (shard->is_litdata)
		return want_starts(shard, ret);
	shard->phase = MDS_IN_COLUMNS;
	return scan_wants(shard->head.columns_at, shard->head.columns_bytes, ret);
}

static int took_columns(struct mds *shard, const uint8_t *bytes, uint32_t size,
			struct scan_sink *sink, struct scan_want *ret)
{
	const struct mds_names names = {shard->picture[0] ? shard->picture : NULL,
					shard->label[0] ? shard->label : NULL,
					shard->names[0] ? shard->names : NULL};
	struct diag diag = {.text = ""};

	if (mds_columns_parse((const char *)bytes, size, &names, &shard->columns, &diag))
		return mds_bad(shard, sink, shard->head.columns_at,
			       diag.text[0] ? diag.text
					    : "there is not enough memory for its columns");
	return want_starts(shard, ret);
}

static int took_starts(struct mds *shard, const uint8_t *bytes, struct scan_sink *sink,
		       struct scan_want *ret)
{
	const uint64_t least = shard->head.columns_at + shard->head.columns_bytes;

	for (unsigned i = 0; i < shard->n; i++) {
		const uint64_t before = i > 0 ? shard->start[i - 1] : least;

		shard->start[i] = little_32(bytes + 4 * i);
		if (shard->start[i] < before || shard->start[i] > shard->file_bytes)
			return mds_bad(shard, sink, 4 + 4 * (shard->first + i),
				       "where its samples begin is damaged; copy or write it anew");
	}
	if (shard->is_litdata && shard->start[0] == shard->start[shard->n - 1])
		return mds_bad(shard, sink, shard->start[0],
			       "its samples are rows of Arrow; oneaccess.wrap() of a "
			       "litdata.StreamingDataset reads them");
	if (shard->first + shard->n == shard->head.samples + 1 &&
	    shard->start[shard->n - 1] != shard->file_bytes)
		return mds_bad(
		    shard, sink, shard->start[shard->n - 1],
		    "its samples end here, and the file does not; copy or write it anew");
	return want_sample(shard, sink, ret);
}

/* label: its bytes. */
static int give_record(struct mds *shard, const uint8_t *label, struct scan_sink *sink,
		       struct scan_want *ret)
{
	const uint64_t at = sample_at(shard);
	struct scan_record record = {.at = at + shard->sample.picture_at,
				     .bytes = shard->sample.picture_bytes,
				     .label = SCAN_NO_LABEL};
	char key[32];
	int64_t number = -1;
	int r;

	if (shard->is_litdata && shard->columns.has_label &&
	    shard->sample.label_bytes != sizeof(number))
		return mds_bad(shard, sink, at + shard->sample.label_at,
			       "its label has not the eight bytes of an int");
	if (shard->columns.has_label)
		number = mds_label(&shard->columns, label, shard->sample.label_bytes);
	if (number < -1 || number > SCAN_MOST_LABEL)
		return mds_bad(shard, sink, at + shard->sample.label_at,
			       "its label is no class; classes count from 0 (-1: none)");
	if (number >= 0)
		record.label = (uint32_t)number;
	if (shard->names[0]) {
		record.at = at;
		record.bytes = (uint32_t)sample_bytes(shard);
	}
	if (record.bytes == 0)
		return mds_bad(shard, sink, record.at, "its picture is empty");
	snprintf(key, sizeof(key), "[%llu]", (unsigned long long)shard->number);
	record.key = key;
	r = sink->record(sink->arg, &record);
	shard->number++;
	return r ? r : want_sample(shard, sink, ret);
}

static int took_sample(struct mds *shard, const uint8_t *bytes, uint32_t size,
		       struct scan_sink *sink, struct scan_want *ret)
{
	struct mds_sample *sample = &shard->sample;

	if (!mds_sample(&shard->columns, bytes, sample_bytes(shard), sample))
		return mds_bad(shard, sink, sample_at(shard),
			       "its columns do not fill it; the file is damaged: copy it anew");
	if (!shard->columns.has_label || sample->label_at + sample->label_bytes <= size)
		return give_record(shard, bytes + sample->label_at, sink, ret);
	shard->phase = MDS_IN_LABEL;
	return scan_wants(sample_at(shard) + sample->label_at, sample->label_bytes, ret);
}

/* ---- the scan ---- */

static int mds_feed(void *state, uint64_t at, const uint8_t *bytes, uint32_t size,
		    struct scan_sink *sink, struct scan_want *ret)
{
	struct mds *shard = state;

	(void)at;
	switch (shard->phase) {
	case MDS_IN_HEAD:
		return took_head(shard, bytes, sink, ret);
	case MDS_IN_COLUMNS:
		return took_columns(shard, bytes, size, sink, ret);
	case MDS_IN_STARTS:
		return took_starts(shard, bytes, sink, ret);
	case MDS_IN_SAMPLE:
		return took_sample(shard, bytes, size, sink, ret);
	case MDS_IN_LABEL:
		return give_record(shard, bytes, sink, ret);
	}
	return SCAN_E_BAD;
}

static int mds_begin(void *state, const struct scan_shard *of, struct scan_sink *sink,
		     struct scan_want *ret)
{
	struct mds *shard = state;

	*shard = (struct mds){.phase = MDS_IN_HEAD, .file_bytes = of->bytes};
	if (!scan_option(of->options, "image", shard->picture, MDS_NAME) ||
	    !scan_option(of->options, "label", shard->label, MDS_NAME))
		return mds_bad(shard, sink, 0, "the name of a column has more than 255 bytes");
	if (!scan_option(of->options, "columns", shard->names, MDS_MOST_NAMES))
		return mds_bad(shard, sink, 0, "the option columns has more than 2047 bytes");
	if (of->bytes < MDS_HEAD)
		return mds_bad(shard, sink, 0, "it is too short to be an MDS shard");
	return scan_wants(0, MDS_HEAD, ret);
}

/* Leaves of a sample, the picture's, the label's; as many as there are leaves: none is the label. */
static bool take_layout(const char *options, struct mds_columns *ret)
{
	uint64_t leaves, picture, label;
	char text[32];
	const char *at = text;

	if (!scan_option(options, "layout", text, sizeof(text)) ||
	    !base_parse_number(&at, MDS_MOST_COLUMNS, &leaves) || leaves == 0 || *at++ != ';' ||
	    !base_parse_number(&at, leaves - 1, &picture) || *at++ != ';' ||
	    !base_parse_number(&at, leaves, &label) || *at || label == picture)
		return false;
	*ret = (struct mds_columns){.n = (unsigned)leaves,
				    .picture = (unsigned)picture,
				    .has_label = label < leaves,
				    .is_signed = true,
				    .label = (unsigned)label};
	return true;
}

/* A chunk of LitData's (litdata.h). */
static int litdata_begin(void *state, const struct scan_shard *of, struct scan_sink *sink,
			 struct scan_want *ret)
{
	struct mds *shard = state;

	*shard = (struct mds){.phase = MDS_IN_HEAD, .is_litdata = true, .file_bytes = of->bytes};
	if (!take_layout(of->options, &shard->columns))
		return mds_bad(shard, sink, 0,
			       "the option layout is not what " INDEX_JSON " gives");
	if (of->bytes < MDS_HEAD)
		return mds_bad(shard, sink, 0, "it is too short to be a chunk of LitData");
	return scan_wants(0, MDS_HEAD, ret);
}

const struct source_scan scan_litdata = {
    .name = "litdata",
    .state_bytes = sizeof(struct mds),
    .begin = litdata_begin,
    .feed = mds_feed,
};

const struct source_scan scan_mds = {
    .name = "mds",
    .state_bytes = sizeof(struct mds),
    .begin = mds_begin,
    .feed = mds_feed,
};
