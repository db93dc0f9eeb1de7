/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The one file that knows curses. It shows a grid and gives keys; what is on the grid and what keys mean is elsewhere.
 * Curses' own handlers give the terminal back on SIGINT, SIGTERM and SIGTSTP, and SIGWINCH becomes a key of size. Without
 * colours, by the terminal or by NO_COLOR, styles are bold, underlined and reversed.
 */

#define NCURSES_WIDECHAR 1
#include "tools/top/top_screen.h"

#include <curses.h>
#include <langinfo.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/top/top_view.h"

#define SCREEN_ESCAPE_MS 25 /* what follows an Esc later is a key of its own */

static struct {
	SCREEN *screen;
	bool has_colors;
	attr_t style[TOP_STYLES];
} top_screen;

bool top_screen_is_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* Of a style: a colour in front of another, and what it is without colours. */
static const struct {
	short front, back;
	attr_t with, without;
} screen_styles[TOP_STYLES] = {
    [TOP_PLAIN] = {-1, -1, A_NORMAL, A_NORMAL},
    [TOP_BOLD] = {COLOR_CYAN, -1, A_NORMAL, A_BOLD},
    [TOP_DIM] = {-1, -1, A_DIM, A_NORMAL},
    [TOP_TITLE] = {-1, -1, A_BOLD, A_BOLD | A_UNDERLINE},
    [TOP_HEADER] = {COLOR_BLACK, COLOR_GREEN, A_NORMAL, A_REVERSE},
    [TOP_SORTED] = {COLOR_BLACK, COLOR_CYAN, A_NORMAL, A_REVERSE | A_UNDERLINE},
    [TOP_SELECTED] = {COLOR_BLACK, COLOR_CYAN, A_NORMAL, A_REVERSE | A_BOLD},
    [TOP_KEY] = {-1, -1, A_NORMAL, A_NORMAL},
    [TOP_LABEL] = {COLOR_BLACK, COLOR_CYAN, A_NORMAL, A_REVERSE},
    [TOP_GOOD] = {COLOR_GREEN, -1, A_NORMAL, A_NORMAL},
    [TOP_BUSY] = {COLOR_YELLOW, -1, A_NORMAL, A_NORMAL},
    [TOP_BAD] = {COLOR_RED, -1, A_BOLD, A_BOLD},
    [TOP_BAR] = {COLOR_GREEN, -1, A_NORMAL, A_NORMAL},
    [TOP_PART_STYLE + TOP_PART_SCAN] = {COLOR_BLACK, COLOR_WHITE, A_NORMAL, A_NORMAL},
    [TOP_PART_STYLE + TOP_PART_READ] = {COLOR_BLACK, COLOR_YELLOW, A_NORMAL, A_NORMAL},
    [TOP_PART_STYLE + TOP_PART_DECODE] = {COLOR_BLACK, COLOR_RED, A_NORMAL, A_NORMAL},
    [TOP_PART_STYLE + TOP_PART_SLOT] = {COLOR_BLACK, COLOR_MAGENTA, A_NORMAL, A_NORMAL},
    [TOP_PART_STYLE + TOP_PART_WORKERS] = {COLOR_BLACK, COLOR_BLUE, A_NORMAL, A_NORMAL},
    [TOP_PART_STYLE + TOP_PART_SCHEDULE] = {COLOR_BLACK, COLOR_CYAN, A_NORMAL, A_NORMAL},
    [TOP_PART_STYLE + TOP_PART_DRAIN] = {COLOR_BLACK, COLOR_WHITE, A_NORMAL, A_NORMAL},
    [TOP_PART_STYLE + TOP_PART_ITSELF] = {COLOR_BLACK, COLOR_GREEN, A_NORMAL, A_REVERSE},
    [TOP_PART_STYLE + TOP_PART_STOPPED] = {COLOR_WHITE, COLOR_RED, A_BOLD, A_BOLD},
};
_Static_assert((int)TOP_STYLES == (int)TOP_PART_STYLE + (int)TOP_PARTS, "a style for each part");

