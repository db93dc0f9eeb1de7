/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/source/scan/litdata.h"

#include <stdio.h>

#include "base/json.h"
#include "storage/source/scan/chosen.h"

#define MOST_NAME 256 /* bytes of a leaf's name, with its NUL */
#define MOST_DEPTH 8
#define MEND "write the data set anew with litdata.optimize()"
#define BY_WRAP "oneaccess.wrap() of a litdata.StreamingDataset reads it as it is"

static int refuse(struct diag *diag, const char *what, const char *mend)
{
	return diag_fail(diag, INDEX_JSON_E_BAD, "its " INDEX_JSON " %s; %s", what, mend);
}

/* ---- chunks ---- */

static int take_chunk(const struct json_in *chunk, struct index_json_shard *ret, struct diag *diag)
{
	if (!index_json_shard(json_in_string(json_in_member(chunk, "filename"), NULL),
			      json_in_u64(json_in_member(chunk, "chunk_bytes"), 0),
			      json_in_u64(json_in_member(chunk, "chunk_size"), 0), ret))
		return refuse(diag, "names a chunk without name or size", MEND);
	return ret->name ? 0 : -ENOMEM;
}

/* ---- leaves ---- */

struct leaves { /* their names, as the tree is gone through */
	unsigned n;
	char name[LITDATA_MOST_LEAVES][MOST_NAME];
};

/* JSON in a text, NULL where that is damaged. 0 or -ENOMEM. */
static int parse_inner(const struct json_in *from, const char *member, struct json_in **ret)
{
	const char *text = json_in_string(json_in_member(from, member), "");
	struct diag diag;
	int r;

	*ret = NULL;
	r = json_in_parse(text, strlen(text), INDEX_JSON_MOST_TEXT, ret, &diag);
	return r < 0 ? r : 0;
}

static int name_leaves(const struct json_in *node, const char *name, unsigned depth,
		       struct leaves *ret);

/* keys: of the children, a list of texts; anything else: they have none, as a tuple's. */
static int name_children(const struct json_in *children, const struct json_in *keys,
			 const char *name, unsigned depth, struct leaves *ret)
{
	const size_t n = json_in_count(children);
	const bool has_keys = json_in_count(keys) == n;
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		const char *key = has_keys ? json_in_string(json_in_item(keys, i), NULL) : NULL;
		char number[24], child[MOST_NAME];

		snprintf(number, sizeof(number), "%zu", i);
		if (snprintf(child, sizeof(child), "%s%s%s", name, *name ? "." : "",
			     key ? key : number) >= MOST_NAME)
			return INDEX_JSON_E_BAD;
		r = name_leaves(json_in_item(children, i), child, depth + 1, ret);
	}
	return r;
}

/* 0, -ENOMEM, or INDEX_JSON_E_BAD: there are too many, or their names are too long. */
static int name_leaves(const struct json_in *node, const char *name, unsigned depth,
		       struct leaves *ret)
{
	const struct json_in *children = json_in_member(node, "children_spec");
	_cleanup_json_ struct json_in *keys = NULL;
	int r;

	if (json_in_kind_of(json_in_member(node, "type")) == JSON_IN_NULL) {
		if (ret->n == LITDATA_MOST_LEAVES)
			return INDEX_JSON_E_BAD;
		snprintf(ret->name[ret->n++], MOST_NAME, "%s", name);
		return 0;
	}
	if (depth == MOST_DEPTH || json_in_count(children) > LITDATA_MOST_LEAVES)
		return INDEX_JSON_E_BAD;
	r = parse_inner(node, "context", &keys);
	return r ? r : name_children(children, keys, name, depth, ret);
}

