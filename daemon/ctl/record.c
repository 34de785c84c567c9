#include "daemon/ctl/record.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "daemon/common/option_fault.h"
#include "daemon/common/output_format.h"
#include "daemon/ctl/common/private_daemon.h"
#include "daemon/ctl/common/recording.h"
#include "daemon/ctl/convert/convert.h"
#include "lib/base/clock.h"

#define DURATION_MAX_S (24 * 3600)

/* If the last chunk does not arrive in this time, the daemon is stuck. */
#define END_NS (30 * NS_PER_SEC)

const char record_help[] =
	"\n"
	"record PID|NAME -o FILE  let the running daemon profile a process, also one\n"
	"                         that it profiles already, and write FILE in the\n"
	"                         format of its suffix, as convert does; if no\n"
	"                         daemon runs, start a sentry-profd for PID\n"
	"\n"
	"  --duration S, -d S     end after S seconds (default: at ^C)\n"
	"  --to FORMAT            as for convert\n";

struct recorder {
	const char *socket, *out, *to;
	int32_t pid;
	const char *name; /* of a section; NULL: by pid */
	uint64_t duration_ns;
	struct conversion *conversion;
	struct control_client client;
	struct recording recording;
	size_t n_chunks;
	/* When to ask for the end, then when to give up waiting for it (clock_mono_ns). */
	uint64_t deadline_ns;
	bool is_finishing;
};

static volatile sig_atomic_t is_interrupted;

static void on_signal(int signal)
{
	(void)signal;
	is_interrupted = 1;
}

static bool set_duration(struct recorder *c, const char *value)
{
	char *end;
	const double s = strtod(value, &end);

	if (end == value || *end != '\0' || !(s > 0 && s <= DURATION_MAX_S)) {
		log_error("record: --duration %s: not a number of seconds up "
			  "to %d",
			  value, DURATION_MAX_S);
		return false;
	}
	c->duration_ns = (uint64_t)(s * 1e9);
	return true;
}

static bool parse(struct recorder *c, int argc, char **argv)
{
	enum { SOCKET = OPTION_LONG, TO };
	static const struct option options[] = {
		{"socket", required_argument, NULL, SOCKET},
		{"duration", required_argument, NULL, 'd'},
		{"to", required_argument, NULL, TO},
		{0},
	};
	int option;

	*c = (struct recorder){.duration_ns = UINT64_MAX, .client = {.fd = -1}};
	while ((option = option_next(argv[0], argc, argv, ":o:d:", options, NULL)) != -1) {
		if (option == '?')
			return false;
		if (option == SOCKET)
			c->socket = optarg;
		else if (option == TO)
			c->to = optarg;
		else if (option == 'o')
			c->out = optarg;
		else if (!set_duration(c, optarg))
			return false;
	}
	if (argc - optind != 1) {
		log_error("record takes a pid or a name (see --help)");
		return false;
	}
	if (c->out == NULL && c->to == NULL) {
		log_error("record: no output: add -o FILE, or --to FORMAT for "
			  "standard output");
		return false;
	}
	return control_client_parse_target(argv[0], argv[optind], &c->pid, &c->name);
}

static int take_chunk(void *ctx, const char *payload, size_t size)
{
	struct recorder *c = ctx;
	int r = conversion_add(c->conversion, payload, size);

	c->n_chunks += r == 0;
	return r;
}

/* Asks the daemon to end the recording. Called again, gives up waiting for the end. */
static int finish(struct recorder *c)
{
	if (c->is_finishing) {
		log_error("sentry-profd at %s has not ended the recording within %u s; only "
			  "the chunks that arrived before are used",
			  c->client.path, (unsigned int)(END_NS / NS_PER_SEC));
		return -ETIMEDOUT;
	}
	c->is_finishing = true;
	c->deadline_ns = clock_mono_ns() + END_NS;
	return recording_finish(&c->recording);
}

static int run(struct recorder *c, const sigset_t *mask)
{
	while (!c->recording.has_ended) {
		int r = 0;

		if (is_interrupted && !c->is_finishing)
			r = finish(c);
		if (r == 0)
			r = recording_wait(&c->recording, c->deadline_ns, mask);
		if (r == 0)
			r = finish(c);
		else if (r > 0)
			r = recording_next(&c->recording, take_chunk, c);
		recording_log_note(&c->recording);
		if (r < 0 && r != -EINTR)
			return r;
	}
	return 0;
}

