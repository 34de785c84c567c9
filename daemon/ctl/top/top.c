#include "daemon/ctl/top/top.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/common/log.h"
#include "daemon/common/option_fault.h"
#include "daemon/ctl/common/inputs.h"
#include "daemon/ctl/common/private_daemon.h"
#include "daemon/ctl/common/recording.h"
#include "daemon/ctl/top/top_model.h"
#include "daemon/ctl/top/top_screen.h"
#include "daemon/ctl/top/top_targets.h"
#include "daemon/process/process.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/unwind/unwind.h"

enum {
	EXIT_SIGNAL = 128,
};

/* How often the list of targets is refreshed. */
#define STATUS_NS NS_PER_SEC

/*
 * The columns of ready time appear when the ready time is 1 % of the running time: a smaller part
 * tells the user nothing.
 */
#define READY_SHOWN_PART 100

const char top_help[] =
	"\n"
	"top [PID|NAME]  show the functions, threads and callers of a process, second\n"
	"                by second; without an argument, all targets and what profiling\n"
	"                costs them; if no daemon runs, start a sentry-profd for PID\n"
	"\n"
	"  --names full     C++ and Rust names with template arguments and parameters\n";

struct top {
	const char *socket; /* NULL: not given */
	int32_t pid;	    /* 0: a name was given, or nothing */
	const char *name;

	struct private_daemon daemon;	     /* the daemon that top has started, if any */
	struct control_client status, watch; /* two connections; fd -1: closed */
	struct recording recording;
	char process[PROCESS_NAME_SIZE]; /* name of the recorded process */
	bool is_watching;		 /* the recording is open; the daemon may have ended it */
	struct top_model model;
	struct top_rows rows;
	struct top_targets targets;
	uint64_t next_status_ns;

	struct top_view view;
	/* The lists show functions of this thread ("": of all threads) and callers of function. */
	char thread[TOP_TEXT], function[TOP_TEXT];
	bool is_quitting;
};

static volatile sig_atomic_t ended_by;

static void on_signal(int number)
{
	ended_by = number;
}

static bool demangle(const char *raw, char *out, size_t size)
{
	return unwind_demangle(raw, true, out, size);
}

static void begin_model(struct top *t)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), 0) < 0)
		seed = 0;
	top_model_fini(&t->model);
	top_model_init(&t->model, demangle, seed);
	t->thread[0] = '\0';
	t->view.shows_ready = false;
}

/* Rows and titles. */

static void show_list(struct top *t, enum top_list list)
{
	t->view.list = list;
	t->view.selected = t->view.first = 0;
	t->view.shows_help = false;
}

/* Returns the sums that the list of the screen shows. */
static const struct top_sums *sums_of(const struct top *t)
{
	if (t->view.list == TOP_LIST_THREADS)
		return &t->model.threads;
	if (t->view.list == TOP_LIST_FUNCTIONS && t->thread[0] == '\0')
		return &t->model.functions;
	return &t->model.chosen;
}

static int list_rows(struct top *t)
{
	if (t->view.list == TOP_LIST_TARGETS)
		return 0;
	return top_model_rows(&t->model, sums_of(t), t->view.order, &t->rows);
}

static size_t length_of(const struct top *t)
{
	return t->view.list == TOP_LIST_TARGETS ? t->targets.n : t->rows.n;
}

/* Returns an id by which the row is found again after sorting. */
static uint64_t id_of(const struct top *t, size_t at)
{
	if (t->view.list == TOP_LIST_TARGETS)
		return (uint64_t)t->targets.v[at].pid;
	return t->rows.v[at].key;
}

/*
 * Returns the id of the selected row; TOP_NO_KEY if the selection stays at the first row, whichever
 * row that is.
 */
static uint64_t selected_id(const struct top *t)
{
	const size_t at = t->view.selected;

	return at == 0 || at >= length_of(t) ? TOP_NO_KEY : id_of(t, at);
}

/* Selects the row with this id, or, for TOP_NO_KEY or an unknown id, keeps the position. */
static void select_id(struct top *t, uint64_t id)
{
	const size_t n = length_of(t);

	for (size_t i = 0; id != TOP_NO_KEY && i < n; i++) {
		if (id_of(t, i) != id)
			continue;
		t->view.selected = i;
		return;
	}
	if (t->view.selected >= n)
		t->view.selected = n == 0 ? 0 : n - 1;
}

