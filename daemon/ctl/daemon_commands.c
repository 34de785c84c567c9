#include "daemon/ctl/daemon_commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "daemon/common/control_client.h"
#include "daemon/common/log.h"
#include "daemon/common/option_fault.h"
#include "daemon/ctl/common/status_table.h"
#include "daemon/process/process.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/digits.h"
#include "lib/base/escape.h"
#include "lib/base/util.h"

/* Before this version of the protocol the daemon answered DETACH before it had detached. */
#define DETACH_WAITS_VERSION 5

/* Seconds between two tables of --watch: the default and the maximum. */
#define WATCH_S	    2
#define WATCH_MAX_S 3600

/* How long attach waits for the attachment, and how often it looks. */
#define ATTACH_NS	(3 * NS_PER_SEC)
#define ATTACH_RETRY_NS (20 * NS_PER_MS)

enum argument { NO_ARGUMENT, A_PID, A_PID_OR_NAME };

struct command {
	const char *name;
	enum protocol_type type;
	enum argument argument;
	const char *done; /* printed after the pid or name on success */
	/*
	 * The result that says that nothing had to be changed: a success, too. PROTOCOL_OK:
	 * the command has none.
	 */
	enum protocol_result unchanged;
};

static const struct command commands[] = {
	{"status", PROTOCOL_STATUS, NO_ARGUMENT, "", PROTOCOL_OK},
	{"start", PROTOCOL_START, A_PID_OR_NAME, "started", PROTOCOL_RUNS_ALREADY},
	{"stop", PROTOCOL_STOP, A_PID_OR_NAME, "stopped", PROTOCOL_NOT_RUNNING},
	{"attach", PROTOCOL_ATTACH, A_PID, "attached", PROTOCOL_RUNS_ALREADY},
	{"detach", PROTOCOL_DETACH, A_PID, "detached", PROTOCOL_LEFT_OUT},
	{"profiler-id", PROTOCOL_PROFILER_ID, A_PID, "", PROTOCOL_OK},
	{"reload", PROTOCOL_RELOAD, NO_ARGUMENT, "reloaded", PROTOCOL_OK},
	{"metrics", PROTOCOL_METRICS, NO_ARGUMENT, "", PROTOCOL_OK},
};

const char daemon_commands_help[] =
	"Commands for the running daemon:\n"
	"\n"
	"status           what is profiled and what it costs; --json, --watch[=S]\n"
	"start PID|NAME   start to profile a process of the configuration, or all of\n"
	"                 [target \"NAME\"]\n"
	"stop PID|NAME    stop to profile it, or all of them\n"
	"attach PID       profile a process, whether configured or not\n"
	"detach PID       do not profile a process, whatever is configured; waits until\n"
	"                 a debugger can attach; --for=S: profiles it again after S s\n"
	"profiler-id PID  print the profiler_id that the chunks of a process have now\n"
	"reload           read the configuration again\n"
	"metrics          print metrics of the daemon for Prometheus; --openmetrics\n"
	"\n"
	"  --socket PATH  of the daemon (default: $SENTRY_PROFD_SOCKET, then\n"
	"                 " PROTOCOL_SOCKET ")\n";

struct request {
	const struct command *command;
	enum protocol_type type; /* of the command, or PROTOCOL_OPENMETRICS, PROTOCOL_RELEASE */
	const char *socket;
	int32_t pid;
	const char *name;
	bool raw;	      /* print the text of the daemon unchanged */
	unsigned int watch_s; /* 0: without --watch */
	uint32_t release_s;   /* with PROTOCOL_RELEASE */
	bool clears;	      /* clear the screen before each table */
};

