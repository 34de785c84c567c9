/*
 * sentry-profd: the broker. It opens files and sockets for the other processes, starts and
 * watches them, and keeps the statistics. It traces no process and parses no data of a target.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/children/children.h"
#include "daemon/broker/children/reap.h"
#include "daemon/broker/children/ship.h"
#include "daemon/broker/control/inspect.h"
#include "daemon/broker/control/reload.h"
#include "daemon/broker/control/requests.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/discovery/command.h"
#include "daemon/broker/discovery/startup_match.h"
#include "daemon/broker/report/health.h"
#include "daemon/broker/report/service.h"
#include "daemon/broker/report/stats.h"
#include "daemon/broker/shutdown.h"
#include "daemon/broker/targets/instances.h"
#include "daemon/broker/turn.h"
#include "daemon/broker/wiring.h"
#include "daemon/common/finding.h"
#include "daemon/common/log.h"
#include "daemon/common/log_output.h"
#include "daemon/common/perf_events.h"
#include "daemon/common/privileges.h"
#include "daemon/config/config.h"
#include "daemon/config/config_fault.h"
#include "daemon/process/refusal.h"
#include "lib/base/clock.h"
#include "proto/dsn.h"

#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

static struct broker broker = {
	.command = {.go_fd = -1, .file = -1},
	.stats_fd = -1,
	.modules.children.ship_fds = {-1, -1, -1, -1},
	.modules.delivery.output = {.dir_fd = -1},
	.conversion = {.exe_fd = -1, .dir_fd = -1, .fd = -1},
	.notify = {.fd = -1},
	.modules.state.clocks = {clock_mono_ns, clock_boot_ns, clock_wall_ns},
};
_Static_assert(INIT_FILE_N == 4, "all are -1");
static int signal_fd = -1;

/*
 * The state that the caller handed on may be anything. Descriptors 0 to 2 go to the children, so
 * no other file may get these numbers. An ignored SIGCHLD would hide the ends of children from
 * the broker, and the stops of tracees from capture. SIGTTOU would stop a broker in the
 * background when it writes to a terminal (stty tostop). Without SIGXFSZ a file that reaches
 * its size limit is a write error, like a full disk.
 */
static void reset_inherited_state(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	close_fd(&fd);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGTTOU, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	/* Each chunk in flight and each run needs a descriptor. */
	privileges_raise_descriptor_limit();
}

/*
 * Returns true if the caller had this signal ignored, as nohup(1) does with SIGHUP. Such a
 * signal must not be blocked, or signalfd(2) would report it.
 */
