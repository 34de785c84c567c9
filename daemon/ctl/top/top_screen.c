#include "daemon/ctl/top/top_screen.h"

#include <locale.h>
#include <ncurses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <wchar.h>

#include "daemon/common/log.h"
#include "lib/base/short_names.h"
#include "lib/base/string_pool.h"
#include "lib/base/utf8.h"

/* Lines above and below the list. */
#define HEAD_LINES 3
#define FOOT_LINES 1

/* Of the list on the screen. */
#define ROWS_MAX 512u

/* Numbers of colour pairs. */
enum { PAIR_RUNNING = 1, PAIR_READY, PAIR_WAITING };

/* An escape character without another byte in this time is the key Esc. */
#define ESCAPE_MS 50

static struct {
	SCREEN *screen; /* NULL: the screen is not open */
	bool has_colours;
	int log_fd;    /* a memfd in place of stderr */
	int stderr_fd; /* the real stderr */
	off_t read;    /* how far top_screen_message() has read log_fd */
} own = {.log_fd = -1, .stderr_fd = -1};

/* Stderr. */

static int redirect_stderr(void)
{
	own.log_fd = memfd_create("stderr", MFD_CLOEXEC);
	own.stderr_fd = dup(STDERR_FILENO);
	own.read = 0;
	if (own.log_fd < 0 || own.stderr_fd < 0 || dup2(own.log_fd, STDERR_FILENO) < 0)
		return -errno;
	return 0;
}

static void restore_stderr(void)
{
	char bytes[1024];
	off_t at = 0;
	ssize_t n;

	if (own.stderr_fd >= 0)
		(void)dup2(own.stderr_fd, STDERR_FILENO);
	while (own.log_fd >= 0 && (n = pread(own.log_fd, bytes, sizeof(bytes), at)) > 0) {
		(void)!write_all(STDERR_FILENO, bytes, (size_t)n);
		at += n;
	}
	close_fd(&own.stderr_fd);
	close_fd(&own.log_fd);
}

bool top_screen_message(char ret[TOP_TEXT])
{
	/* What daemon/common/log.c writes before a line on a terminal. */
	static const char *const prefixes[] = {"\033[K", "sentry-profctl: "};
	char text[TOP_TEXT], *line;
	const off_t end = own.log_fd < 0 ? 0 : lseek(own.log_fd, 0, SEEK_CUR);
	off_t from = own.read;
	ssize_t n;

	if (end <= from)
		return false;
	if (end - from >= TOP_TEXT)
		from = end - (TOP_TEXT - 1);
	n = pread(own.log_fd, text, sizeof(text) - 1, from);
	own.read = end;
	if (n <= 0)
		return false;
	text[n] = '\0';
	if (text[n - 1] == '\n')
		text[n - 1] = '\0';
	line = strrchr(text, '\n');
	line = line == NULL ? text : line + 1;
	for (size_t i = 0; i < array_size(prefixes); i++)
		if (strncmp(line, prefixes[i], strlen(prefixes[i])) == 0)
			line += strlen(prefixes[i]);
	(void)snprintf(ret, TOP_TEXT, "%s", line);
	return true;
}

/* The terminal. */

int top_screen_open(void)
{
	const char *no_color = getenv("NO_COLOR");
	int r = redirect_stderr();

	(void)setlocale(LC_CTYPE, "");
	if (r == 0)
		own.screen = newterm(NULL, stdout, stdin);
	if (own.screen == NULL) {
		const char *term = getenv("TERM");

		restore_stderr();
		if (r < 0)
			log_error("top cannot keep log lines off the screen: %s", strerror(-r));
		else
			log_error("top cannot use this terminal: %s",
				  term == NULL ? "TERM is not set"
					       : "its TERM is unknown (try TERM=xterm)");
		return r < 0 ? r : -ENOTTY;
	}
	(void)cbreak();
	(void)noecho();
	(void)nonl();
	(void)nodelay(stdscr, TRUE);
	(void)keypad(stdscr, TRUE);
	(void)set_escdelay(ESCAPE_MS);
	(void)curs_set(0);
	own.has_colours = false;
	if ((no_color == NULL || no_color[0] == '\0') && has_colors() && start_color() == OK &&
	    use_default_colors() == OK) {
		own.has_colours = true;
		(void)init_pair(PAIR_RUNNING, COLOR_YELLOW, -1);
		(void)init_pair(PAIR_READY, COLOR_RED, -1);
		(void)init_pair(PAIR_WAITING, COLOR_CYAN, -1);
	}
	return 0;
}

