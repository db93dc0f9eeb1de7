/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of access-top, declared once: what they do, the help on the screen and access-top(1).
 * KEY(key, another, a third, action of top_keys.c, names, help); 0: there is none
 */
/* clang-format off */
KEY('h', '?', TOP_KEY_F1, help, "h ? F1", "this help; any key leaves it")
KEY('q', TOP_KEY_F10, 0, quit, "q F10", "quit; in a page: back")
KEY('\t', TOP_KEY_RIGHT, 0, next_view, "Tab Right", "the next view; 1 to 8: that view")
KEY(TOP_KEY_BACK_TAB, TOP_KEY_LEFT, 0, last_view, "Shift-Tab Left", "the view before")
KEY(TOP_KEY_UP, 'k', 0, up, "Up k", "up; PgUp and Home: a page, to the first")
KEY(TOP_KEY_DOWN, 'j', 0, down, "Down j", "down; PgDn and End: a page, to the last")
KEY(TOP_KEY_PAGE_UP, 0, 0, page_up, NULL, NULL)
KEY(TOP_KEY_PAGE_DOWN, 0, 0, page_down, NULL, NULL)
KEY(TOP_KEY_HOME, 0, 0, first, NULL, NULL)
KEY(TOP_KEY_END, 0, 0, last, NULL, NULL)
KEY(TOP_KEY_ENTER, TOP_KEY_F1 + 4, 0, expand, "Enter F5", "the job under the cursor alone, and where its time goes")
KEY('/', TOP_KEY_F1 + 2, 0, search, "/ F3", "search: to the next row that has the text")
KEY('\\', TOP_KEY_F1 + 3, 0, filter, "\\ F4", "filter: only rows that have the text; empty: all")
KEY('u', 0, 0, user, "u", "only rows of a user; empty: of all")
KEY('>', '.', TOP_KEY_F1 + 5, sort, "> . F6", "choose the column that rows are sorted by")
KEY('I', 0, 0, invert, "I", "the other way round")
KEY('R', 0, 0, by_rate, "R", "sort by rate")
KEY('W', 0, 0, by_wait, "W", "sort by how much a job waits")
KEY('S', 0, 0, by_saved, "S", "sort by what was saved")
KEY('Z', 0, 0, pause, "Z", "stop the screen, or go on")
KEY(TOP_KEY_ESCAPE, 0, 0, back, "Esc", "back; takes away filter and user")
#undef KEY
/* clang-format on */