static const char *column_name(enum top_column column)
{
	switch (column) {
	case TOP_SELF:
		return "self";
	case TOP_TOTAL:
		return "total";
	case TOP_READY:
		return "ready";
	case TOP_WAITING:
		break;
	}
	return "waiting";
}

static const char *target_order_name(enum top_target_order order)
{
	switch (order) {
	case TOP_BY_SAMPLES:
		return "samples";
	case TOP_BY_PAUSE:
		return "pause";
	case TOP_BY_BYTES:
		return "bytes";
	case TOP_BY_NAME:
		break;
	}
	return "name";
}

/* Returns how many threads were in a state on average in the last second. */
static double threads_in(const struct top *t, uint64_t ns)
{
	return t->model.now_ns == 0 ? 0 : (double)ns / (double)t->model.now_ns;
}

static void title_process(struct top *t)
{
	struct top_view *v = &t->view;
	const struct top_row *whole = &t->model.threads.whole;
	/* The list has threads that have ended, too. */
	const size_t n_threads = t->model.last.n_threads;
	size_t length;

	/* The columns stay from now on, so that the other columns do not move to and fro. */
	if (whole->all.ready_ns > 0 && whole->all.ready_ns >= whole->all.self_ns / READY_SHOWN_PART)
		v->shows_ready = true;
	(void)snprintf(v->title, TOP_TEXT, "process %d (%s), %.0f s%s, %zu thread%s: %.2f run",
		       t->recording.pid, t->process, (double)t->model.all_ns / (double)NS_PER_SEC,
		       v->is_paused ? ", PAUSED" : "", n_threads, n_threads == 1 ? "" : "s",
		       threads_in(t, whole->now.self_ns));
	length = strlen(v->title);
	if (v->shows_ready)
		(void)snprintf(v->title + length, TOP_TEXT - length, ", %.2f ready",
			       threads_in(t, whole->now.ready_ns));
	length = strlen(v->title);
	(void)snprintf(v->title + length, TOP_TEXT - length, ", %.2f wait%s",
		       threads_in(t, whole->now.waiting_ns),
		       t->model.hides_ready ? " or ready" : "");
	v->now_ns = t->model.now_ns;
}

static void subtitle_process(struct top *t)
{
	struct top_view *v = &t->view;
	const char *since = !v->order.since_start	     ? "of the last second"
			    : sums_of(t) == &t->model.chosen ? "since it was chosen"
							     : "since the start";
	const char *by = column_name(v->order.column);
	const char *thread = t->thread[0] == '\0' ? "all threads" : t->thread;

	if (t->model.n_chunks == 0)
		(void)snprintf(v->subtitle, TOP_TEXT, "waiting for the first samples ...");
	else if (v->list == TOP_LIST_THREADS)
		(void)snprintf(v->subtitle, TOP_TEXT, "threads, by %s time %s", by, since);
	else if (v->list == TOP_LIST_FUNCTIONS)
		(void)snprintf(v->subtitle, TOP_TEXT, "functions of %.200s, by %s time %s", thread,
			       by, since);
	else
		(void)snprintf(v->subtitle, TOP_TEXT, "callers of %.160s in %.160s, by %s time %s",
			       t->function, thread, by, since);
}

static void title_targets(struct top *t)
{
	struct top_view *v = &t->view;

	(void)snprintf(v->title, TOP_TEXT, "sentry-profd at %s: %zu target%s%s", t->status.path,
		       t->targets.n, t->targets.n == 1 ? "" : "s", v->is_paused ? ", PAUSED" : "");
	(void)snprintf(v->subtitle, TOP_TEXT, "targets, by %s", target_order_name(v->target_order));
}

static int draw(struct top *t)
{
	const uint64_t id = selected_id(t);
	int r = list_rows(t);

	if (r < 0)
		return r;
	t->view.rows = &t->rows;
	t->view.targets = &t->targets;
	select_id(t, id);
	(void)top_screen_message(t->view.message);
	if (t->view.list == TOP_LIST_TARGETS) {
		title_targets(t);
	} else {
		title_process(t);
		subtitle_process(t);
	}
	top_screen_draw(&t->view);
	return 0;
}

/* The recording of a process. */

static void end_watch(struct top *t)
{
	if (t->is_watching)
		recording_close(&t->recording);
	t->is_watching = false;
	/* The daemon detaches from a process that it attached for this connection. */
	control_client_close(&t->watch);
}

