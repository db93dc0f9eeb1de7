/* SPDX-License-Identifier: Apache-2.0 */
/* Every item of every message of a reader (base/items.h says how, storage/reader.h what it means). */
MESSAGE(progress, PROGRESS, NOTHING)
NUMBER(progress, ID, id, MUST, "the opening's number")
NUMBER(progress, FOLDERS, folders, MUST, "the number of folders")
NUMBER(progress, FILES, files, MUST, "the number of files")

MESSAGE(opened, OPENED, NOTHING)
NUMBER(opened, ID, id, MUST, "the opening's number")
NUMBER(opened, DEVICE, device, MUST, "the root's device")
NUMBER(opened, INODE, inode, MUST, "the root's inode")
NUMBER(opened, STAMP, stamp, MAY, "the file's time of change")
TEXT(opened, WAY, way, 0, WIRE_MAX, MAY, "where its root is")
TEXT(opened, SHOWN, shown, 0, WIRE_MAX, MAY, "what people call it")
NUMBER(opened, FLEETING, is_fleeting, MUST, "whether the index is sooner made than stored")
NUMBER(opened, MADE, is_made, MAY, "whether processes of the user's make its samples")
NUMBER_FD(opened, INDEX, index, MAY, "the index")

MESSAGE(looked, LOOKED, NOTHING)
NUMBER(looked, ID, id, MUST, "the opening's number")
NUMBER(looked, DEVICE, device, MUST, "the root's device")
NUMBER(looked, INODE, inode, MUST, "the root's inode")
NUMBER(looked, OPENNESS, is_open, MUST, "whether the way to it is open")

MESSAGE(refused, REFUSED, NOTHING)
NUMBER(refused, ID, id, MUST, "the opening's number")
SMALL(refused, QUEUE, queue, MAY, "the queue")
NUMBER(refused, CODE, code, MUST, "the code of an error")
TEXT(refused, TEXT, text, 0, WIRE_MAX, MUST, "an error's text")

MESSAGE(attached, ATTACHED, NOTHING)
SMALL(attached, QUEUE, queue, MUST, "the queue")

MESSAGE(detached, DETACHED, NOTHING)
SMALL(detached, QUEUE, queue, MUST, "the queue")

MESSAGE(state, STATE, NOTHING)
FIXED(state, STATE, state, sizeof(struct reader_state), MUST, "the store's state")
TEXT(state, TEXT, why, 0, WIRE_MAX, MUST, "why there is no store")

MESSAGE(formed, FORMED, NOTHING)
SMALL(formed, QUEUE, queue, MUST, "the queue")
NUMBER(formed, FORM, form, MUST, "the form")
NUMBER_FD(formed, TABLE, table, MAY, "the form's table")
TEXT(formed, TEXT, why, 0, WIRE_MAX, MAY, "why there is no table")

MESSAGE(chore_progress, CHORE_PROGRESS, NOTHING)
NUMBER(chore_progress, ID, id, MUST, "the chore's number")
NUMBER(chore_progress, FILES, done, MUST, "what is done")
NUMBER(chore_progress, FOLDERS, total, MUST, "what is to do")

MESSAGE(chore_done, CHORE_DONE, NOTHING)
NUMBER(chore_done, ID, id, MUST, "the chore's number")
NUMBER(chore_done, CODE, code, MUST, "the code of an error")
TEXT(chore_done, TEXT, text, 0, WIRE_MAX, MUST, "an error's text")
NUMBER_FD(chore_done, LIST, list, MAY, "the list of what is kept")

MESSAGE(ask_unread, ASK_UNREAD, NOTHING)
NUMBER(ask_unread, ID, id, MUST, "the question's number")

MESSAGE(wrong, WRONG, NOTHING)
NUMBER(wrong, ID, id, MUST, "a node's id")
NUMBER(wrong, SAMPLE, sample, MUST, "the sample")

MESSAGE(revisited, REVISITED, NOTHING)
NUMBER(revisited, ID, id, MUST, "the question's number")
SMALL(revisited, QUEUE, queue, MUST, "the queue")
NUMBER(revisited, CODE, code, MUST, "whether all are the same")

MESSAGE(failed, FAILED, NOTHING)
SMALL(failed, QUEUE, queue, MUST, "the queue")
NUMBER(failed, ROW, row, MUST, "the row")
NUMBER(failed, TASK, task, MUST, "the task")
NUMBER(failed, SAMPLE, sample, MUST, "the sample")
