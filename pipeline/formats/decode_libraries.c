/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Loaded libraries are told by their build ids, which linkers put into a note that is loaded with them: a
 * library that was exchanged under the same name (a security update) has another one. libjpeg-turbo has no
 * function that says its version, and what a version says is less than that.
 *
 * zlib is left out, and what else libraries unpack with: what it makes of bytes is no matter of its version.
 */

#include "pipeline/formats/decode_libraries.h"

#include "base/base.h"
#include "pipeline/formats/decode.h"

#include <link.h>

struct search {
	const char *prefix;
	struct hash *hash;
};

/* The build id of the notes from `at`, or NULL. */
static const uint8_t *find_id(const uint8_t *at, size_t size, size_t *ret_size)
{
	while (size >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) note;
		size_t name, all;

		memcpy(&note, at, sizeof(note));
		name = sizeof(note) + base_align_up(note.n_namesz, 4);
		all = name + base_align_up(note.n_descsz, 4);
		if (all > size)
			return NULL;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    memcmp(at + sizeof(note), "GNU", 4) == 0) {
			*ret_size = note.n_descsz;
			return at + name;
		}
		at += all;
		size -= all;
	}
	return NULL;
}

static void add_id(const struct dl_phdr_info *info, struct hash *hash)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		const uint8_t *id;
		size_t size = 0;

		if (part->p_type != PT_NOTE)
			continue;
		id = find_id((const uint8_t *)(uintptr_t)(info->dlpi_addr + part->p_vaddr),
			     part->p_memsz, &size);
		if (id)
			hash_add(hash, id, size);
	}
}

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct search *search = arg;
	const char *slash = strrchr(info->dlpi_name, '/');
	const char *name = slash ? slash + 1 : info->dlpi_name;

	(void)size;
	if (strncmp(name, search->prefix, strlen(search->prefix)) != 0)
		return 0;
	hash_add(search->hash, name, strlen(name) + 1);
	add_id(info, search->hash);
	return 0;
}

/* A hash of the names and build ids of the loaded libraries whose names begin with one of these
 * prefixes, in the order of the prefixes. A library without a build id counts by its name; one that is linked
 * into the program is the program's own, whose pixels have a version of their own (ENGINE_PIXELS). */
static void decode_libraries_named(const char *const *prefixes, unsigned n, struct hash_id *ret)
{
	struct search search;

	memset(ret, 0, sizeof(*ret));
	if (hash_new(&search.hash))
		return;
	for (unsigned i = 0; i < n; i++) {
		search.prefix = prefixes[i];
		dl_iterate_phdr(look_at, &search);
	}
	hash_finish(search.hash, ret);
	hash_free(search.hash);
}

void decode_libraries(struct hash_id *ret)
{
	static const char *const prefixes[] = {
	    "libjpeg.so", "libwebp.so",    "libsharpyuv.so", "libtiff.so",  "libspng.so",
	    "libgif.so",  "libopenjp2.so", "libavif.so",     "libdav1d.so", "libyuv.so",
	    "libjxl.so",  "libheif",       "libde265.so"};

	decode_load();
	decode_libraries_named(prefixes, BASE_ARRAY_LEN(prefixes), ret);
}