/* Starts to record over the open connection. */
static int begin_watch(struct top *t, int32_t pid, const char *name)
{
	int r = recording_open(&t->watch, PROTOCOL_WATCH, pid, name, &t->recording);

	if (r < 0) {
		control_client_close(&t->watch);
		return r;
	}
	t->is_watching = true;
	process_name(t->recording.pid, t->process);
	begin_model(t);
	show_list(t, TOP_LIST_FUNCTIONS);
	return 0;
}

/* The seconds for which the last line has a text about lines, in place of the keys. */
#define LACKS_SHOWN_CHUNKS 5

static void say_lacks(struct top *t, const struct import_chunk *chunk)
{
	if (chunk->lacks_lines && t->model.n_chunks == 0)
		(void)snprintf(t->view.message, TOP_TEXT, "%s", RECORDING_LACKS_LINES);
	else if (t->model.n_chunks == LACKS_SHOWN_CHUNKS &&
		 strcmp(t->view.message, RECORDING_LACKS_LINES) == 0)
		t->view.message[0] = '\0';
}

static int add_chunk(void *ctx, const struct import_chunk *chunk)
{
	struct top *t = ctx;

	say_lacks(t, chunk);
	return top_model_add(&t->model, chunk);
}

static int take_payload(void *ctx, const char *payload, size_t size)
{
	struct top *t = ctx;

	return t->view.is_paused
		       ? 0
		       : inputs_read_bytes("a chunk of sentry-profd", payload, size, add_chunk, t);
}

static int take_chunk(struct top *t)
{
	int r = recording_next(&t->recording, take_payload, t);

	if (t->recording.has_new_note)
		(void)snprintf(t->view.message, TOP_TEXT, "process %d is %.300s", t->recording.pid,
			       t->recording.note);
	t->recording.has_new_note = false;
	if (t->recording.has_ended)
		(void)snprintf(t->view.message, TOP_TEXT, "%.300s (q quits)",
			       recording_end_text(&t->recording));
	return r == -EINTR || r > 0 ? 0 : r;
}

/* The list of targets. */

static int read_status(struct top *t, int fd, uint32_t size)
{
	struct buf json;
	int r = control_client_read(fd, size, &json);

	if (r == 0)
		r = top_targets_take(&t->targets, buf_string(&json), json.len, clock_mono_ns(),
				     t->view.target_order);
	buf_fini(&json);
	return r;
}

/*
 * Requests the status from the daemon. If the daemon has exited, tries to connect to its successor.
 */
static int take_status(struct top *t)
{
	struct protocol_answer answer;
	const uint64_t id = selected_id(t);
	int fd, r;

	t->next_status_ns = clock_mono_ns() + STATUS_NS;
	if (t->status.fd < 0) {
		if (control_client_open(t->status.path, true, &t->status) < 0)
			return 0;
		t->view.message[0] = '\0';
	}
	if (control_client_request(&t->status, PROTOCOL_STATUS, 0, NULL, &answer, &fd) < 0) {
		control_client_close(&t->status);
		(void)snprintf(t->view.message, TOP_TEXT,
			       "sentry-profd has ended: waiting for the next one "
			       "(q quits)");
		return 0;
	}
	r = answer.result == PROTOCOL_OK ? read_status(t, fd, answer.fd_bytes) : -EPROTO;
	close_fd(&fd);
	select_id(t, id);
	return r;
}

/* Keys. */

static void sort_targets(struct top *t, enum top_target_order order)
{
	t->view.target_order = order;
	top_targets_sort(&t->targets, order);
}

static void sort_rows(struct top *t, enum top_column column)
{
	t->view.order.column = column;
	t->view.selected = 0;
}

static void show_target(struct top *t)
{
	if (t->view.selected >= t->targets.n)
		return;
	if (control_client_open(t->status.path, false, &t->watch) == 0)
		(void)!begin_watch(t, t->targets.v[t->view.selected].pid, NULL);
}

/* Shows the functions of a thread; NULL: of all threads. */
static void show_functions(struct top *t, const struct top_row *thread)
{
	top_model_choose(&t->model, thread == NULL ? TOP_NO_KEY : thread->key, TOP_NO_KEY);
	if (thread == NULL)
		t->thread[0] = '\0';
	else
		(void)snprintf(t->thread, TOP_TEXT, "thread %s%s%s", thread->name,
			       thread->name[0] != '\0' ? " " : "", thread->detail);
	show_list(t, TOP_LIST_FUNCTIONS);
}

static void show_callers(struct top *t, const struct top_row *function)
{
	(void)snprintf(t->function, TOP_TEXT, "%s", function->name);
	top_model_choose(&t->model, t->model.chosen_thread, function->key);
	show_list(t, TOP_LIST_CALLERS);
}

