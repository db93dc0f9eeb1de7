/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What pipeline.c, pipeline_run.c and pipeline_cut.c know of pipelines and their runs, and nobody else. */

#include "pipeline/bands/bands.h"
#include "pipeline/bands/measure.h"
#include "pipeline/cloud/cloud.h"
#include "pipeline/engine/engine.h"
#include "pipeline/engine/mask.h"
#include "pipeline/forms/cut_maker.h"
#include "pipeline/forms/picked.h"
#include "pipeline/forms/zipped.h"
#include "pipeline/forms/zstandard.h"
#include "pipeline/pipeline.h"
#include "pipeline/sound/sound.h"
#include "pipeline/spec/tail.h"
#include "pipeline/spec/views.h"
#include "pipeline/video/video_frames.h"
#include "pipeline/volume/volume.h"

struct pipeline_view { /* another picture of the sample */
	struct op_list ops;
	struct shape shape;
	struct engine_program *program; /* owned */
	struct bands_program *numbers;  /* owned; in its place, of bands */
};

struct companion_ends { /* normalize of some of them, in place of the first picture's */
	unsigned n;
	struct op op[PIPELINE_MAX_OPS];
};

struct pipeline;
struct pipeline_run;
struct pipeline_input;

struct pipeline_medium {  /* what samples are that are no pictures */
	enum op_id first; /* the op that takes decode's place */
	bool is_shared;   /* what the first op makes serves all pipelines */
	bool is_timed;    /* a record may say which seconds of its file are the sample */
	/* Parameters and fields, and then as pipeline_set_sides(). */
	int (*compile)(struct pipeline *pipeline, struct op_list *whole, const struct views *views,
		       struct diag *diag);
	/* Room in the run, run->medium_room, for the pipeline of number v. 0 or -ENOMEM. */
	int (*add)(struct pipeline_run *run, unsigned v);
	void (*free)(void *room); /* NULL: there is none */
	/* A sample through each of the pipelines whose bit is set in `who`: 0, or PIPELINE_E_BAD with *ret_error. */
	int (*run)(struct pipeline_run *run, uint32_t who, const struct pipeline_input *input,
		   const struct pipeline_key *key, const struct pipeline_out out[],
		   struct pipeline_error *ret_error);
};
extern const struct pipeline_medium pipeline_sound, pipeline_cloud, pipeline_volume,
    pipeline_duration;

union pipeline_first {        /* what stands in decode's place */
	struct video video;   /* where the shape has frames */
	struct bands bands;   /* where it has bands */
	struct volume volume; /* where it is one */
};

struct pipeline_sides { /* views that begin with a first op of their own: pipeline_side.c */
	unsigned n;
	struct pipeline_side {
		struct pipeline *pipeline; /* owned */
		bool is_heard; /* the sound of the clip; else of the file that its field is */
		unsigned field, rest; /* where its first field goes, and those behind its label */
	} one[VIEWS_MOST];
};

struct pipeline {
	struct op_list ops;
	struct shape shape;
	struct tail tail;
	struct cut_list cuts;
	char *canonical, *asked; /* owned; asked: with what is each job's own */
	struct pipeline_field fields[PIPELINE_MAX_FIELDS];
	unsigned n_fields;
	bool is_record; /* fields as they are, no program */
	const struct pipeline_medium
	    *medium; /* no picture, no program, but one of these; NULL: pictures or records */
	struct sound sound;
	struct cloud cloud;
	union pipeline_first first;
	struct pipeline_sides sides;
	/* Of them, those that a record has; beside its picture and label */
	struct packed_fields packed;
	struct picked *members; /* owned; NULL: samples are not all of what they have */
	struct mask *mask[PIPELINE_MAX_FIELDS]; /* owned; of those of the fields that are masks */
	struct companion *companion[PIPELINE_MAX_FIELDS]; /* owned; the same of further pictures */
	struct companion_ends ends;                       /* of these */
	unsigned n_views, first_view;           /* the field of the first one; the others follow */
	struct pipeline_view *view[VIEWS_MOST]; /* owned */
	const struct engine *engine;
	struct engine_program *program; /* owned */
	struct bands_program *numbers;  /* owned; in its place, of bands */
};

