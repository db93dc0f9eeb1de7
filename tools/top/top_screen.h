/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The terminal. One at a time, by one thread. */

#include "tools/top/top_grid.h"

/* 0; 1 with diag: there is no terminal that can be drawn on. */
int top_screen_open(struct diag *diag);
void top_screen_close(void);
void top_screen_size(unsigned *ret_width, unsigned *ret_height);
void top_screen_show(const struct top_grid *grid);
/* The next key (enum top_key of top_view.h, or a character); 0: none came in that time, or the size changed. */
int top_screen_key(int timeout_ms);
/* May others than ASCII be shown? */
bool top_screen_is_utf8(void);
