/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * access-convert, the program behind access-ctl convert: the parts of it, one section a file.
 *
 *   main process ──fork──▶ lane 0 ──fork──▶ maker 0      lane: reads files, has their forms made
 *        ▲  ▲                │                           maker: sandboxed, looks at the files' bytes
 *        │  └─────pipe───────┘
 *        └───────pipe── lane 1 ...
 *
 * Of L lanes, lane l has the samples l, l + L, l + 2L, ...; the main process takes them from the lanes in
 * turn and writes. So the file does not depend on how many lanes there are or which is quicker, and
 * nothing but pipes is waited for. What is written is an output: a kind of file is a file here and a line of
 * convert_output_of().
 */

#include <limits.h>
#include "convert/baton.h"
#include "storage/dataset.h"

#define CONVERT_MAX_JOBS 256

enum { CONVERT_OK = 0, CONVERT_FAILED = 1, CONVERT_USAGE = 2 }; /* exit statuses */

struct convert_options {
	const char *source, *target;
	unsigned form;        /* enum form_kind, 0: files as they are; CONVERT_USUAL_FORM */
	unsigned jobs;        /* 0: as many as there are processors */
	uint64_t shard_bytes; /* of a tar; 0: one for all */
	bool force, check;
};
#define CONVERT_USUAL_FORM UINT_MAX /* the output's own */

/* ---- convert_run.c: one conversion ---- */

/* An exit status, or minus the signal that ended it; on any but 0 nothing is left of the target. */
int convert_run(const struct convert_options *options);

/* ---- convert_verify.c: access-ctl convert --check ---- */

int convert_verify(const struct convert_options *options);

/* ---- convert_source.c: what is converted; of the main process, lanes inherit it ---- */

struct reader_dataset;
struct convert_unpacked {       /* the folder of plain shards */
	char *path;             /* owned; NULL: there is none */
	uint64_t device, inode; /* which folder it was when it was made */
};
struct convert_source {
	struct reader_dataset *reader; /* owned */
	const struct dataset *dataset; /* its index, when it is listed */
	unsigned form, jobs;
	bool is_compressed;
	struct convert_unpacked unpacked;
	char *pattern; /* owned; the reader's, of unpacked shards; NULL: it has its own, or none */
};
enum { CONVERT_E_COMPRESSED = 3 }; /* beside exit statuses */
/* Is it a data set, and of a kind that can be converted? 0, or CONVERT_FAILED and diag, as the next. */
int convert_source_open(struct convert_source *source, const char *path,
			const struct scan_progress *progress, struct diag *diag);
/* Its samples. What is compressed is unpacked beside the target. */
int convert_source_list(struct convert_source *source, const char *target, unsigned threads,
			const struct scan_progress *progress, struct diag *diag);
/* A sample's bytes, as many as the index says. false: why not. */
bool convert_source_read(const struct convert_source *source, uint64_t sample, uint8_t *room,
			 char *ret_why, size_t size);
void convert_source_close(struct convert_source *source);

/* ---- convert_unpack.c: compressed shards ---- */

/* Is it of a kind whose shards are looked into for this? */
bool convert_unpacks_records(const struct reader_dataset *dataset);
/* Do plain ones have the names of the shards in the list, below the folder? Else they all are in it. */
bool convert_unpack_keeps_names(const struct reader_dataset *dataset);
/* Makes the shards of one that is compressed plain, in a new folder, which the caller removes, also on failure. */
int convert_unpack(const struct reader_dataset *dataset, const char *target, unsigned jobs,
		   const struct scan_progress *progress, struct convert_unpacked *ret,
		   struct diag *diag);
/* Nothing, where another folder or a link has its name now. */
void convert_unpack_remove(struct convert_unpacked *unpacked);

/* ---- convert_unpacking.c: a sandboxed process that unpacks; unpack_arrayrecord.c, unpack_gzip.c, unpack_zip.c, unpack_zstd.c ---- */