/* Returns the command of this name, or NULL. */
static const struct command *find(const char *name)
{
	for (size_t i = 0; i < array_size(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

const char *daemon_commands_name(size_t index)
{
	return index < array_size(commands) ? commands[index].name : NULL;
}

static int take_argument(struct request *q, const char *text)
{
	if (q->command->argument == A_PID_OR_NAME)
		return control_client_parse_target(q->command->name, text, &q->pid, &q->name)
			       ? 0
			       : EXIT_USAGE;
	if (digits_pid(text, &q->pid))
		return 0;
	log_error("%s: not a pid: '%s'", q->command->name, text);
	return EXIT_USAGE;
}

/* Sets the interval of --watch. value may be NULL: the default. */
static bool set_watch(struct request *q, const char *value)
{
	uint64_t seconds = WATCH_S;

	if (value != NULL && !digits_number(value, 1, WATCH_MAX_S, &seconds)) {
		log_error("%s: --watch=%s: not a number of seconds from 1 to %d", q->command->name,
			  value, WATCH_MAX_S);
		return false;
	}
	q->watch_s = (unsigned int)seconds;
	return true;
}

/* Makes the request one that releases the process for a time: --for. */
static bool set_release(struct request *q, const char *value)
{
	uint64_t seconds;

	if (!digits_number(value, 1, PROTOCOL_RELEASE_MAX_S, &seconds)) {
		log_error("%s: --for=%s: not a number of seconds from 1 to %d", q->command->name,
			  value, PROTOCOL_RELEASE_MAX_S);
		return false;
	}
	q->type = PROTOCOL_RELEASE;
	q->release_s = (uint32_t)seconds;
	return true;
}

static int parse(int argc, char **argv, struct request *q)
{
	enum { SOCKET = OPTION_LONG, JSON, WATCH, OPENMETRICS, FOR };
	static const struct option options[] = {
		{"socket", required_argument, NULL, SOCKET},
		{"json", no_argument, NULL, JSON},
		{"watch", optional_argument, NULL, WATCH},
		{"openmetrics", no_argument, NULL, OPENMETRICS},
		{"for", required_argument, NULL, FOR},
		{0},
	};
	const bool is_status = q->command->type == PROTOCOL_STATUS;
	int c, at;

	while ((c = option_next(argv[0], argc, argv, ":", options, &at)) != -1) {
		if (c == SOCKET)
			q->socket = optarg;
		else if (c == JSON && is_status)
			q->raw = true;
		else if (c == WATCH && is_status) {
			if (!set_watch(q, optarg))
				return EXIT_USAGE;
		} else if (c == OPENMETRICS && q->command->type == PROTOCOL_METRICS)
			q->type = PROTOCOL_OPENMETRICS;
		else if (c == FOR && q->command->type == PROTOCOL_DETACH) {
			if (!set_release(q, optarg))
				return EXIT_USAGE;
		} else if (c == '?')
			return EXIT_USAGE;
		else {
			log_error("%s: --%s is not an option of this command (see --help)",
				  q->command->name, options[at].name);
			return EXIT_USAGE;
		}
	}
	if (argc - optind != (q->command->argument != NO_ARGUMENT)) {
		log_error("%s takes %s (see --help)", q->command->name,
			  q->command->argument == NO_ARGUMENT ? "no argument"
			  : q->command->argument == A_PID     ? "a pid"
							      : "a pid or a name");
		return EXIT_USAGE;
	}
	return q->command->argument == NO_ARGUMENT ? 0 : take_argument(q, argv[optind]);
}

/* Returns what the command is about: "process 12", the name of a section, or the daemon. */
static const char *subject(const struct request *q, char ret[32])
{
	if (q->name != NULL)
		return q->name;
	(void)snprintf(ret, 32, "process %d", q->pid);
	return q->pid == 0 ? "sentry-profd" : ret;
}

/*
 * Prints the lines in the memfd of an answer: faults of the configuration. Closes *fd. Prints
 * nothing if stderr is the journal, where the daemon has logged the same lines
 * (`systemctl reload`).
 */
static void print_lines(int *fd)
{
	FILE *file = *fd < 0 || lseek(*fd, 0, SEEK_SET) < 0 ? NULL : fdopen(*fd, "r");
	char line[1024];

	while (file != NULL && !log_goes_to_journal() && fgets(line, sizeof(line), file) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		log_list_entry(false, "%s", line);
	}
	if (file != NULL) {
		(void)fclose(file);
		*fd = -1;
	}
}

static void print_done(const struct request *q, const struct protocol_answer *m)
{
	char text[32];

	if (q->command->type == PROTOCOL_PROFILER_ID)
		printf("%s", m->profiler_id);
	else if (q->name != NULL)
		printf("%s: %u %s", q->name, m->count, q->command->done);
	else
		printf("%s: %s%s%s", subject(q, text), q->command->done,
		       m->profiler_id[0] != '\0' ? ", profiler " : "", m->profiler_id);
	if (q->command->type != PROTOCOL_PROFILER_ID && m->text[0] != '\0') {
		printf("; ");
		escape_write(m->text, stdout);
	}
	printf("\n");
	if (q->type == PROTOCOL_DETACH && m->version < DETACH_WAITS_VERSION)
		log_warning("the daemon is older than sentry-profctl: it may be detaching still");
}

static int print_answer(const struct request *q, const struct protocol_answer *m, int *fd)
{
	const enum protocol_result result = (enum protocol_result)m->result;
	char text[32];

	print_lines(fd);
	if (result == PROTOCOL_OK) {
		print_done(q, m);
		return EXIT_SUCCESS;
	}
	if (result == q->command->unchanged) {
		printf("%s %s\n", subject(q, text), control_client_result_text(result));
		return EXIT_SUCCESS;
	}
	if (m->fd_bytes > 0 && log_goes_to_journal())
		return EXIT_FAILURE;
	log_error("%s: %s", subject(q, text),
		  m->text[0] != '\0' ? m->text : control_client_result_text(result));
	return EXIT_FAILURE;
}

/* Asked before each table: the user may resize the window. Returns 0 if unknown. */
static size_t terminal_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 ? 0 : size.ws_col;
}

static int show_table(const struct request *q, const struct buf *json)
{
	/* Not earlier: the old table stays until the new one is there. */
	if (q->clears)
		printf("\033[H\033[J");
	return status_table_print(buf_string(json), json->len, terminal_width(), stdout);
}

/* Prints the text in the memfd of an answer: the status (a table or JSON) or metrics. */
static int show_text(const struct request *q, int fd, uint32_t size)
{
	struct buf text;
	int r;

	r = control_client_read(fd, size, &text);
	if (r == 0 && q->raw && fwrite(buf_string(&text), 1, text.len, stdout) != text.len)
		r = -EIO;
	else if (r == 0 && !q->raw)
		r = show_table(q, &text);
	buf_fini(&text);
	if (r == 0 && fflush(stdout) != 0)
		r = -errno;
	if (r < 0)
		log_error("%s: cannot print the answer of sentry-profd: %s", q->command->name,
			  strerror(-r));
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/*
 * Waits until the daemon takes samples of the process or has refused that, after it has accepted
 * the request: then *answer has the reason. Gives up after ATTACH_NS, since a rate limit or another
 * tracer can delay the attachment for any time. Returns 0, or -errno if the connection is closed.
 */
static int wait_for_attachment(const struct request *q, struct control_client *client,
			       struct protocol_answer *answer)
{
	const struct timespec pause = {.tv_nsec = (long)ATTACH_RETRY_NS};
	const uint64_t deadline_ns = clock_mono_ns() + ATTACH_NS;
	struct protocol_answer now;
	int fd, r;

	while (clock_mono_ns() < deadline_ns) {
		r = control_client_request(client, PROTOCOL_PROFILER_ID, q->pid, NULL, &now, &fd);
		if (r < 0)
			return r;
		close_fd(&fd);
		if (now.state == PROTOCOL_STATE_LEFT_OUT || now.state == PROTOCOL_STATE_WAITING) {
			answer->result = PROTOCOL_FAILED;
			memcpy(answer->text, now.text, sizeof(answer->text));
		}
		if (now.state != PROTOCOL_STATE_PROFILING || now.count != 0)
			break;
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

/* Sends the request and prints the answer. *ret_lost: the connection is closed. */
static int run_once(const struct request *q, struct control_client *client, bool *ret_lost)
{
	struct protocol_answer answer;
	int fd, status, r;

	if (q->type == PROTOCOL_RELEASE)
		r = control_client_release(client, q->pid, q->release_s, &answer, &fd);
	else
		r = control_client_request(client, q->type, q->pid, q->name, &answer, &fd);
	*ret_lost = r < 0;
	if (*ret_lost)
		return EXIT_FAILURE;
	if (answer.result == PROTOCOL_OK && q->type == PROTOCOL_ATTACH &&
	    wait_for_attachment(q, client, &answer) < 0) {
		close_fd(&fd);
		return EXIT_FAILURE;
	}
	if (answer.result == PROTOCOL_OK &&
	    (q->command->type == PROTOCOL_STATUS || q->command->type == PROTOCOL_METRICS))
		status = show_text(q, fd, answer.fd_bytes);
	else
		status = print_answer(q, &answer, &fd);
	close_fd(&fd);
	return status;
}

static int reopen(struct control_client *client)
{
	struct control_client new;
	int r = control_client_open(client->path, true, &new);

	if (r < 0)
		return r;
	control_client_close(client);
	*client = new;
	client->is_quiet = false;
	return 0;
}

/*
 * Repeats the request until the user interrupts it or the daemon exits. On a terminal it
 * waits for the next daemon instead.
 */
static int watch(struct request *q, struct control_client *client)
{
	const struct timespec pause = {.tv_sec = q->watch_s};
	bool lost;
	int status;

	q->clears = isatty(STDOUT_FILENO) && !q->raw;
	for (bool first = true;; first = false) {
		if (!q->clears && !first && !q->raw)
			printf("\n");
		status = run_once(q, client, &lost);
		if (status != EXIT_SUCCESS && !(lost && q->clears))
			return status;
		do
			(void)nanosleep(&pause, NULL);
		while (lost && reopen(client) < 0);
	}
}

int daemon_commands_run(int argc, char **argv)
{
	struct request q = {.command = find(argv[0])};
	struct control_client client;
	bool lost;
	int status;

	if (q.command == NULL)
		return EXIT_USAGE;
	q.type = q.command->type;
	q.raw = q.type == PROTOCOL_METRICS;
	status = parse(argc, argv, &q);
	if (status != 0)
		return status;
	if (control_client_open(control_client_path(q.socket), false, &client) < 0)
		return EXIT_FAILURE;
	status = q.watch_s != 0 ? watch(&q, &client) : run_once(&q, &client, &lost);
	control_client_close(&client);
	return status;
}
