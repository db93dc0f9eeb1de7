/* SPDX-License-Identifier: Apache-2.0 */

/* One file that accessd opens in the place of the source (access-dataset(5)). */

#include "convert/convert.h"
#include "pipeline/forms/form.h"
#include "storage/oads.h"

struct convert_output {
	const struct convert_options *options;
	const struct dataset *source;
	struct convert_target target;
	struct oads_writer writer;
};

static void close_oads(struct convert_output *output)
{
	convert_target_close(&output->target);
	oads_writer_fini(&output->writer);
	free(output);
}

static int open_oads(const struct convert_options *options, struct convert_output **ret,
		     struct diag *diag)
{
	struct convert_output *output;
	int r;

	if (options->shard_bytes)
		return diag_fail(diag, CONVERT_FAILED,
				 "--shard-size is of shards, whose TARGET ends in .tar");
	output = calloc(1, sizeof(*output));
	if (!output)
		return convert_output_fail(options->target, ENOMEM, diag);
	output->options = options;
	r = convert_target_open(&output->target, options->target, options->force, diag);
	if (r)
		close_oads(output);
	else
		*ret = output;
	return r;
}

static int begin_oads(struct convert_output *output, const struct dataset *source,
		      struct diag *diag)
{
	int r = oads_writer_init(&output->writer, output->target.fd, dataset_count(source));

	output->source = source;
	return r ? convert_output_fail(output->options->target, -r, diag) : 0;
}

static int add_oads(struct convert_output *output, const struct convert_result *result,
		    const void *bytes, struct diag *diag)
{
	int r = oads_add(&output->writer, bytes, result->size, result->sum, result->source_size,
			 result->outcome == CONVERT_FORMED);

	return r ? convert_output_fail(output->options->target, -r, diag) : 0;
}

static int keep_oads(struct convert_output *output, struct diag *diag)
{
	const unsigned form = output->options->form == CONVERT_USUAL_FORM
				  ? convert_oads_ops.usual_form
				  : output->options->form;
	int r = oads_finish(&output->writer, output->source, form);

	return r ? convert_output_fail(output->options->target, -r, diag)
		 : convert_target_keep(&output->target, diag);
}

const struct convert_output_ops convert_oads_ops = {
    .usual_form = FORM_PACKED,
    .open = open_oads,
    .begin = begin_oads,
    .add = add_oads,
    .keep = keep_oads,
    .close = close_oads,
};
