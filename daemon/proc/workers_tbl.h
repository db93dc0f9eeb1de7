/* SPDX-License-Identifier: Apache-2.0 */
/* Every item of every message of a worker parent (base/items.h says how, worker/parent.h what it means). */
MESSAGE(added, ADDED, NOTHING)
SMALL(added, QUEUE, queue, MUST, "the queue")
NUMBER(added, VARIANT, variant, MUST, "the variant")

MESSAGE(refused, REFUSED, NOTHING)
SMALL(refused, QUEUE, queue, MUST, "the queue")
NUMBER(refused, VARIANT, variant, MUST, "the variant")
TEXT(refused, TEXT, text, 0, WIRE_MAX, MUST, "an error's text")

MESSAGE(removed, REMOVED, NOTHING)
SMALL(removed, QUEUE, queue, MUST, "the queue")
NUMBER(removed, VARIANT, variant, MAY, "the variant")

MESSAGE(started, STARTED, NOTHING)
SMALL(started, WORKER, owner, MUST, "the worker's number")
SMALL(started, INDEX, index, MUST, "the worker's place")
SMALL(started, PID, pid, MUST, "the worker's pid")

MESSAGE(exited, EXITED, NOTHING)
SMALL(exited, WORKER, owner, MUST, "the worker's number")
SMALL(exited, INDEX, index, MUST, "the worker's place")
SMALL(exited, STATUS, status, MUST, "how the worker ended")
NUMBER(exited, CPU_NS, cpu_ns, MUST, "the worker's CPU time")