#define UNPACK_OPTION "--unpack"
enum { /* its exit statuses, beside 0 */
       UNPACK_E_DAMAGED = 2,
       UNPACK_E_CUT,
       UNPACK_E_READ,
       UNPACK_E_WRITE,
       UNPACK_E_SANDBOX,
       UNPACK_E_WINDOW, /* zstd: larger than one may be here */
       UNPACK_E_PLAIN,  /* ArrayRecord, zip: nothing is to be unpacked */
       UNPACK_E_KIND,   /* ArrayRecord: by something else than zstd */
       UNPACK_E_LARGE,  /* ArrayRecord: a record takes more memory than there may be */
       UNPACK_E_MEMORY,
       UNPACK_E_LARGE_FILE, /* zip: more than a job unpacks */
};
#define UNPACK_MOST_FILE 4096 /* bytes of a file's name, with its NUL */
struct unpack_pipe {
	/* zip: the data set's options, and the shard's name in it */
	const char *options, *name;
	bool (*read)(struct unpack_pipe *pipe); /* what follows; in_bytes 0: the end */
	bool (*write)(struct unpack_pipe *pipe, size_t bytes);
	uint64_t bytes; /* of the whole */
	uint64_t at;
	size_t most; /* bytes that are read at once; 0: as many as there is room for */
	size_t in_bytes;
	char file[UNPACK_MOST_FILE]; /* zip: where it failed; "": in none */
	uint8_t in[1 << 16], out[1 << 18];
};
/* Where it failed stands at the end of what it has written, with a zero byte before and behind. */
int convert_unpacking_main(const char *how, const char *options, const char *name);
struct unpack_frame {                /* one frame of zstd, in pieces */
	struct ZSTD_DCtx_s *context; /* owned; NULL: there was no memory */
};
struct unpack_piece {
	const uint8_t *from;
	uint8_t *to;
	size_t size, room; /* of each */
	size_t taken, made;
};
void unpack_frame_new(struct unpack_frame *frame);
void unpack_frame_begin(struct unpack_frame *frame);
/* As much as goes: both counts may be 0. 0 or UNPACK_E_.... */
int unpack_frame_step(struct unpack_frame *frame, struct unpack_piece *piece);
void unpack_frame_free(struct unpack_frame *frame);
struct unpack_raw {                /* what is deflated, without a head of its own, in pieces */
	struct z_stream_s *stream; /* owned; NULL: there was no memory */
	uint32_t crc;              /* CRC-32 of what was made */
	bool has_ended;
};
void unpack_raw_new(struct unpack_raw *raw);
void unpack_raw_begin(struct unpack_raw *raw);
/* As unpack_frame_step(). */
int unpack_raw_step(struct unpack_raw *raw, struct unpack_piece *piece);
void unpack_raw_free(struct unpack_raw *raw);
/* All of it. 0 or UNPACK_E_.... */
int unpack_arrayrecord(struct unpack_pipe *pipe);
int unpack_gzip(struct unpack_pipe *pipe);
int unpack_zip(struct unpack_pipe *pipe);
int unpack_zstd(struct unpack_pipe *pipe);

/* ---- convert_lane.c: a process that reads files ---- */

struct convert_source;

enum convert_outcome {
	CONVERT_KEPT = 0,   /* the file's bytes */
	CONVERT_FORMED = 1, /* its form */
	CONVERT_ENDED = 2,  /* why the conversion cannot go on: a text */
};
struct convert_result { /* before the bytes */
	uint64_t sample, sum;
	uint32_t size, source_size;
	uint32_t outcome;
	uint32_t is_lost; /* the maker died of it or hung */
};

struct convert_lane {
	pid_t pid;
	int fd; /* owned: results come here */
};
/* Forks lane number of n. 0 or negative errno. */
int convert_lane_start(struct convert_lane *lane, const struct convert_source *source,
		       unsigned number, unsigned n);
/* Ends it, if it has not yet. */
void convert_lane_end(struct convert_lane *lane);

/* ---- convert_maker.c: a sandboxed process that makes forms ---- */