static void enter(struct top *t)
{
	const size_t at = t->view.selected;

	if (t->view.list == TOP_LIST_TARGETS)
		show_target(t);
	else if (at >= t->rows.n || t->rows.v[at].key == TOP_NO_KEY)
		return;
	else if (t->view.list == TOP_LIST_THREADS)
		show_functions(t, &t->rows.v[at]);
	else
		show_callers(t, &t->rows.v[at]);
}

/* Returns to the list before this one. */
static void back(struct top *t)
{
	if (t->view.list == TOP_LIST_CALLERS) {
		top_model_choose(&t->model, t->model.chosen_thread, TOP_NO_KEY);
		show_list(t, TOP_LIST_FUNCTIONS);
	} else if (t->view.list == TOP_LIST_THREADS || t->thread[0] != '\0') {
		show_functions(t, NULL);
	} else if (t->view.list == TOP_LIST_FUNCTIONS && t->status.path != NULL) {
		end_watch(t);
		show_list(t, TOP_LIST_TARGETS);
		t->next_status_ns = 0;
	}
}

static void move(struct top *t, int key)
{
	const size_t page = top_screen_rows(), n = length_of(t);
	size_t at = t->view.selected;

	if (key == TOP_KEY_UP)
		at -= at > 0;
	else if (key == TOP_KEY_DOWN)
		at++;
	else if (key == TOP_KEY_PAGE_UP)
		at -= min_size(at, page);
	else if (key == TOP_KEY_PAGE_DOWN)
		at += page;
	else if (key == TOP_KEY_HOME)
		at = 0;
	else
		at = n;
	t->view.selected = n == 0 ? 0 : min_size(at, n - 1);
}

static void press_in_targets(struct top *t, int key)
{
	if (key == 's')
		sort_targets(t, TOP_BY_SAMPLES);
	else if (key == 'u')
		sort_targets(t, TOP_BY_PAUSE);
	else if (key == 'b')
		sort_targets(t, TOP_BY_BYTES);
	else if (key == 'n')
		sort_targets(t, TOP_BY_NAME);
}

static void press_in_rows(struct top *t, int key)
{
	if (key == 's')
		sort_rows(t, TOP_SELF);
	else if (key == 't')
		sort_rows(t, TOP_TOTAL);
	else if (key == 'r')
		sort_rows(t, TOP_READY);
	else if (key == 'w')
		sort_rows(t, TOP_WAITING);
	else if (key == 'a')
		t->view.order.since_start = !t->view.order.since_start;
	else if (key == 'h')
		show_list(t, TOP_LIST_THREADS);
	else if (key == 'c' && t->view.list != TOP_LIST_THREADS)
		enter(t);
}

static void press(struct top *t, int key)
{
	/* A key clears the message, but not the one about the end of the recording. */
	if (!t->is_watching || !t->recording.has_ended)
		t->view.message[0] = '\0';
	if (t->view.shows_help && key != 'q') {
		t->view.shows_help = false;
		return;
	}
	switch (key) {
	case 'q':
		t->is_quitting = true;
		break;
	case '?':
		t->view.shows_help = true;
		break;
	case 'p':
	case ' ':
		t->view.is_paused = !t->view.is_paused;
		break;
	case TOP_KEY_ENTER:
		enter(t);
		break;
	case TOP_KEY_BACK:
		back(t);
		break;
	case TOP_KEY_UP:
	case TOP_KEY_DOWN:
	case TOP_KEY_PAGE_UP:
	case TOP_KEY_PAGE_DOWN:
	case TOP_KEY_HOME:
	case TOP_KEY_END:
		move(t, key);
		break;
	default:
		if (t->view.list == TOP_LIST_TARGETS)
			press_in_targets(t, key);
		else
			press_in_rows(t, key);
	}
}

/* Handles all keys that were pressed. Each key acts on the list that the one before made. */
static int press_keys(struct top *t)
{
	int key, r = 0;

	while (r == 0 && !t->is_quitting && (key = top_screen_key()) != TOP_KEY_NONE) {
		press(t, key);
		r = list_rows(t);
	}
	return r;
}

/* The loop. */

static bool wants_status(const struct top *t)
{
	return t->view.list == TOP_LIST_TARGETS && !t->view.is_paused;
}