static bool is_ignored(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static void read_dsn(struct broker *b)
{
	const struct config *c = &b->modules.state.options.config;
	struct dsn dsn;
	enum dsn_result result;

	memcpy(b->modules.children.spotlight_url, c->spotlight,
	       sizeof(b->modules.children.spotlight_url));
	for (size_t i = 0; i < c->n_sections; i++)
		b->modules.children.has_dsn |= c->sections[i].dsn[0] != '\0';
	if (!c->has_dsn && !b->modules.children.has_dsn)
		return;
	/* The DSN's key must not get into a core file. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (!c->has_dsn)
		return;
	result = dsn_parse(&dsn, c->dsn);
	explicit_bzero(&dsn, sizeof(dsn));
	if (result == DSN_EMPTY) {
		log_warning("the DSN is empty: nothing is sent");
		return;
	}
	if (result != DSN_OK) {
		log_error("%s", dsn_result_text(result));
		exit(2);
	}
	/* Fits: dsn_parse() refuses more than DSN_SIZE. */
	(void)snprintf(b->modules.children.dsn, sizeof(b->modules.children.dsn), "%s", c->dsn);
	b->modules.children.has_dsn = true;
}

static int open_output(struct broker *b)
{
	const bool is_sent =
		b->modules.children.has_dsn || b->modules.children.spotlight_url[0] != '\0';
	const char *path = b->modules.state.options.output;
	int r;

	/* A service has no directory to leave files in. */
	if (path == NULL && !is_sent && b->modules.state.options.n_pids == 0)
		log_warning("there is no DSN and no --output: profiles are "
			    "discarded");
	if (path == NULL && (is_sent || b->modules.state.options.n_pids == 0))
		return 0;
	if (b->modules.state.options.output_format != NULL)
		return output_conversion_open(&b->conversion, path, &b->modules.delivery.output);
	r = output_open(&b->modules.delivery.output, path);
	if (r < 0)
		log_error("cannot write into %s: %s", path == NULL ? "the current directory" : path,
			  strerror(-r));
	return r;
}

static int open_stats(struct broker *b)
{
	int r;

	if (b->modules.state.options.stats == NULL)
		return 0;
	r = output_open_file(b->modules.state.options.stats, &b->stats_fd);
	if (r < 0)
		log_error("cannot write %s: %s", b->modules.state.options.stats, strerror(-r));
	return r;
}

/* Returns false after a line on stderr. */
static bool write_stats(struct broker *b)
{
	int r = stats_write(&b->modules, b->stats_fd);

	if (r < 0)
		log_error("cannot write the statistics to %s: %s", b->modules.state.options.stats,
			  strerror(-r));
	return r >= 0;
}

static bool uses_perf(const struct broker *b)
{
	return b->modules.state.options.config.sampler == SAMPLER_PERF;
}

/* Ends the broker if sampler = perf is not possible: it never falls back to ptrace. */
static void check_sampler(const struct broker *b)
{
	int r = uses_perf(b) ? perf_events_try() : 0;

	if (r == 0)
		return;
	log_error("sampler = perf is not possible: %s; or use sampler = ptrace (%s)",
		  perf_events_fault(r), strerror(-r));
	exit(2);
}

/*
 * Limits root's capabilities to those of the table in docs/ARCHITECTURE.md. Children get,
 * besides, what capture needs and what they need to drop all others.
 */
static int limit_privileges(struct broker *b)
{
	/* For the proc connector: to open and to close it. */
	const capability_set listen = b->modules.discovery != NULL ? CAPABILITY(CAP_NET_ADMIN) : 0;
	const capability_set keep = listen | CAPABILITY(CAP_SYS_PTRACE) |
				    CAPABILITY(CAP_CHECKPOINT_RESTORE) |
				    CAPABILITY(CAP_DAC_READ_SEARCH) | CAPABILITY(CAP_SETUID) |
				    CAPABILITY(CAP_SETGID) | CAPABILITY(CAP_KILL);
	const capability_set perf = uses_perf(b) ? CAPABILITY(CAP_PERFMON) : 0;
	const capability_set hand_on = perf | CAPABILITY(CAP_SYS_NICE) | CAPABILITY(CAP_SETPCAP);
	capability_set have;
	int r;

	if (geteuid() != 0)
		return 0;
	r = privileges_permitted(&have);
	/* If reading files needs CAP_DAC_OVERRIDE, only capture gets it. */
	if (r == 0)
		r = privileges_limit(keep, hand_on | privileges_for_reading(have));
	if (r < 0) {
		log_error("cannot give up privileges: %s", strerror(-r));
		return r;
	}
	b->modules.state.privileged = true;
	return 0;
}

static void on_signals(void *ctx)
{
	struct broker *b = ctx;
	struct signalfd_siginfo info;

	while (read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			command_check_stopped(&b->command, &b->modules.state);
			children_reap(&b->modules.children);
			continue;
		}
		if (command_handle_signal(&b->command, &info))
			continue;
		b->modules.state.suspend_requested = info.ssi_signo == SIGTSTP;
		if (info.ssi_signo == SIGTSTP || info.ssi_signo == SIGCONT)
			continue;
		if (info.ssi_signo == SIGHUP && b->modules.discovery != NULL) {
			(void)reload(&b->modules, &b->notify, -1);
			continue;
		}
		b->modules.state.end_at_once = b->modules.state.phase >= PHASE_STOPPING;
		state_advance(&b->modules.state, PHASE_STOPPING);
	}
}

