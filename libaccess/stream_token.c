/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tokens, as a program and a new session get them. A recording is written out first: a token that is saved says that
 * all before it is recorded.
 */

#include "libaccess/error.h"
#include "libaccess/stream.h"

int stream_token(struct oa_stream *stream, const struct progress_mark *mark, void **ret,
		 size_t *ret_size)
{
	const struct progress_hand hand = {&stream->chunks, &stream->carries};

	return progress_token(&stream->progress, &hand, mark, ret, ret_size);
}

static int state_epoch(struct oa_stream *stream, uint64_t epoch, void **ret, size_t *ret_size)
{
	if (stream->course.epochs > 0 && epoch > stream->course.epochs)
		return diag_fail(&stream->trouble.error, OA_E_INVALID,
				 "oa_state_epoch(): epoch is %llu, the stream ends before epoch "
				 "%llu (they are numbered from 0)",
				 (unsigned long long)epoch,
				 (unsigned long long)stream->course.epochs);
	return progress_epoch_token(&stream->progress, epoch, ret, ret_size);
}

/* epoch NULL: of now. */
static int state_make(struct oa_stream *stream, const uint64_t *epoch, const char *call, void *data,
		      size_t *size)
{
	_cleanup_free_ void *token = NULL;
	size_t token_size = 0;
	int r;

	if (!stream || !size)
		return OA_E_INVALID;
	if (!guard_is_ours(&stream->guard))
		return OA_E_FORKED;
	pthread_mutex_lock(&stream->lock);
	r = epoch ? state_epoch(stream, *epoch, &token, &token_size)
		  : stream_token(stream, NULL, &token, &token_size);
	record_flush(&stream->record);
	if (r < 0)
		diag_fail(&stream->trouble.error, r, "%s(): %s", call, oa_error_name(r));
	pthread_mutex_unlock(&stream->lock);
	return r ? r : progress_copy_token(token, token_size, data, size);
}

int oa_state(struct oa_stream *stream, void *data, size_t *size)
{
	return state_make(stream, NULL, "oa_state", data, size);
}

int oa_state_epoch(struct oa_stream *stream, uint64_t epoch, void *data, size_t *size)
{
	return state_make(stream, &epoch, "oa_state_epoch", data, size);
}