void top_screen_close(void)
{
	if (own.screen == NULL)
		return;
	(void)endwin();
	delscreen(own.screen);
	own.screen = NULL;
	restore_stderr();
}

int top_screen_key(void)
{
	static const struct {
		int curses, ours;
	} keys[] = {
		{KEY_UP, TOP_KEY_UP},	      {'k', TOP_KEY_UP},
		{KEY_DOWN, TOP_KEY_DOWN},     {'j', TOP_KEY_DOWN},
		{KEY_PPAGE, TOP_KEY_PAGE_UP}, {KEY_NPAGE, TOP_KEY_PAGE_DOWN},
		{KEY_HOME, TOP_KEY_HOME},     {KEY_END, TOP_KEY_END},
		{KEY_ENTER, TOP_KEY_ENTER},   {'\r', TOP_KEY_ENTER},
		{'\n', TOP_KEY_ENTER},	      {KEY_RIGHT, TOP_KEY_ENTER},
		{KEY_LEFT, TOP_KEY_BACK},     {KEY_BACKSPACE, TOP_KEY_BACK},
		{0x7f, TOP_KEY_BACK},	      {'\b', TOP_KEY_BACK},
		{0x1b, TOP_KEY_BACK},
	};
	const int key = getch();

	if (key == ERR)
		return TOP_KEY_NONE;
	for (size_t i = 0; i < array_size(keys); i++)
		if (keys[i].curses == key)
			return keys[i].ours;
	return key > 0 && key < 0x80 ? key : TOP_KEY_OTHER;
}

size_t top_screen_rows(void)
{
	return LINES > HEAD_LINES + FOOT_LINES
		       ? min_size((size_t)(LINES - HEAD_LINES - FOOT_LINES), ROWS_MAX)
		       : 1;
}

/* Text. */

/*
 * Stores the next character of *s as text of at least one column and advances *s. Escapes
 * characters without a width: they would change their neighbours, as marks for the writing
 * direction do.
 */
static void next_character(const char **s, wchar_t ret[16])
{
	const size_t n = utf8_length(*s);
	const wchar_t c = n == 0 ? 0 : (wchar_t)utf8_code_point(*s, n);

	if (n == 0)
		(void)swprintf(ret, 16, L"\\x%02x", (uint8_t) * *s);
	else if (wcwidth(c) > 0)
		(void)swprintf(ret, 16, L"%lc", (wint_t)c);
	else if ((uint32_t)c < 0x100)
		(void)swprintf(ret, 16, L"\\x%02x", (uint32_t)c);
	else
		(void)swprintf(ret, 16, L"\\u{%x}", (uint32_t)c);
	*s += n == 0 ? 1 : n;
}

/* Returns the columns that s needs, or a number above max if it needs more than max. */
static int width_of(const char *s, int max)
{
	wchar_t text[16];
	int columns = 0;

	while (*s != '\0' && columns <= max) {
		next_character(&s, text);
		columns += wcswidth(text, 16);
	}
	return columns;
}

/*
 * Writes s at line y and column x, in at most so many columns; "..." replaces what does not
 * fit. Returns how many columns were used.
 */
static int put_text(int y, int x, int columns, const char *s)
{
	int at = 0, end;

	columns = columns < COLS - x ? columns : COLS - x;
	end = width_of(s, columns) <= columns ? columns : columns - 3;
	while (*s != '\0') {
		wchar_t text[16];
		int width;

		next_character(&s, text);
		width = wcswidth(text, 16);
		if (at + width > end) {
			if (end >= 0)
				(void)mvaddstr(y, x + at, "...");
			return columns;
		}
		(void)mvaddwstr(y, x + at, text);
		at += width;
	}
	return at;
}

/* Writes text as a whole line with these attributes. */
static void put_line(int y, const char *text, attr_t attributes)
{
	(void)attron(attributes);
	(void)mvhline(y, 0, ' ' | attributes, COLS);
	(void)put_text(y, 0, COLS, text);
	(void)attroff(attributes);
}

/* Times. */

/* Formats part as a percentage of whole: 100 % is one thread all the time. */
static void put_percent(char ret[16], uint64_t part_ns, uint64_t whole_ns)
{
	const double percent = whole_ns == 0 ? 0 : 100 * (double)part_ns / (double)whole_ns;

	if (part_ns == 0 || whole_ns == 0)
		(void)snprintf(ret, 16, "-");
	else
		(void)snprintf(ret, 16, percent < 9999.95 ? "%.1f" : "%.0f", percent);
}