/* To be called at once after the start: a SIGHUP during the start must not end the daemon. */
static void take_signals(const struct broker *b)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	if (!is_ignored(SIGHUP))
		sigaddset(&signals, SIGHUP);
	if (!is_ignored(SIGTSTP)) {
		sigaddset(&signals, SIGTSTP);
		sigaddset(&signals, SIGCONT);
	}
	if (b->command.pid != 0) {
		/* From the terminal: the command gets it, too. */
		sigaddset(&signals, SIGQUIT);
		(void)signal(SIGTTIN, SIG_IGN);
	}
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0) {
		log_error("cannot receive signals: signalfd: %s", strerror(errno));
		exit(EXIT_FAILURE);
	}
}

/* Time for the first attachment: it takes milliseconds, or seconds on a loaded machine. */
#define ATTACH_NS (3 * NS_PER_SEC)

/*
 * --duration counts from the first attachment. While there is none, it counts from the start of
 * the broker plus ATTACH_NS.
 */
static uint64_t deadline_of(const struct broker *b)
{
	uint64_t since = b->modules.state.started_ns != 0 ? b->modules.state.started_ns
							  : b->modules.state.epoch_ns + ATTACH_NS;

	if (b->modules.state.options.duration_s <= 0)
		return UINT64_MAX;
	return since + (uint64_t)(b->modules.state.options.duration_s * 1e9);
}

/* A service runs on without anything to profile. */
static bool is_running(const struct broker *b)
{
	if (b->modules.state.phase >= PHASE_STOPPING)
		return false;
	if (b->command.pid != 0)
		return !b->command.has_ended;
	return b->modules.discovery != NULL || instances_any_open(&b->modules.targets);
}

static void check_times(struct broker *b)
{
	if (b->modules.state.started_ns == 0 || b->times.is_begun)
		return;
	FOR_EACH_RUN (run, &b->modules.targets)
		if (run->was_attached && !b->times.is_begun)
			times_begin(&b->times, run->pid);
}

static void run_until_end(struct broker *b)
{
	while (is_running(b)) {
		uint64_t deadline = command_is_held(&b->command) ? UINT64_MAX : deadline_of(b);

		if (state_now_ns(&b->modules.state) >= deadline)
			break;
		turn_run_once(b, turn_wait_ms(b, deadline));
		shutdown_check_suspend(b);
		command_check(&b->command, &b->modules.targets);
		check_times(b);
	}
	state_advance(&b->modules.state, PHASE_STOPPING);
}

static void print_output_directory(const struct broker *b)
{
	if (b->modules.state.options.quiet)
		return;
	if (b->modules.state.options.output == NULL && delivery_has_files(&b->modules.delivery))
		printf("no DSN is given: envelopes go into %s\n", b->modules.delivery.output.path);
	(void)fflush(stdout);
}

static bool attached_any(struct broker *b)
{
	FOR_EACH_RUN (run, &b->modules.targets)
		if (run->instance->was_attached)
			return true;
	return false;
}

/* Returns true if all targets were profiled. Logs a line for each target that still waits. */
static bool were_all_profiled(struct broker *b)
{
	bool well = !b->modules.state.start_failed && attached_any(b);

	if (b->modules.discovery != NULL)
		return !b->modules.state.start_failed;

	FOR_EACH_RUN (run, &b->modules.targets) {
		if (run->instance->origin == INSTANCE_CHILD)
			continue;
		/* ESRCH: the process has ended, which is no error. */
		if (run->left_out || run->files_suspended_until_ns != 0 ||
		    (run->attach_error != 0 && run->attach_error != ESRCH))
			well = false;
		if (run->instance->was_attached || run->left_out || run->attach_error != 0)
			continue;
		well = false;
		if (!b->modules.state.start_failed)
			refusal_log_not_profiled(run->pid, run->retry_ns != 0);
	}
	return well;
}

/* Service mode: no --pid and no command. */
static int start_service(struct broker *b)
{
	int r = session_sampling_key_read(&b->modules.targets.session_sampling_key);

	if (r < 0) {
		log_error("cannot read /proc/sys/kernel/random/boot_id: %s", strerror(-r));
		return r;
	}
	return discovery_new(&b->modules.targets, &b->modules.discovery);
}

