/*
 * The screen of `sentry-profctl top`, by ncurses: draws a struct top_view and reads keys. A process
 * has one screen, which top_screen_open() opens before all other calls.
 *
 * Names come from targets. Control characters, and characters that do not have a column of their
 * own on a terminal, are escaped.
 *
 * While the screen is open, stderr of the process is a memfd, so that log lines do not disturb the
 * screen. top_screen_message() returns the last line, and top_screen_close() copies all lines to
 * the real stderr.
 */
#ifndef DAEMON_CTL_TOP_TOP_SCREEN_H
#define DAEMON_CTL_TOP_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/ctl/top/top_model.h"
#include "daemon/ctl/top/top_targets.h"
#include "lib/base/util.h"

/* The size of a text in bytes, with the NUL. */
#define TOP_TEXT 512

enum top_list {
	TOP_LIST_TARGETS,
	TOP_LIST_FUNCTIONS,
	TOP_LIST_THREADS,
	TOP_LIST_CALLERS,
};

struct top_view {
	enum top_list list;
	const struct top_rows *rows;	   /* drawn unless list is TOP_LIST_TARGETS */
	const struct top_targets *targets; /* drawn if list is TOP_LIST_TARGETS */
	/* How the caller has sorted rows and targets; top_screen_draw() does not sort. */
	struct top_order order;
	enum top_target_order target_order;
	uint64_t now_ns;  /* the time that is 100 % for top_row.now */
	bool shows_ready; /* with columns of ready time */
	size_t selected;  /* the index of the selected row */
	size_t first;	  /* index of the first row shown; set by top_screen_draw() */
	/* The first, second and last line of the screen. If message is "", the keys are shown. */
	char title[TOP_TEXT], subtitle[TOP_TEXT], message[TOP_TEXT];
	/* is_paused is not drawn: the caller writes it into title. The help replaces the list. */
	bool is_paused, shows_help;
	bool full_names; /* C++ and Rust names are not shortened (lib/base/short_names.h) */
};

/*
 * Opens the screen on the terminal of stdin and stdout, and sets the locale for characters.
 * Returns 0, or -errno after a line on stderr.
 */
must_check int top_screen_open(void);

/* Restores the terminal and stderr. Does nothing if the screen is not open. */
void top_screen_close(void);

/* Draws the whole screen. Changes v->first so that the selected row is visible. */
void top_screen_draw(struct top_view *v);

enum top_key {
	TOP_KEY_NONE, /* no key was pressed */
	TOP_KEY_UP = 0x100,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_ENTER, /* also the right arrow */
	TOP_KEY_BACK,  /* Backspace, Esc or the left arrow */
	TOP_KEY_OTHER, /* any other key; also a change of the window size */
};

/*
 * Returns the next key: an enum top_key, or an ASCII character below 0x80; TOP_KEY_NONE if no key
 * was pressed. k and j, as in vi, are TOP_KEY_UP and TOP_KEY_DOWN. Does not block: the caller polls
 * stdin.
 */
int top_screen_key(void);

/* Returns how many rows of a list fit on the screen. */
size_t top_screen_rows(void);

/*
 * Copies the last line that the process has written to stderr, without the name of the program.
 * Returns false if nothing was written since the previous call.
 */
bool top_screen_message(char ret[TOP_TEXT]);

#endif
