/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is in a dataset, as accessd knows it: a conversation of its own that ends with the answer, a
 * sealed memory of labels and names, which is checked before a byte of it is used and then needs
 * accessd no more.
 */

#include "libaccess/connect/inquire.h"

#include <stdio.h>
#include <sys/socket.h>
#include "libaccess/connect/client.h"
#include "libaccess/error.h"
#include "shmring/proto.h"

#define INQUIRE_MS 600000
#define INQUIRE_TRIES 3 /* a private daemon may end between two messages */

struct oa_dataset { /* never changes: needs no lock */
	struct catalog catalog;
};

/* ---- the conversation ---- */

static int inquire_send(struct dial *dial, const struct remote *dataset, const char *pipeline,
			struct diag *diag)
{
	int r = dial_knows(dial, dataset->path, dataset->url.text, diag);

	if (r)
		return r;
	r = wire_tell(dial->sock, PROTO_DESCRIBE, WIRE_STRING(PROTO_KEY_DATASET, dataset->path),
		      WIRE_STRING(PROTO_KEY_PIPELINE, pipeline));
	if (r == WIRE_E_CLOSED)
		return diag_fail(diag, DIAL_GONE, "accessd at %s hung up", dial->route->socket);
	return r ? error_of_errno(diag, r, "DESCRIBE to accessd") : 0;
}

void inquire_filter_fini(struct inquire_filter *filter)
{
	free(filter->keep);
	free(filter->drop);
	free(filter->usual);
	*filter = (struct inquire_filter){0};
}

/* A list of classes; hostile. */
static int inquire_classes(const struct wire_in *in, uint16_t key, int32_t **ret,
			   uint32_t *ret_count, struct diag *diag)
{
	const void *bytes;
	size_t size;

	if (wire_get_bytes(in, key, &bytes, &size))
		return 0;
	if (size == 0 || size % sizeof(**ret))
		return diag_fail(diag, -EPROTO,
				 "accessd's filter is no list of classes: is it an accessd?");
	*ret = malloc(size);
	if (!*ret)
		return error_of_errno(diag, -ENOMEM, "the pipeline's filter");
	memcpy(*ret, bytes, size);
	*ret_count = (uint32_t)(size / sizeof(**ret));
	return 0;
}

static int inquire_read_filter(const struct wire_in *in, struct inquire_filter *ret,
			       struct diag *diag)
{
	const char *usual;
	int r;

	inquire_filter_fini(ret);
	if (wire_get_string(in, PROTO_KEY_PIPELINE, &usual) == 0) {
		ret->usual = strdup(usual);
		if (!ret->usual)
			return error_of_errno(diag, -ENOMEM, "the data set's pipeline");
	}
	r = inquire_classes(in, PROTO_KEY_KEEP, &ret->keep, &ret->n_keep, diag);
	return r ? r : inquire_classes(in, PROTO_KEY_DROP, &ret->drop, &ret->n_drop, diag);
}

static int inquire_attach(struct wire_in *in, struct catalog *ret, struct diag *diag)
{
	_cleanup_close_ int fd = wire_take_fd(in, 0);
	int r = fd < 0 ? CATALOG_E_BAD : catalog_attach(fd, ret);

	if (r > 0)
		return diag_fail(diag, -EPROTO,
				 "accessd's catalogue of the dataset is none, or contradicts "
				 "itself: is it an accessd?");
	return r ? error_of_errno(diag, r, "the dataset's catalogue") : 0;
}

/* One message, if there is one. DIAL_AGAIN: wait. */
static int inquire_step(struct dial *dial, const struct oa_options *options, struct catalog *ret,
			struct inquire_filter *ret_filter, struct diag *diag)
{
	_cleanup_(wire_in_fini) struct wire_in in;
	int r = dial_receive(dial, &in, diag);

	if (r)
		return r;
	if (in.type == PROTO_DESCRIBED && ret_filter)
		r = inquire_read_filter(&in, ret_filter, diag);
	if (in.type == PROTO_DESCRIBED)
		return r ? r : inquire_attach(&in, ret, diag);
	r = dial_other(dial, &in, diag);
	if (r == DIAL_PROGRESS && options && options->progress)
		options->progress(options->progress_arg, dial->progress, dial->done, dial->total);
	return r;
}

static int inquire_late(struct dial *dial, struct diag *diag)
{
	char name[192];

	return diag_fail(diag, OA_E_TIMEOUT, "%s has not described the dataset in time%s%s",
			 dial_name(dial, name, sizeof(name)),
			 dial->progress[0] ? "; it was at: " : "", dial->progress);
}