/*
 * The nice value of the broker, relative to its caller's. A sample costs unwind some
 * microseconds and a file costs the broker and its helper some dozens, so that the higher
 * priority delays no other program. Without it, among many busy threads, unwind would run only
 * when the ring is full, and the broker would open files only after the target has ended. An
 * ordinary user may not raise the priority.
 */
#define BROKER_NICE (-10)

static void raise_priority(struct broker *b)
{
	const int before = getpriority(PRIO_PROCESS, 0);

	errno = 0;
	if (nice(BROKER_NICE) < 0 && errno != 0) {
		log_debug("profiling runs at the usual priority: %s", strerror(errno));
		return;
	}
	b->modules.state.nice_steps = (uint32_t)(before - getpriority(PRIO_PROCESS, 0));
}

static int start(struct broker *b, struct loop_source **signals)
{
	const size_t n_named = b->modules.state.options.n_pids;
	int r = startup_match_find(&b->modules.state.options);

	if (r == 0 && b->modules.state.options.n_pids == 0)
		r = start_service(b);
	if (r < 0)
		return r;
	for (size_t i = 0; i < b->modules.state.options.n_pids; i++) {
		r = instance_add_given(&b->modules.targets, b->modules.state.options.pids[i]);
		/* A process that --name found a moment ago may have ended. */
		if (r < 0 && (r != -ESRCH || i < n_named))
			return r;
	}
	r = open_stats(b);
	if (r == 0)
		r = open_output(b);
	if (r == 0)
		r = ship_open_files(&b->modules.children);
	if (r == 0)
		r = requests_open(&b->requests);
	if (r < 0)
		return r;
	check_sampler(b);
	health_start(&b->modules);
	command_warn(&b->command, &b->modules.state.options);
	raise_priority(b);
	r = limit_privileges(b);
	if (r < 0)
		return r;
	r = loop_new(&b->modules.state.loop);
	if (r == 0)
		r = files_new(b->modules.state.loop, &b->modules.files);
	if (r == 0) {
		leak_check_init(&b->modules.leak_check, b->modules.files, &b->modules.quarantine);
		b->modules.targets.leak_check = &b->modules.leak_check;
		r = instances_watch(&b->modules.targets);
	}
	if (r == 0 && b->modules.discovery != NULL)
		r = discovery_start(b->modules.discovery);
	if (r == 0)
		r = requests_start(&b->requests);
	if (r == 0)
		r = loop_add(b->modules.state.loop, signal_fd, on_signals, b, signals);
	if (r < 0) {
		log_error("cannot start: %s", strerror(-r));
		return r;
	}
	r = children_start(&b->modules.children);
	if (r < 0)
		return r;
	b->modules.state.timer_hz = options_timer_hz(&b->modules.state.options);
	b->modules.state.period_ns = NS_PER_SEC / b->modules.state.timer_hz;
	b->modules.state.epoch_ns = clock_mono_ns();
	instances_check(&b->modules.targets);
	return 0;
}

/* How often an inspection checks for hanging helpers and ships. */
#define INSPECT_MS 100

/* --check-config --servers. Returns the exit status. */
static int check_servers(struct broker *b, const struct config_faults *faults)
{
	struct loop_source *signals = NULL;
	int status = EXIT_FAILURE, r;

	r = loop_new(&b->modules.state.loop);
	if (r == 0)
		r = files_new(b->modules.state.loop, &b->modules.files);
	if (r == 0 && faults->n_errors == 0)
		r = ship_open_files(&b->modules.children);
	if (r == 0)
		r = limit_privileges(b);
	if (r == 0)
		r = loop_add(b->modules.state.loop, signal_fd, on_signals, b, &signals);
	if (r == 0)
		r = inspect_options(&b->requests.inspector, faults);
	if (r < 0) {
		log_error("cannot prepare the check of the configuration and its servers: %s",
			  strerror(-r));
		return EXIT_FAILURE;
	}
	while (b->modules.state.phase == PHASE_PROFILING &&
	       !inspect_is_over(&b->requests.inspector)) {
		r = loop_run_once(b->modules.state.loop, INSPECT_MS);
		if (r < 0)
			break;
		files_check(b->modules.files);
		inspect_check(&b->requests.inspector);
	}
	if (inspect_is_over(&b->requests.inspector))
		status = faults->n_errors > 0
				 ? 2
				 : finding_status(inspect_worst(&b->requests.inspector));
	shutdown_children(b);
	return fflush(stdout) == EOF ? EXIT_FAILURE : status;
}

