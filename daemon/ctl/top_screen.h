/*
 * The screen of sentry-profctl top, by ncurses. It draws what it is given, and
 * knows where nothing comes from. Texts are a target's: control characters, and
 * others that a terminal does not show in a column of their own, are escaped.
 *
 * While the screen is open, what the process writes to stderr is kept. It
 * reaches the real one when the screen is closed.
 */
#ifndef DAEMON_CTL_TOP_SCREEN_H
#define DAEMON_CTL_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/ctl/top_model.h"
#include "daemon/ctl/top_targets.h"
#include "lib/base/util.h"

#define TOP_TEXT 512

enum top_list {
	TOP_LIST_TARGETS,
	TOP_LIST_FUNCTIONS,
	TOP_LIST_THREADS,
	TOP_LIST_CALLERS,
};

struct top_view {
	enum top_list list;
	const struct top_rows *rows;	   /* of each list but the targets' */
	const struct top_targets *targets; /* of theirs */
	struct top_order order;
	enum top_target_order target_order;
	uint64_t now_ns, all_ns; /* what the rows' times are parts of */
	size_t selected;
	size_t first; /* the row at the top: top_screen_draw keeps it */
	char title[TOP_TEXT], subtitle[TOP_TEXT], message[TOP_TEXT];
	bool is_paused, shows_help;
};

/*
 * Takes over the terminal of standard input and output. Sets the locale of
 * characters. Returns 0, or -errno after a line on stderr.
 */
must_check int top_screen_open(void);

/* Gives the terminal back as it was. Nothing if the screen is not open. */
void top_screen_close(void);

void top_screen_draw(struct top_view *v);

enum top_key {
	TOP_KEY_NONE, /* none has been typed */
	TOP_KEY_UP = 0x100,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_ENTER,
	TOP_KEY_BACK,
	TOP_KEY_OTHER, /* also: the window has another size */
};

/* The next key that was typed: one of these, or an ASCII character. */
int top_screen_key(void);

/* Rows of a list that fit. */
size_t top_screen_rows(void);

/*
 * The last line that was written to stderr since the call before, without the
 * program's name. Returns false if there is none.
 */
bool top_screen_said(char ret[TOP_TEXT]);

#endif