/* Waits for a key, a chunk, a signal, or the time of the next status. */
static int wait_for_event(const struct top *t, const sigset_t *mask, struct pollfd v[2])
{
	const uint64_t now_ns = clock_mono_ns();
	const uint64_t left_ns = t->next_status_ns > now_ns ? t->next_status_ns - now_ns : 0;
	const struct timespec timeout = {
		.tv_sec = (time_t)(left_ns / NS_PER_SEC),
		.tv_nsec = (long)(left_ns % NS_PER_SEC),
	};

	v[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
	v[1] = (struct pollfd){.fd = -1, .events = POLLIN};
	if (t->is_watching && !t->recording.has_ended)
		v[1].fd = t->recording.fd;
	if (ppoll(v, 2, wants_status(t) ? &timeout : NULL, mask) >= 0)
		return 0;
	/* After SIGWINCH, top_screen_key() returns a key. */
	v[0].revents = v[1].revents = 0;
	return errno == EINTR ? 0 : -errno;
}

static int run(struct top *t, const sigset_t *mask)
{
	struct pollfd v[2] = {0};
	int r = 0;

	while (r == 0 && !t->is_quitting && ended_by == 0) {
		if (wants_status(t) && clock_mono_ns() >= t->next_status_ns)
			r = take_status(t);
		if (r == 0)
			r = draw(t);
		if (r == 0)
			r = wait_for_event(t, mask, v);
		if (r == 0 && v[1].revents != 0)
			r = take_chunk(t);
		if (r == 0)
			r = press_keys(t);
		/* The terminal has been closed. */
		if ((v[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0)
			return 0;
	}
	return r;
}

/* Start. */

static bool parse(struct top *t, int argc, char **argv)
{
	enum { SOCKET = OPTION_LONG, NAMES };
	static const struct option options[] = {
		{"socket", required_argument, NULL, SOCKET},
		{"names", required_argument, NULL, NAMES},
		{0},
	};
	int option;

	while ((option = option_next(argv[0], argc, argv, ":", options, NULL)) != -1) {
		if (option == SOCKET)
			t->socket = optarg;
		else if (option != NAMES ||
			 !option_full_names(argv[0], optarg, &t->view.full_names))
			return false;
	}
	if (argc - optind > 1) {
		log_error("top takes one pid or name, or nothing (see --help)");
		return false;
	}
	return optind == argc ||
	       control_client_parse_target(argv[0], argv[optind], &t->pid, &t->name);
}

static int begin(struct top *t)
{
	int r;

	if (t->pid == 0 && t->name == NULL) {
		r = control_client_open(control_client_path(t->socket), false, &t->status);
		t->status.is_quiet = true;
		show_list(t, TOP_LIST_TARGETS);
		return r;
	}
	r = private_daemon_find(&t->daemon, t->socket, t->pid, &ended_by, &t->watch);
	return r < 0 ? r : begin_watch(t, t->pid, t->name);
}

/*
 * Replaces the signal handlers of ncurses, which would exit. If blocks is set, the signals are
 * delivered only in ppoll(2), with *ret_mask.
 */
static void catch_signals(bool blocks, sigset_t *ret_mask)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	const struct sigaction action = {.sa_handler = on_signal};
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < array_size(numbers); i++) {
		(void)sigaddset(&set, numbers[i]);
		(void)sigaction(numbers[i], &action, NULL);
	}
	(void)sigaddset(&set, SIGWINCH);
	if (blocks)
		(void)sigprocmask(SIG_BLOCK, &set, ret_mask);
}

static int show(struct top *t)
{
	sigset_t mask;
	int r = top_screen_open();

	if (r < 0)
		return r;
	catch_signals(true, &mask);
	r = run(t, &mask);
	top_screen_close();
	if (r < 0)
		log_error("top ends because of an error: %s", strerror(-r));
	return r;
}

int top_run(int argc, char **argv)
{
	struct top t = {
		.status = {.fd = -1},
		.watch = {.fd = -1},
		.daemon = {.profd.log_fd = -1},
	};
	int r;

	if (!parse(&t, argc, argv))
		return EXIT_USAGE;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		log_error("top needs a terminal; to write a profile to a file: "
			  "sentry-profctl record PID -o FILE");
		return EXIT_USAGE;
	}
	catch_signals(false, NULL);
	r = begin(&t);
	if (r == 0)
		r = show(&t);
	end_watch(&t);
	control_client_close(&t.status);
	private_daemon_end(&t.daemon);
	top_model_fini(&t.model);
	top_rows_fini(&t.rows);
	top_targets_fini(&t.targets);
	if (ended_by != 0 && ended_by != SIGINT)
		return EXIT_SIGNAL + ended_by;
	return r < 0 && ended_by == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
