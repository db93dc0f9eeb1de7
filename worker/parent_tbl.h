/* SPDX-License-Identifier: Apache-2.0 */
/* Every item of every message of accessd to a worker parent (base/items.h says how, worker/parent.h what it means). */
MESSAGE(start, START, NOTHING)
FD(start, doorbell, MUST, "the doorbell")
FD(start, event, MUST, "the eventfd")
FD(start, rings, MAY, "the write-back rings")
FD(start, resident, MAY, "the resident memory")

MESSAGE(add, ADD, NOTHING)
NUMBER(add, QUEUE, queue, MUST, "the queue")
NUMBER(add, VARIANT, variant, MUST, "the variant")
TEXT(add, SPEC, spec, 0, WIRE_MAX, MUST, "the pipeline")
NUMBER(add, STRIDE, stride, MUST, "the stride of slots")
NUMBER(add, SLOTS_BYTES, slots_bytes, MUST, "the size of the slots")
BYTES(add, OFFSETS, offsets, 0, WIRE_MAX, MUST, "the fields' places")
FD(add, slots, MAY, "the slots")
FD(add, tasks, MAY, "the queue's memory")
FD(add, arena, MAY, "the arena")

MESSAGE(go, GO, NOTHING)
NUMBER(go, QUEUE, queue, MUST, "the queue")

MESSAGE(remove, REMOVE, NOTHING)
NUMBER(remove, QUEUE, queue, MUST, "the queue")
NUMBER(remove, VARIANT, variant, MAY, "the variant")

MESSAGE(kill, KILL, NOTHING)
NUMBER(kill, WORKER, worker, MUST, "the worker's number")

MESSAGE(size, SIZE, NOTHING)
NUMBER(size, WORKERS, workers, MUST, "the number of workers")