int main(int argc, char **argv)
{
	static struct config_faults faults;
	struct broker *b = &broker;
	struct options *o = &b->modules.state.options;
	struct loop_source *signals = NULL;
	int status = EXIT_SUCCESS, r;

	log_init("sentry-profd", false);
	options_read(argc, argv, o, &faults);
	/* Fork before any state of this process changes (command.h). */
	if (o->command != NULL && o->command[0] != NULL)
		command_fork(&b->command, o->command, o->user);
	reset_inherited_state();
	take_signals(b);
	if (!o->check_only) {
		/* First: the table of a command goes to stderr, and waits for its reader. */
		if (b->command.pid != 0)
			command_leave_streams();
		log_output_never_waits();
	}
	options_load(o, b->command.pid, &faults);
	if (b->command.pid != 0)
		command_wait_ready(&b->command);
	log_init("sentry-profd", o->config.debug);
	wiring_connect(b);
	b->modules.targets.held_pid = b->command.pid;
	b->modules.targets.held_file = b->command.file;
	b->modules.targets.held_options = b->command.leak_options;
	quarantine_init(&b->modules.quarantine);
	service_init(&b->notify);
	children_init(&b->modules.children);
	if (o->check_servers)
		return check_servers(b, &faults);
	read_dsn(b);
	r = start(b, &signals);
	if (r < 0) {
		requests_close(&b->requests);
		shutdown_children(b);
		/* The kernel may count the listener of the proc connector until then. */
		discovery_free(b->modules.discovery);
		output_conversion_close(&b->conversion);
		output_close(&b->modules.delivery.output);
		return b->command.pid != 0 ? command_abandon(&b->command) : EXIT_FAILURE;
	}
	print_output_directory(b);
	/* The terminal belongs to the command. */
	progress_init(&b->progress, b->modules.state.options.quiet || b->command.pid != 0);
	run_until_end(b);
	progress_end(&b->progress);
	service_stops(&b->notify);
	shutdown_sampling(b);
	shutdown_delivery(b);
	health_check(&b->modules);
	if (options_prints_table(&b->modules.state.options) && attached_any(b) &&
	    !b->modules.state.start_failed)
		shutdown_print_tables(b);
	if (attached_any(b))
		shutdown_log_figures(b);
	requests_close(&b->requests);
	shutdown_children(b);
	/* Not earlier: chunks arrive and are answered until the children have ended. */
	delivery_give_up(&b->modules.delivery);
	if (b->modules.state.options.output_format != NULL) {
		shutdown_conversion(b);
		status = b->conversion.is_made ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	if (!b->modules.state.options.quiet && attached_any(b))
		shutdown_print_outcome(b);
	shutdown_print_viewer(b);
	if (shutdown_lost_all(b))
		status = SHUTDOWN_STATUS_ALL_LOST;
	else if (b->command.pid != 0)
		shutdown_log_lost(b);
	if (b->stats_fd >= 0 && !write_stats(b))
		status = EXIT_FAILURE;
	if (!were_all_profiled(b))
		status = EXIT_FAILURE;
	if (b->command.pid != 0)
		status = shutdown_command(b);
	discovery_free(b->modules.discovery);
	files_free(b->modules.files);
	output_conversion_close(&b->conversion);
	output_close(&b->modules.delivery.output);
	loop_remove(b->modules.state.loop, &signals);
	loop_free(b->modules.state.loop);
	notify_fini(&b->notify);
	return status;
}
