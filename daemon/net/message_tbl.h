/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every item of every message that a client may send (base/items.h says how). What a message means is in
 * shmring/proto.h. Names that are only shown are cut, not refused, so they may have any length here.
 */
MESSAGE(hello, HELLO, NOTHING)
NUMBER(hello, MAJOR, major, MAY, "the protocol's major version")
NUMBER(hello, MINOR, minor, MAY, "the protocol's minor version")
TEXT(hello, PROGRAM, program, 0, WIRE_MAX, MAY, "the program's name")

MESSAGE(describe, DESCRIBE, MEMORY)
TEXT(describe, DATASET, dataset, 1, PARAM_TEXT_MAX, MUST, "the dataset's path")
TEXT(describe, PIPELINE, pipeline, 0, WIRE_MAX, MAY, "the pipeline")

MESSAGE(open, OPEN, SOMETHING)
FIXED(open, NONCE, nonce, MESSAGE_NONCE, MUST, "the nonce of WELCOME")
TEXT(open, DATASET, dataset, 1, PARAM_TEXT_MAX, MUST, "the dataset's path")
TEXT(open, PIPELINE, pipeline, 0, WIRE_MAX, MAY, "the pipeline")
TEXT(open, JOB, job, 0, WIRE_MAX, MAY, "the job's name")
NUMBER(open, BATCH, batch, MAY, "the batch size")
NUMBER(open, CHUNK, chunk, MAY, "the chunk's size")
NUMBER(open, EPOCHS, epochs, MAY, "the number of epochs")
NUMBER(open, POLICY, policy, MAY, "the policy for bad samples")
NUMBER(open, BUDGET, budget, MAY, "the budget of bad samples")
NUMBER(open, RANKS, ranks, MAY, "the number of ranks")
NUMBER(open, RANK, rank, MAY, "the rank")
NUMBER(open, LOCAL_RANKS, local_ranks, MAY, "the number of ranks on this node")
NUMBER(open, LOCAL_FIRST, local_first, WITH(LOCAL_RANKS), "the first rank on this node")
NUMBER(open, DROP_LAST, drop_last, WITH(LOCAL_RANKS), "whether a short last step is left out")
NUMBER(open, SPREAD, spread, WITH(LOCAL_RANKS), "whether samples of a step are spread")
NUMBER(open, ORDER, order, MAY, "the order")
NUMBER(open, SEED, seed, MAY, "the seed")
NUMBER(open, REUSE, reuse, MAY, "reuse")
NUMBER(open, EXACT, exact, MAY, "whether chunks are exact")
NUMBER(open, FILTERED, filtered, MAY, "whether classes are filtered")
TEXT(open, FORM, form, 0, MESSAGE_FORM_MAX, MAY, "keep: no form has a name of that length: it")
BYTES(open, TOKEN, token, 0, WIRE_MAX, MAY, "the resume token")
FIXED_FD(open, PART, part, MESSAGE_VERSION, MAY, "the part's dataset version")
FIXED(open, SPLIT, split, MESSAGE_SPLIT, WITH(PART), "the part's split")
NUMBER_FD(open, LOG, log, MAY, "the plan log")

MESSAGE(kick, KICK, NOTHING)

MESSAGE(explain, EXPLAIN, NOTHING)
NUMBER(explain, INSTANCE, instance, MAY, "the instance")
NUMBER(explain, POSITION, position, MAY, "the position")

MESSAGE(status, STATUS, MEMORY)

MESSAGE(plan, PLAN, NOTHING)
NUMBER_FD(plan, EPOCH, epoch, MUST, "the list of an epoch")

MESSAGE(cache, CACHE, MEMORY)
NUMBER(cache, VERB, verb, MUST, "what is to be done with what is kept")
FIXED(cache, GROUP, group, MESSAGE_VERSION, MAY, "the group's name")
TEXT(cache, WHO, who, 0, MESSAGE_WHO_MAX, MAY, "whose store it is")

MESSAGE(bad, BAD, MEMORY)
NUMBER(bad, JOB_ID, job_id, MUST, "the job's number")
NUMBER(bad, FROM, from, MAY, "the place in the list")
BYTES(bad, IDS, ids, 8, 8 * BAD_PAGE_IDS, MAY, "the samples")

MESSAGE(watch, WATCH, MEMORY)
NUMBER(watch, PERIOD, period, MAY, "the time between renewals")