struct pipeline_run {
	struct decode *decode;             /* owned */
	struct cut_maker *maker;           /* owned; NULL: not needed yet */
	bool by_record;                    /* pictures come in records */
	unsigned beside;                   /* fields of these, beside picture and label */
	const struct picked *members;      /* what records are made of; NULL: they come as such */
	struct picked_room *room;          /* owned; with members */
	struct steps_scratch *masks;       /* owned; of what follows; NULL: there is nothing */
	struct engine_scratch *companions; /* owned; NULL: there are none */
	struct zstandard *zstandard;       /* owned; NULL: not needed yet */
	struct zipped *zipped;             /* the same */
	struct unpacked unpacked;          /* of both */
	const struct pipeline_medium *medium;  /* of all its pipelines; NULL: pictures or records */
	void *medium_room;                     /* owned; its own */
	struct sound_watch watch;              /* of that, and of frames */
	struct video_frames *frames;           /* owned; NULL: there are no videos */
	struct pipeline_run *side[VIEWS_MOST]; /* owned; NULL: there are no more of them */
	struct bands_room *numbers;            /* owned; NULL: there are no bands */
	struct bands_room *others;             /* owned; of companions; the same */
	unsigned n;
	const struct pipeline *pipeline[PIPELINE_MAX_VARIANTS]; /* borrowed, NULL: none */
	/* of the pipelines, and behind them of the views of the one that has some; their scratch is
	 * owned, and program is NULL where there is none */
	struct engine_part part[PIPELINE_MAX_PARTS];
	size_t frame_bytes[PIPELINE_MAX_PARTS]; /* of a clip's frame in the part's field */
	struct draw_choice choices[PIPELINE_MAX_VARIANTS][PIPELINE_MAX_OPS];
};

struct pipeline_input { /* a sample as it comes */
	const void *data;
	size_t size;
	uint32_t label;
	struct cut kept;        /* what the data are, or no ops: a file, or a form of it */
	struct packed record;   /* that the picture came in, where n of the fields are not 0 */
	const int64_t *time_us; /* of sounds, when they begin (sound_run); NULL: anywhere */
};
/* Of what is known of a sample, what is in its record, and in the head of kept pixels, which must be from a
 * cut that all those pipelines have, with key's draws. 0, or PIPELINE_E_BAD with *ret_error. */
int pipeline_run_look(struct pipeline_run *run, uint32_t variants, const struct pipeline_key *key,
		      struct pipeline_input *input, struct pipeline_error *ret_error);

/* pipeline_run.c: may one run be of both, as far as they decode? */
bool pipeline_run_is_alike(const struct pipeline *a, const struct pipeline *b);
/* A sample that was looked at. As pipeline_run_sample. */
int pipeline_run_input(struct pipeline_run *run, uint32_t variants, struct pipeline_input *input,
		       const struct pipeline_key *key, const struct pipeline_out out[],
		       struct pipeline_error *ret_error);

/* pipeline.c: what is in pipeline->ops; whole is a copy, which is changed. 0, PIPELINE_E_BAD with diag, -ENOMEM. */
int pipeline_compile_ops(struct pipeline *pipeline, struct op_list *whole, struct diag *diag);
/* Why a view cannot have that name, or NULL. */
const char *pipeline_check_view(const struct pipeline *pipeline, const char *name);
/* The field's type and shape are those. */
void pipeline_set_field(struct pipeline_field *field, enum pipeline_dtype dtype, unsigned ndim,
			const uint64_t *shape);
void pipeline_set_image(struct pipeline_field *field, const struct shape *shape);
void pipeline_add_field(struct pipeline *pipeline, const char *name, enum pipeline_dtype dtype,
			unsigned ndim, const uint64_t *shape);