static void put_seconds(char ret[16], uint64_t ns)
{
	const double seconds = (double)ns / (double)NS_PER_SEC;

	if (ns == 0)
		(void)snprintf(ret, 16, "-");
	else
		(void)snprintf(ret, 16, seconds < 9999.995 ? "%.2f" : "%.0f", seconds);
}

static attr_t colour_of(const struct top_row *row)
{
	if (!own.has_colours)
		return A_NORMAL;
	if (row->now.ready_ns > row->now.self_ns)
		return (attr_t)COLOR_PAIR(PAIR_READY);
	if (row->now.self_ns > 0)
		return (attr_t)COLOR_PAIR(PAIR_RUNNING);
	return row->now.waiting_ns > 0 ? (attr_t)COLOR_PAIR(PAIR_WAITING) : A_NORMAL;
}

/* The texts of the columns of times: of the last second, and since the start. */
struct times {
	char self[16], total[16], ready[16], waiting[16];
};

/* Joins the columns. Returns how many columns of the terminal they take. */
static int join_times(const struct top_view *v, const struct times *now, const struct times *all,
		      char ret[TOP_TEXT])
{
	if (!v->shows_ready)
		return snprintf(ret, TOP_TEXT, "%6s%7s%7s %8s%8s%8s  ", now->self, now->total,
				now->waiting, all->self, all->total, all->waiting);
	return snprintf(ret, TOP_TEXT, "%6s%7s%7s%7s %8s%8s%8s%8s  ", now->self, now->total,
			now->ready, now->waiting, all->self, all->total, all->ready, all->waiting);
}

static void put_row(const struct top_view *v, int y, const struct top_row *row, const char *name)
{
	struct times now, all;
	char times[TOP_TEXT];
	const bool is_thread = v->list == TOP_LIST_THREADS;
	int x;

	put_percent(now.self, row->now.self_ns, v->now_ns);
	put_percent(now.total, row->now.total_ns, v->now_ns);
	put_percent(now.ready, row->now.ready_ns, v->now_ns);
	put_percent(now.waiting, row->now.waiting_ns, v->now_ns);
	put_seconds(all.self, row->all.self_ns);
	put_seconds(all.total, row->all.total_ns);
	put_seconds(all.ready, row->all.ready_ns);
	put_seconds(all.waiting, row->all.waiting_ns);
	x = join_times(v, &now, &all, times);
	(void)put_text(y, 0, COLS, times);
	if (name[0] != '\0')
		x += put_text(y, x, COLS - x, name) + 1;
	if (row->detail[0] != '\0' && x < COLS)
		(void)put_text(y, x, COLS - x, is_thread ? row->detail : merge_base(row->detail));
}

static void put_target(int y, const struct top_target *t)
{
	char figures[TOP_TEXT] = "     -        -       -       -       -";
	char line[3 * TOP_TEXT];

	if (t->has_figures)
		(void)snprintf(figures, sizeof(figures), "%6u %8.0f %7.1f %7.0f %7.1f", t->threads,
			       t->samples_per_s, t->missed_per_s, t->pause_us,
			       t->bytes_per_s / 1000);
	(void)snprintf(line, sizeof(line), "%7d %-9.9s %4u %s  %s", t->pid, t->state, t->rate_hz,
		       figures, t->name);
	(void)put_text(y, 0, COLS, line);
}

/* Headings. */

static void put_header(const struct top_view *v, int y)
{
	static const char *const names[] = {
		[TOP_LIST_TARGETS] = "",
		[TOP_LIST_FUNCTIONS] = "FUNCTION, MODULE",
		[TOP_LIST_THREADS] = "THREAD, ID",
		[TOP_LIST_CALLERS] = "CALLER, MODULE",
	};
	static const struct times now = {"SELF%", "TOTAL%", "READY%", "WAIT%"};
	static const struct times all = {"SELF s", "TOTAL s", "READY s", "WAIT s"};
	char line[2 * TOP_TEXT], times[TOP_TEXT];

	(void)join_times(v, &now, &all, times);
	if (v->list == TOP_LIST_TARGETS)
		(void)snprintf(line, sizeof(line), "%7s %-9s %4s %6s %8s %7s %7s %7s  %s", "PID",
			       "STATE", "HZ", "THREAD", "SAMPLE/s", "MISS/s", "PAUSEus", "kB/s",
			       "NAME");
	else
		(void)snprintf(line, sizeof(line), "%s%s", times, names[v->list]);
	put_line(y, line, A_REVERSE);
}