/* A tree in JSON, in a text: [1, tree]. 0, -ENOMEM, or INDEX_JSON_E_BAD: it is damaged, or too large. */
static int read_names(const struct json_in *config, struct leaves *ret)
{
	_cleanup_json_ struct json_in *spec = NULL;
	int r = parse_inner(config, "data_spec", &spec);

	ret->n = 0;
	if (r)
		return r;
	return json_in_count(spec) == 2 ? name_leaves(json_in_item(spec, 1), "", 0, ret)
					: INDEX_JSON_E_BAD;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static unsigned picture_rank(const char *format, const char *name, const char *named)
{
	const bool is_picture = strcmp(format, "jpeg") == 0 || begins(format, "image:") ||
				strcmp(format, "file:jpg") == 0 ||
				strcmp(format, "file:jpeg") == 0 || strcmp(format, "file:png") == 0;

	if (!is_picture && strcmp(format, "bytes") != 0 && !begins(format, "file"))
		return 0;
	if (named)
		return strcmp(name, named) == 0;
	return is_picture ? 2 : 1;
}

static int judge(const struct litdata_names *names, const struct chosen *picture,
		 const struct chosen *label, struct litdata *ret, struct diag *diag)
{
	if (picture->n != 1)
		return refuse(diag,
			      picture->n ? "has several leaves that may be the picture"
					 : "has no leaf that is a picture",
			      "a picture is written as jpeg, image, file or bytes (option image "
			      "names one of several); " BY_WRAP);
	if (names->label && label->n != 1)
		return refuse(diag, "has no leaf of whole numbers with the label's name",
			      "labels are written as int");
	ret->picture = picture->column;
	ret->has_label = label->n == 1;
	ret->label = label->column;
	return 0;
}

static int take_leaves(const struct json_in *config, const struct litdata_names *names,
		       struct litdata *ret, struct diag *diag)
{
	const struct json_in *format = json_in_member(config, "data_format");
	struct chosen picture = {.n = 0}, label = {.n = 0};
	_cleanup_free_ struct leaves *leaves = malloc(sizeof(*leaves));
	const int r = leaves ? read_names(config, leaves) : -ENOMEM;

	if (r < 0)
		return r;
	if (r || !leaves->n || json_in_count(format) != leaves->n)
		return refuse(
		    diag,
		    "has none or more than 64 leaves a sample, leaves too deep or with too long "
		    "names, or is damaged",
		    BY_WRAP);
	*ret = (struct litdata){.leaves = leaves->n};
	for (unsigned i = 0; i < leaves->n; i++) {
		const char *is = json_in_string(json_in_item(format, i), "");

		chosen_add(&picture, picture_rank(is, leaves->name[i], names->picture), i);
		if (strcmp(is, "int") == 0)
			chosen_add(&label, chosen_label_rank(leaves->name[i], names->label), i);
	}
	return judge(names, &picture, &label, ret, diag);
}

/* ---- what is not read ---- */

static bool is_set(const struct json_in *config, const char *key)
{
	return json_in_kind_of(json_in_member(config, key)) != JSON_IN_NULL;
}

static int check_config(const struct json_in *config, struct diag *diag)
{
	const char *loader = json_in_string(json_in_member(config, "item_loader"), "PyTreeLoader");

	if (is_set(config, "compression") || is_set(config, "ipc_compression"))
		return refuse(
		    diag,
		    "says that its chunks are compressed, so that no sample can be "
		    "read by itself",
		    "write it without compression (pictures are compressed already); " BY_WRAP);
	if (is_set(config, "encryption"))
		return refuse(diag, "says that its chunks are encrypted", BY_WRAP);
	if (strcmp(loader, "PyTreeLoader") != 0)
		return refuse(diag, "says that its chunks are no samples of PyTreeLoader", BY_WRAP);
	return 0;
}

int litdata_parse(const char *text, size_t size, const struct litdata_names *names,
		  struct index_json *ret, struct litdata *ret_leaves, struct diag *diag)
{
	const struct json_in *chunks, *config;
	struct index_json index = {.n = 0};
	_cleanup_json_ struct json_in *root = NULL;
	int r = json_in_parse(text, size, INDEX_JSON_MOST_TEXT, &root, diag);

	if (r)
		return r < 0 ? r : INDEX_JSON_E_NONE;
	chunks = json_in_member(root, "chunks");
	config = json_in_member(root, "config");
	if (json_in_kind_of(chunks) != JSON_IN_ARRAY ||
	    json_in_kind_of(json_in_member(config, "data_format")) != JSON_IN_ARRAY)
		r = INDEX_JSON_E_NONE;
	else if (json_in_count(chunks) == 0)
		r = refuse(diag, "has no chunk", MEND);
	else
		r = check_config(config, diag);
	if (!r)
		r = take_leaves(config, names, ret_leaves, diag);
	if (!r)
		r = index_json_list(chunks, take_chunk, &index, diag);
	if (r)
		index_json_fini(&index);
	else
		*ret = index;
	return r;
}