void pipeline_add_image(struct pipeline *pipeline, const char *name, const struct shape *shape);
/* Behind the tail's ops on it. */
void pipeline_add_label(struct pipeline *pipeline);
/* What may stand behind ops on what is no picture: what leaves samples out by their class, or works on the label. Else why not. */
const char *pipeline_check_tail(const struct pipeline *pipeline);
/* What comes beside a sample's first field, behind its label. 0, or PIPELINE_E_BAD with diag. */
int pipeline_set_fields(struct pipeline *pipeline, struct diag *diag);
/* Views, of which all are files of their own, and the canonical texts. 0, PIPELINE_E_BAD with diag, -ENOMEM. */
int pipeline_set_sides(struct pipeline *pipeline, struct op_list *whole, const struct views *views,
		       struct diag *diag);
/* Of a list whose first op may be bands. 0, or PIPELINE_E_BAD with diag. */
int pipeline_check_bands(const struct op_list *ops, const struct shape *shape, struct diag *diag);
/* What chooses by boxes has some, on the first picture. As above. */
int pipeline_check_choices(const struct op_list *ops, const struct shape *shape, bool are_boxes,
			   struct diag *diag);

/* pipeline_side.c: views that begin with a first op of their own. */
/* Of those views what they are compiled to, and their fields: 0, PIPELINE_E_BAD with diag, -ENOMEM. */
int pipeline_side_add_all(struct pipeline *pipeline, const struct op_list *whole,
			  const struct views *views, struct diag *diag);
/* Of a medium that has no views of the same file. 0, or PIPELINE_E_BAD with diag. */
int pipeline_side_refuse_others(const struct pipeline *pipeline, const struct op_list *whole,
				const struct views *views, struct diag *diag);
/* May one run be of both pipelines' sides? */
bool pipeline_sides_are_alike(const struct pipeline *a, const struct pipeline *b);
int pipeline_side_run_add(
    struct pipeline_run *run); /* room for those of its pipelines: 0 or -ENOMEM */
/* Of a sample whose record is checked, and whose clip is open. 0, or PIPELINE_E_BAD with *ret_error. */
int pipeline_side_run_all(struct pipeline_run *run, uint32_t variants,
			  const struct pipeline_input *input, const struct pipeline_key *key,
			  const struct pipeline_out out[], struct pipeline_error *ret_error);
/* pipeline_duration.c */
bool pipeline_duration_is_of_video(const struct pipeline *pipeline);

/* pipeline_clip.c: the frames of the open clip, one after another, through the parts whose bit is set in `who`, whose
 * out is where the first one goes. As drive_sample. */
int pipeline_run_clip(struct pipeline_run *run, uint32_t who, const struct pipeline_key *key,
		      struct pipeline_error *ret_error);

/* pipeline_companion.c: further pictures of a sample, and what was measured of the first one. Of these compile: 0, PIPELINE_E_BAD with diag, -ENOMEM. */
/* Takes those out of the list. */
int pipeline_companion_take_ends(struct op_list *ops, struct companion_ends *ret,
				 struct diag *diag);
/* Field number f has the name of that view: it has its ops, the first of which draws by that number. */
int pipeline_companion_set_view(struct pipeline *pipeline, unsigned f, const struct op_list *whole,
				const struct views_one *one, unsigned draws, struct diag *diag);
/* All others of the pipeline's fields, which follow its first picture. */
int pipeline_companion_set_all(struct pipeline *pipeline, struct diag *diag);
void pipeline_companion_free(struct companion *companion);
/* The error is from now on about the field of that name. PIPELINE_E_BAD */
int pipeline_companion_fail(const char *name, struct pipeline_error *error);
/* Has it random ops of its own? */
bool pipeline_companion_is_random(const struct companion *companion);
/* Room for those of that pipeline: 0 or -ENOMEM. */
int pipeline_companion_run_add(struct pipeline_run *run, const struct pipeline *pipeline);
/* What they follow: the first picture. */
struct companion_first {
	uint32_t height, width;
	const struct draw_choice *choices; /* of its ops */
	const double *step;                /* what these did to steps on it (follow.h) */
};
/* From the sample's record into their fields. Nothing is open. 0, or PIPELINE_E_BAD with *ret_error. */
int pipeline_companion_run_all(struct pipeline_run *run, const struct pipeline *pipeline,
			       const struct packed *record, const struct companion_first *first,
			       const struct pipeline_key *key, const struct pipeline_out *out,
			       struct pipeline_error *ret_error);