static void put_help(void)
{
	static const char *const lines[] = {
		"SELF%, TOTAL%, READY%, WAIT%     of the last second; 100 is one thread "
		"all the time",
		"SELF s, TOTAL s, READY s, WAIT s seconds since the start of top; of callers and",
		"of the functions of one thread since they were chosen",
		"SELF: running in the function; TOTAL: also in functions it calls",
		"READY: in the function, runnable but without a processor (shown once it "
		"is 1 %",
		"of the running time); WAIT: blocked in it; for a caller: also below it",
		"",
		"s, t, r, w      sort by self, total, ready or waiting time",
		"a               sort by the last second or by the time since the start",
		"h               list the threads; Enter shows the functions of a thread",
		"c, Enter        list the callers of a function",
		"Esc, Backspace  back",
		"p, Space        pause; samples that arrive meanwhile are dropped",
		"q               quit",
		"",
		"List of targets: samples, missed samples and kB of chunks per "
		"second; PAUSEus",
		"is the 99th percentile of the stops in microseconds. s, u, b, "
		"n sort by",
		"samples, pause, bytes or name. Enter shows the functions of a "
		"target.",
	};

	for (size_t i = 0; i < array_size(lines); i++)
		(void)put_text(HEAD_LINES + (int)i, 2, COLS - 2, lines[i]);
}

static const char *keys_of(const struct top_view *v)
{
	if (v->list == TOP_LIST_TARGETS)
		return "s samples  u pause  b bytes  n name  Enter functions  ? help  q quit";
	return "s self  t total  r ready  w waiting  a since start  h threads  Enter  Esc  ?  q";
}

static size_t length_of(const struct top_view *v)
{
	return v->list == TOP_LIST_TARGETS ? v->targets->n : v->rows->n;
}

/*
 * Sets names to those of the rows on the screen: short, so that they differ from each other.
 * Without memory they are full.
 */
static void name_rows(const struct top_view *v, size_t n, struct string_pool *text,
		      const char **names)
{
	const char *full[ROWS_MAX];

	for (size_t i = 0; i < n; i++)
		names[i] = full[i] = v->rows->v[v->first + i].name;
	if (!v->full_names && v->list != TOP_LIST_THREADS &&
	    short_names_make(full, n, text, names) < 0)
		memcpy(names, full, n * sizeof(*names));
}

static void put_list(const struct top_view *v, size_t n_shown)
{
	const size_t n = min_size(length_of(v) - min_size(length_of(v), v->first), n_shown);
	const char *names[ROWS_MAX];
	struct string_pool text;

	string_pool_init(&text, 0);
	if (v->list != TOP_LIST_TARGETS)
		name_rows(v, n, &text, names);
	for (size_t i = 0; i < n; i++) {
		const size_t at = v->first + i;
		const int y = HEAD_LINES + (int)i;
		attr_t attributes = at == v->selected ? A_REVERSE : A_NORMAL;

		if (v->list != TOP_LIST_TARGETS)
			attributes |= colour_of(&v->rows->v[at]);
		(void)attron(attributes);
		if (at == v->selected)
			(void)mvhline(y, 0, ' ' | attributes, COLS);
		if (v->list == TOP_LIST_TARGETS)
			put_target(y, &v->targets->v[at]);
		else
			put_row(v, y, &v->rows->v[at], names[i]);
		(void)attroff(attributes);
	}
	string_pool_fini(&text);
}

void top_screen_draw(struct top_view *v)
{
	const size_t n_shown = top_screen_rows();

	if (v->selected < v->first)
		v->first = v->selected;
	if (v->selected >= v->first + n_shown)
		v->first = v->selected - n_shown + 1;
	(void)erase();
	put_line(0, v->title, A_BOLD);
	put_line(1, v->subtitle, A_NORMAL);
	put_header(v, 2);
	if (v->shows_help)
		put_help();
	else
		put_list(v, n_shown);
	put_line(LINES - 1, v->message[0] != '\0' ? v->message : keys_of(v),
		 v->message[0] != '\0' ? A_BOLD : A_DIM);
	(void)refresh();
}