/* SIGINT and SIGTERM end the recording, not the process: it still writes the file. */
static void catch_signals(void)
{
	const struct sigaction action = {.sa_handler = on_signal};

	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
}

/* Has the signals delivered only in ppoll(2), with *ret_mask. */
static void block_signals(sigset_t *ret_mask)
{
	sigset_t both;

	(void)sigemptyset(&both);
	(void)sigaddset(&both, SIGINT);
	(void)sigaddset(&both, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &both, ret_mask);
}

/* Writes the chunks that have arrived, also after a failed recording. */
static int write_file(struct recorder *c)
{
	const struct recording *r = &c->recording;
	const struct output_format *format;
	int written;

	if (r->has_ended && r->end != PROTOCOL_RECORD_DONE)
		log_warning("the recording of process %d ended early: %s", r->pid,
			    recording_end_text(r));
	if (r->n_lost > 0)
		log_warning("%u chunk%s of the recording %s lost, so the profile has gaps: "
			    "sentry-profctl was too slow, or a process of sentry-profd died",
			    r->n_lost, r->n_lost == 1 ? "" : "s", r->n_lost == 1 ? "was" : "were");
	if (c->n_chunks == 0) {
		log_error("%s not written: no samples of process %d were recorded "
			  "(sentry-profctl doctor %d looks for the cause)",
			  c->out == NULL ? "the profile" : c->out, r->pid, r->pid);
		return -ENODATA;
	}
	if (conversion_lacks_lines(c->conversion))
		log_info("process %d: %s", r->pid, RECORDING_LACKS_LINES);
	written = conversion_write(c->conversion);
	format = c->out == NULL || written < 0 ? NULL : output_format_of_path(c->out);
	if (format != NULL)
		output_format_print_viewer(format, program_invocation_name, c->out);
	return written;
}

/* Records through the connected daemon. */
static int record(struct recorder *c)
{
	sigset_t mask;
	int r, written;

	block_signals(&mask);
	r = recording_open(&c->client, PROTOCOL_RECORD, c->pid, c->name, &c->recording);
	if (r < 0)
		return r;
	c->deadline_ns =
		c->duration_ns == UINT64_MAX ? UINT64_MAX : clock_mono_ns() + c->duration_ns;
	r = run(c, &mask);
	if (r < 0)
		log_error(
			"the recording of process %d ended early: %s; the chunks that arrived are "
			"written",
			c->recording.pid, strerror(-r));
	recording_close(&c->recording);
	written = write_file(c);
	return r < 0 ? r : written;
}

/*
 * Returns true if the file can be written: after the recording it would be too late to say that it
 * cannot. Changes nothing.
 */
static bool can_write(const char *out)
{
	char path[PATH_MAX];
	struct stat st;
	int error = 0;

	if (out == NULL || strcmp(out, "-") == 0)
		return true;
	if (snprintf(path, sizeof(path), "%s", out) >= (int)sizeof(path))
		error = ENAMETOOLONG;
	else if (stat(out, &st) == 0)
		error = S_ISDIR(st.st_mode) ? EISDIR : access(out, W_OK) < 0 ? errno : 0;
	else if (errno != ENOENT || access(dirname(path), W_OK | X_OK) < 0)
		error = errno;
	if (error != 0)
		log_error("cannot write %s: %s", out, strerror(error));
	return error == 0;
}

/* Records through the running daemon, or through one that is started for it. */
static int find_and_record(struct recorder *c)
{
	struct private_daemon daemon;
	int r;

	catch_signals();
	r = private_daemon_find(&daemon, c->socket, c->pid, &is_interrupted, &c->client);
	if (r == 0)
		r = record(c);
	control_client_close(&c->client);
	private_daemon_end(&daemon);
	return r;
}

int record_run(int argc, char **argv)
{
	struct recorder c;
	int r = -EACCES;

	if (!parse(&c, argc, argv))
		return EXIT_USAGE;
	c.conversion = conversion_new(argv[0], c.out, c.to);
	if (c.conversion == NULL)
		return EXIT_USAGE;
	if (can_write(c.out))
		r = find_and_record(&c);
	conversion_free(c.conversion);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