static void screen_colors(void)
{
	const char *none = getenv("NO_COLOR");

	top_screen.has_colors = !(none && *none) && has_colors();
	if (top_screen.has_colors) {
		start_color();
		use_default_colors();
	}
	for (unsigned i = 0; i < TOP_STYLES; i++) {
		top_screen.style[i] = screen_styles[i].without;
		if (!top_screen.has_colors)
			continue;
		top_screen.style[i] = screen_styles[i].with;
		if (screen_styles[i].front < 0 && screen_styles[i].back < 0)
			continue;
		init_pair((short)(i + 1), screen_styles[i].front, screen_styles[i].back);
		top_screen.style[i] |= (attr_t)COLOR_PAIR((int)i + 1);
	}
}

int top_screen_open(struct diag *diag)
{
	const char *term = getenv("TERM");

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return diag_fail(
		    diag, 1,
		    "this is no terminal: -b prints what the screen would show, --json a "
		    "line of JSON");
	top_screen.screen = newterm(NULL, stdout, stdin);
	if (!top_screen.screen)
		return diag_fail(
		    diag, 1,
		    "the terminal \"%s\" is not known here: set TERM, as in TERM=vt100, or use -b",
		    term ? term : "");
	set_escdelay(SCREEN_ESCAPE_MS);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	screen_colors();
	return 0;
}

void top_screen_close(void)
{
	if (!top_screen.screen)
		return;
	endwin();
	delscreen(top_screen.screen);
	top_screen.screen = NULL;
}

void top_screen_size(unsigned *ret_width, unsigned *ret_height)
{
	*ret_width = (unsigned)BASE_MAX(getmaxx(stdscr), 1);
	*ret_height = (unsigned)BASE_MAX(getmaxy(stdscr), 1);
}

void top_screen_show(const struct top_grid *grid)
{
	erase();
	for (unsigned y = 0; y < grid->height; y++)
		for (unsigned x = 0; x < grid->width; x++) {
			const struct top_cell *cell = &grid->cell[(size_t)y * grid->width + x];

			if (!cell->text[0])
				continue;
			attrset((int)top_screen.style[cell->style]);
			mvaddstr((int)y, (int)x, cell->text);
		}
	attrset(A_NORMAL);
	refresh();
}

static int screen_key_of(int key)
{
	static const struct {
		int curses, ours;
	} keys[] = {
	    {KEY_UP, TOP_KEY_UP},         {KEY_DOWN, TOP_KEY_DOWN},
	    {KEY_LEFT, TOP_KEY_LEFT},     {KEY_RIGHT, TOP_KEY_RIGHT},
	    {KEY_PPAGE, TOP_KEY_PAGE_UP}, {KEY_NPAGE, TOP_KEY_PAGE_DOWN},
	    {KEY_HOME, TOP_KEY_HOME},     {KEY_END, TOP_KEY_END},
	    {KEY_BTAB, TOP_KEY_BACK_TAB}, {KEY_BACKSPACE, TOP_KEY_BACKSPACE},
	    {127, TOP_KEY_BACKSPACE},     {8, TOP_KEY_BACKSPACE},
	    {KEY_ENTER, TOP_KEY_ENTER},   {'\r', TOP_KEY_ENTER},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(keys); i++)
		if (keys[i].curses == key)
			return keys[i].ours;
	if (key >= KEY_F(1) && key <= KEY_F(10))
		return TOP_KEY_F1 + key - KEY_F(1);
	return key < 256 ? key : 0;
}

int top_screen_key(int timeout_ms)
{
	struct pollfd pollfd = {.fd = STDIN_FILENO, .events = POLLIN};
	int key = getch();

	if (key == ERR) {
		if (poll(&pollfd, 1, timeout_ms) < 0 && errno != EINTR)
			return 0;
		if (pollfd.revents & (POLLHUP | POLLERR | POLLNVAL) && !(pollfd.revents & POLLIN))
			return 'q'; /* the terminal is gone */
		key = getch();
	}
	return key == ERR ? 0 : screen_key_of(key);
}
