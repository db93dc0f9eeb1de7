/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client is told about a dataset before it opens a stream: the number of samples, labels,
 * names of classes, and with a pipeline the classes that its filter names. From these libaccess computes which samples a job wants (a split, classes, a
 * list), so that accessd needs to know nothing of such wishes but a bitmap.
 *
 * A catalogue is 4 bytes a sample and lives as long as any client holds it. So that a client cannot
 * fill the memory by asking, the last few are kept and handed out again; a large one is not kept, for
 * that would hold the memory for nobody. Each trust domain keeps its own: a reader may lie about the
 * version of what it listed, and must gain nothing by it.
 */
#include "daemon/describe.h"

#include <string.h>

#include "daemon/conn.h"
#include "daemon/domain.h"
#include "libaccess/libaccess.h"
#include "shmring/catalog.h"
#include "shmring/proto.h"
#include "storage/dataset.h"

#define DESCRIBE_KEPT (UINT64_C(64) << 20) /* a larger one is made each time */

void describe_shelf_init(struct describe_shelf *shelf)
{
	for (unsigned i = 0; i < BASE_ARRAY_LEN(shelf->entry); i++)
		shelf->entry[i].fd = -1;
}

void describe_shelf_fini(struct describe_shelf *shelf)
{
	for (unsigned i = 0; i < BASE_ARRAY_LEN(shelf->entry); i++)
		base_close(&shelf->entry[i].fd);
}

static int find(const struct describe_shelf *shelf, const struct hash_id *version)
{
	for (unsigned i = 0; i < BASE_ARRAY_LEN(shelf->entry); i++)
		if (shelf->entry[i].fd >= 0 &&
		    memcmp(&shelf->entry[i].version, version, sizeof(*version)) == 0)
			return shelf->entry[i].fd;
	return -1;
}

/* Keeps fd (consumed). */
static void keep(struct describe_shelf *shelf, const struct hash_id *version, int fd)
{
	unsigned at = shelf->next++ % BASE_ARRAY_LEN(shelf->entry);

	base_close(&shelf->entry[at].fd);
	shelf->entry[at].version = *version;
	shelf->entry[at].fd = fd;
}

static void fill(struct catalog_draft *draft, const struct dataset *dataset)
{
	for (uint64_t i = 0; i < draft->head.n; i++)
		draft->label[i] = dataset_label_of(dataset, i);
	for (uint32_t i = 0; i < draft->head.n_classes; i++)
		catalog_add_class(draft, dataset_class_name(dataset, i));
}

/* 0 and *ret_fd (caller owns) or negative errno. */
static int make(const struct dataset *dataset, int *ret_fd)
{
	struct catalog_head head = {
	    .n = dataset_count(dataset),
	    .n_classes = dataset_classes(dataset),
	};
	struct catalog_draft draft;
	int r;

	memcpy(head.version, dataset_version(dataset), sizeof(head.version));
	for (uint32_t i = 0; i < head.n_classes; i++)
		head.names_bytes += strlen(dataset_class_name(dataset, i)) + 1;
	r = catalog_new(&head, &draft);
	if (r)
		return r;
	fill(&draft, dataset);
	return catalog_seal(&draft, ret_fd);
}

static void put_classes(struct wire_out *out, uint16_t key, const struct pipeline *pipeline,
			bool keep)
{
	unsigned count = 0;
	const int32_t *classes = pipeline_filter_labels(pipeline, keep, &count);

	if (classes)
		wire_put_bytes(out, key, classes, count * sizeof(*classes));
}

static void send_described(struct conn *conn, int fd)
{
	struct wire_out out;

	wire_out_init(&out, PROTO_DESCRIBED);
	wire_put_fd(&out, fd);
	if (conn->request.pipeline) {
		put_classes(&out, PROTO_KEY_KEEP, conn->request.pipeline, true);
		put_classes(&out, PROTO_KEY_DROP, conn->request.pipeline, false);
	}
	conn_send(conn, &out);
}

void describe_answer(struct conn *conn, struct describe_shelf *shelf, const struct dataset *dataset)
{
	const struct hash_id *version = dataset_version(dataset);
	_cleanup_close_ int made = -1;
	int fd = find(shelf, version);

	if (fd < 0 && make(dataset, &made)) {
		conn_refuse(conn, OA_E_MEMORY, "out of memory for the dataset's catalogue");
		return;
	}
	send_described(conn, fd < 0 ? made : fd);
	if (fd < 0 && dataset_count(dataset) * sizeof(uint32_t) <= DESCRIBE_KEPT)
		keep(shelf, version, base_take_fd(&made));
}
