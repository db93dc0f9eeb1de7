/* SPDX-License-Identifier: Apache-2.0 */
/* Every item of every message of accessd to its reader (base/items.h says how, storage/reader.h what it means). */
MESSAGE(start, START, NOTHING)
FD(start, doorbell, MUST, "the doorbell")
FD(start, event, MUST, "the eventfd")
FD(start, rings, MAY, "the write-back ring")
FD(start, resident, MAY, "the resident memory")
NUMBER(start, DIRECT, direct, MAY, "what is read past the page cache")
NUMBER(start, HUGE, may_be_huge, MAY, "whether there are huge pages")

MESSAGE(open, OPEN, NOTHING)
NUMBER(open, ID, id, MUST, "the opening's number")
TEXT(open, PATH, path, 0, WIRE_MAX, MUST, "the dataset's path")
NUMBER(open, HOW, how, MAY, "how it is opened")
NUMBER(open, LIMIT, most, MAY, "the limit of memory")
FD(open, stored, MAY, "the stored index")

MESSAGE(cancel, CANCEL, NOTHING)
NUMBER(cancel, ID, id, MUST, "the opening's number")

MESSAGE(attach, ATTACH, NOTHING)
NUMBER(attach, ID, id, MUST, "the opening's number")
NUMBER(attach, QUEUE, queue, MUST, "the queue")
FD(attach, queue_memory, MUST, "the queue's memory")
FD(attach, arena, MUST, "the arena")

MESSAGE(detach, DETACH, NOTHING)
NUMBER(detach, QUEUE, queue, MUST, "the queue")

MESSAGE(store, STORE, NOTHING)
NUMBER(store, LIMIT, limit, MUST, "the store's limit")
NUMBER(store, FORCE, force, MUST, "whether it is forced")
NUMBER(store, SUSPECT, suspect, MUST, "whether it is suspect")
TEXT(store, TEXT, why, 0, WIRE_MAX, MAY, "why there is no store")
FD(store, folder, MAY, "the store's folder")

MESSAGE(form, FORM, NOTHING)
NUMBER(form, QUEUE, queue, MUST, "the queue")
NUMBER(form, FORM, form, MUST, "the form")
FIXED(form, GROUP, group, sizeof(struct hash_id), MUST, "the group")
TEXT(form, NOTE, note, 0, WIRE_MAX, MUST, "the group's note")
NUMBER(form, SHARED, is_shared, MAY, "whether other nodes have the group")

MESSAGE(chore, CHORE, NOTHING)
NUMBER(chore, ID, id, MUST, "the chore's number")
NUMBER(chore, VERB, verb, MUST, "the chore")
FIXED(chore, GROUP, group, sizeof(struct hash_id), MAY, "the group")

MESSAGE(chore_cancel, CHORE_CANCEL, NOTHING)
NUMBER(chore_cancel, ID, id, MUST, "the chore's number")

MESSAGE(worth, WORTH, NOTHING)
NUMBER(worth, QUEUE, queue, MUST, "the queue")
NUMBER(worth, FORM, form, MUST, "the form")
NUMBER(worth, WORTH, worth, MUST, "what the form saves")

MESSAGE(yield, YIELD, NOTHING)
NUMBER(yield, QUEUE, queue, MUST, "the queue")
NUMBER(yield, FORM, form, MUST, "the form")
NUMBER(yield, YIELDS, yields, MUST, "whether it yields")

MESSAGE(memory, MEMORY, NOTHING)
NUMBER(memory, LIMIT, limit, MUST, "the limit of memory")
NUMBER(memory, MOST, is_most, MUST, "whether there is more")

MESSAGE(unread, UNREAD, NOTHING)
NUMBER(unread, ID, id, MUST, "the question's number")

MESSAGE(peers, PEERS, NOTHING)
NUMBER(peers, SELF, self, MUST, "the node's id")
NUMBER(peers, RECHECK, recheck_s, MAY, "how often sources are looked at")
NUMBER(peers, COMPARE, compare_each, MAY, "how many values are compared")
FD(peers, to, MUST, "the ring to write")
FD(peers, from, MUST, "the ring to read")

MESSAGE(members, MEMBERS, NOTHING)
NUMBER(members, WEIGHT, weight, MUST, "the node's weight")
BYTES(members, MEMBERS, members, 0, READER_MOST_MEMBERS * sizeof(struct reader_member), MUST,
      "the members")

MESSAGE(spread, SPREAD, NOTHING)
NUMBER(spread, QUEUE, queue, MUST, "the queue")
NUMBER(spread, NUMBER, number, MUST, "the node's place")
SMALL(spread, NODES, nodes, MUST, "the number of nodes")

MESSAGE(unmade, UNMADE, NOTHING)
NUMBER(unmade, QUEUE, queue, MUST, "the queue")
NUMBER(unmade, FORM, form, MUST, "the form")
NUMBER(unmade, SAMPLE, sample, MUST, "the sample")

MESSAGE(revisit, REVISIT, NOTHING)
NUMBER(revisit, ID, id, MUST, "the question's number")
NUMBER(revisit, QUEUE, queue, MUST, "the queue")
BYTES(revisit, SAMPLES, samples, 0, WIRE_MAX, MUST, "the samples")