static int inquire_wait(struct dial *dial, struct remote *dataset, uint64_t deadline,
			const struct oa_options *options, struct catalog *ret,
			struct inquire_filter *ret_filter, struct diag *diag)
{
	_cleanup_(dial_wait_end) struct dial_wait wait = {.has_begun = false};
	int r;

	dial_wait_begin(&wait);
	for (;;) {
		r = inquire_step(dial, options, ret, ret_filter, diag);
		if (r == DIAL_PROGRESS)
			continue;
		if (r != DIAL_AGAIN)
			return r;
		r = remote_look(dataset, diag);
		if (r)
			return r;
		if (base_now_ns() >= deadline)
			return inquire_late(dial, diag);
		r = dial_wait(&wait, dial_fd(dial),
			      BASE_MIN(BASE_MIN(dial->wake_ns, dataset->wake_ns), deadline));
		if (r)
			return diag_fail(diag, r, "interrupted by a signal");
	}
}

static int inquire_once(const struct dial_route *route, struct remote *dataset,
			const char *pipeline, uint64_t deadline, const struct oa_options *options,
			struct catalog *ret, struct inquire_filter *ret_filter, struct diag *diag)
{
	_cleanup_(dial_fini) struct dial dial;
	int r;

	dial_init(&dial, route);
	r = client_dial(&dial, deadline, diag);
	if (!r)
		r = inquire_send(&dial, dataset, pipeline, diag);
	return r ? r : inquire_wait(&dial, dataset, deadline, options, ret, ret_filter, diag);
}

int inquire(const struct dial_route *route, struct remote *dataset, const char *pipeline,
	    uint64_t deadline, const struct oa_options *options, struct catalog *ret,
	    struct inquire_filter *ret_filter, struct diag *diag)
{
	int r = DIAL_GONE;

	for (unsigned i = 0; i < INQUIRE_TRIES && r == DIAL_GONE; i++)
		r = inquire_once(route, dataset, pipeline, deadline, options, ret, ret_filter,
				 diag);
	return r == DIAL_GONE ? OA_E_UNREACHABLE : r;
}

/* ---- for callers ---- */

static int inquire_open(struct oa_client *client, const char *name, int timeout_ms,
			struct oa_dataset **ret, struct diag *diag)
{
	const uint64_t deadline = dial_deadline(timeout_ms ? timeout_ms : INQUIRE_MS);
	_cleanup_free_ struct oa_dataset *dataset = calloc(1, sizeof(*dataset));
	_cleanup_(remote_fini) struct remote remote;
	int r;

	remote_init(&remote);
	if (!dataset)
		return error_of_errno(diag, -ENOMEM, "oa_dataset_open()");
	r = remote_open(&remote, &client->route, name, deadline, NULL, diag);
	r = r ? r
	      : inquire(&client->route, &remote, NULL, deadline, NULL, &dataset->catalog, NULL,
			diag);
	if (!r)
		*ret = base_take_ptr(dataset);
	return r;
}

int oa_dataset_open(struct oa_client *client, const char *dataset, int timeout_ms,
		    struct oa_dataset **ret, struct oa_error *error)
{
	struct diag diag = {""};
	int r;

	if (!client || !ret || !dataset || !*dataset)
		return error_export(error, OA_E_INVALID,
				    "oa_dataset_open(): client, dataset or ret is missing");
	if (!guard_is_ours(&client->guard))
		return error_export(error, OA_E_FORKED, ERROR_FORKED_TEXT);
	r = inquire_open(client, dataset, timeout_ms, ret, &diag);
	return error_export(error, r, diag.text);
}

uint64_t oa_dataset_count(const struct oa_dataset *dataset)
{
	return dataset ? dataset->catalog.head.n : 0;
}

uint32_t oa_dataset_classes(const struct oa_dataset *dataset)
{
	return dataset ? (uint32_t)dataset->catalog.head.n_classes : 0;
}

const char *oa_dataset_class_name(const struct oa_dataset *dataset, uint32_t label)
{
	if (label >= oa_dataset_classes(dataset))
		return NULL;
	return dataset->catalog.names + dataset->catalog.start[label];
}

int64_t oa_dataset_label(const struct oa_dataset *dataset, int64_t id)
{
	if (id < 0 || (uint64_t)id >= oa_dataset_count(dataset))
		return -1;
	return dataset->catalog.label[id];
}

const uint8_t *oa_dataset_version(const struct oa_dataset *dataset)
{
	return dataset ? dataset->catalog.head.version : NULL;
}

void oa_dataset_close(struct oa_dataset *dataset)
{
	if (dataset)
		catalog_detach(&dataset->catalog);
	free(dataset);
}