struct convert_desk { /* shared by a lane and its makers */
	struct baton baton;
	uint32_t size; /* of the file in room; written before the baton is passed */
};
struct convert_maker {
	struct convert_desk *desk; /* owned mapping */
	uint8_t *room[2];          /* owned mappings: files; read-only to makers */
	uint64_t room_bytes;
	unsigned form;
	/* of the process */
	pid_t pid; /* 0: none */
	int fd;    /* owned: answers */
};
struct convert_answer {  /* before the bytes; from a maker, who may be hostile */
	uint32_t status; /* 0: bytes follow; 1: no form fits */
	uint32_t reserved;
	uint64_t size;
};
/* Memory for files of up to room_bytes. 0 or negative errno. */
int convert_maker_init(struct convert_maker *maker, uint64_t room_bytes, unsigned form);
/* Ends its process. */
void convert_maker_end(struct convert_maker *maker);
/* Has the form of the file in room[which] made, by a new process if there is none. 0, -ECHILD (it cannot
 * be started), negative errno. */
int convert_maker_ask(struct convert_maker *maker, unsigned which, uint32_t size);
/* Its answer: *ret_form (caller owns) and its size; for FORM_INDEXED only what stands before the file.
 * NULL: it has none. *ret_is_lost: the process died or was ended, and another one takes its place.
 * 0 or negative errno. */
int convert_maker_take(struct convert_maker *maker, uint32_t size, uint8_t **ret_form,
		       uint64_t *ret_size, bool *ret_is_lost);

/* ---- what is written: convert_oads.c, convert_tar.c ---- */

struct convert_output; /* one that is under way */

/* All but close: 0, or CONVERT_FAILED and diag. */
struct convert_output_ops {
	unsigned usual_form;
	/* Is the target fit? Before the source is listed, which takes longer. options are borrowed. */
	int (*open)(const struct convert_options *options, struct convert_output **ret,
		    struct diag *diag);
	/* These samples will come, in their order; source is borrowed. */
	int (*begin)(struct convert_output *output, const struct dataset *source,
		     struct diag *diag);
	int (*add)(struct convert_output *output, const struct convert_result *result,
		   const void *bytes, struct diag *diag);
	/* All came. To the disk, then to its name. */
	int (*keep)(struct convert_output *output, struct diag *diag);
	void (*close)(struct convert_output *output); /* what was not kept is gone */
};
extern const struct convert_output_ops convert_oads_ops, convert_tar_ops;
/* By the target's name. */
const struct convert_output_ops *convert_output_of(const char *target);
/* What a write to path failed of. CONVERT_FAILED. */
int convert_output_fail(const char *path, int error, struct diag *diag);

/* ---- convert_target.c: the new file, which has no name until it is whole ---- */

struct convert_target {
	const char *path; /* borrowed */
	bool force;
	int fd;          /* owned */
	int folder_fd;   /* owned */
	char *temporary; /* owned; NULL: the file has no name */
};
/* diag says what is wrong. 0 or CONVERT_FAILED. */
int convert_target_open(struct convert_target *target, const char *path, bool force,
			struct diag *diag);
/* To the disk, then to its name. */
int convert_target_keep(struct convert_target *target, struct diag *diag);
/* Whatever was not kept is gone. */
void convert_target_close(struct convert_target *target);

/* ---- convert_progress.c: what a person sees meanwhile, on standard error ---- */

struct convert_progress {
	const char *what; /* "converting" */
	uint64_t n, begin_ns, next_ns;
	bool is_terminal, is_shown;
};
void convert_progress_begin(struct convert_progress *progress, const char *what, uint64_t n);
/* As often as one likes: shows it when it is time. Of a listing, whose end nobody knows: */
void convert_progress_list(struct convert_progress *progress, uint64_t folders, uint64_t files);
void convert_progress_tell(struct convert_progress *progress, uint64_t done, uint64_t bytes);
/* Removes a line that is being rewritten. */
void convert_progress_end(struct convert_progress *progress);
double convert_progress_seconds(const struct convert_progress *progress);
