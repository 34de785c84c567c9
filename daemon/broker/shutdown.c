#include "daemon/broker/shutdown.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/children/child.h"
#include "daemon/broker/children/reap.h"
#include "daemon/broker/children/watch.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/targets/attach.h"
#include "daemon/broker/targets/totals.h"
#include "daemon/broker/turn.h"
#include "daemon/common/log.h"
#include "daemon/msg/msg_capture.h"
#include "daemon/msg/msg_unwind.h"
#include "daemon/process/threads.h"
#include "lib/base/clock.h"
#include "lib/unwind/unwind.h"
#include "proto/profile.h"

/* Added to shutdown_timeout: for the writing of the last chunks and the answers of the ships. */
#define DELIVER_NS (13 * NS_PER_SEC)
#define TABLE_ROWS 20
/* How often a suspended broker checks whether capture has ended. */
#define POLL_MS 100

/*
 * Tells capture to end, and returns when it has ended. Capture has a timeout of its own, and
 * interrupts the resumed calls before (capture_settle()). Killing it earlier would leave a call
 * with the result of its last part only.
 */
static void end_capture(struct broker *b)
{
	struct idle_timeout timeout;

	if (b->modules.state.phase < PHASE_DELIVERING)
		child_send_id(&b->modules.children.capture, MSG_CAPTURE_STOP,
			      CAPTURE_KEEP_SESSIONS);
	idle_timeout_start(&timeout, clock_mono_ns());
	while (b->modules.children.capture.pid != 0) {
		const uint64_t now = clock_mono_ns();

		if (now >=
		    idle_timeout_end_ns(&timeout, now, watch_capture_works(&b->modules.children)))
			child_fail(&b->modules.children.capture,
				   "does not detach from the processes");
		turn_run_once(b, POLL_MS);
	}
}

/*
 * SIGTSTP is blocked, so it stays pending until it is unblocked; a SIGCONT before that removes
 * it. In an orphaned process group, such as a service's, the kernel drops it, since no process
 * would send SIGCONT.
 */
static void stop_self(void)
{
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	(void)raise(SIGTSTP);
	(void)sigprocmask(SIG_UNBLOCK, &stop, NULL);
	(void)sigprocmask(SIG_BLOCK, &stop, NULL);
}

static void suspend_broker(struct broker *b)
{
	uint64_t since = clock_mono_ns(), now;

	b->modules.state.is_suspended = true;
	end_capture(b);
	/* Capture took samples until its last heartbeat. */
	since = max_u64(since, watch_beat_ns(&b->modules.children));
	if (b->modules.state.suspend_requested) {
		log_debug("SIGTSTP: detaching from all processes until SIGCONT");
		stop_self();
	}
	now = clock_mono_ns();
	b->modules.state.suspended_ns += now - since;
	totals_suspension_ended(&b->modules.targets, now);
	b->modules.children.capture.failures = 0;
	b->modules.children.capture.restart_ns = now;
	b->modules.state.suspend_requested = false;
	b->modules.state.is_suspended = false;
}

void shutdown_check_suspend(struct broker *b)
{
	if (b->modules.state.suspend_requested && !b->modules.state.is_suspended)
		suspend_broker(b);
}

/* Runs a turn, and then suspends the broker if SIGTSTP has come. */
static void run_turn(struct broker *b, int timeout_ms)
{
	turn_run_once(b, timeout_ms);
	shutdown_check_suspend(b);
}

static bool sampling_works(const struct broker *b)
{
	bool works = watch_capture_works(&b->modules.children);

	for (size_t i = 0; i < b->modules.children.n_unwinds && !works; i++) {
		int32_t pid = b->modules.children.unwinds[i]->child.pid;

		works = pid != 0 && threads_any_runnable(pid);
	}
	return works;
}

/* Runs the loop once. Returns false when the timeout has passed. */
static bool run_within(struct broker *b, struct idle_timeout *p)
{
	uint64_t end = idle_timeout_end_ns(p, state_now_ns(&b->modules.state), sampling_works(b));

	if (state_now_ns(&b->modules.state) >= end)
		return false;
	run_turn(b, turn_wait_ms(b, end));
	return true;
}

void shutdown_sampling(struct broker *b)
{
	struct idle_timeout timeout;

	state_advance(&b->modules.state, PHASE_DELIVERING);
	b->modules.state.ended_ns = state_now_ns(&b->modules.state);
	child_send_id(&b->modules.children.capture, MSG_CAPTURE_STOP, 0);
	idle_timeout_start(&timeout, b->modules.state.ended_ns);
	while (b->modules.children.capture.pid != 0 && run_within(b, &timeout))
		continue;
	if (b->modules.children.capture.pid != 0)
		child_fail(&b->modules.children.capture, "does not end");
	/*
	 * A session that gets RECORD_END closes by itself; this closes those that do not get
	 * one.
	 */
	idle_timeout_start(&timeout, state_now_ns(&b->modules.state));
	attach_close_all(&b->modules.targets);
	while (!targets_all_closed(&b->modules.targets) && run_within(b, &timeout))
		continue;
}

void shutdown_delivery(struct broker *b)
{
	const uint64_t send_ns =
		(uint64_t)(b->modules.state.options.config.shutdown_timeout_s * 1e9);
	uint64_t deadline = state_now_ns(&b->modules.state) + send_ns + DELIVER_NS;

	delivery_finish(&b->modules.delivery, send_ns);
	while (b->modules.delivery.n_in_flight > 0 && state_now_ns(&b->modules.state) < deadline &&
	       !b->modules.state.end_at_once)
		run_turn(b, turn_wait_ms(b, deadline));
	if (!b->modules.state.end_at_once)
		return;
	/* A ship gets further chunks only after it has written those that it has. */
	delivery_finish(&b->modules.delivery, 0);
	deadline = min_u64(deadline, state_now_ns(&b->modules.state) + DELIVER_NS);
	while (b->modules.delivery.n_in_flight > 0 && state_now_ns(&b->modules.state) < deadline)
		run_turn(b, turn_wait_ms(b, deadline));
}

static bool has_samples(const struct broker *b)
{
	struct run_totals all;

	totals_of_all(&b->modules.targets, &all);
	return all.capture.captured + all.capture.repeated + all.capture.filled > 0;
}

/* Lets an unwind process write its table. heading: says whose processes the table is of. */
static void print_table(struct broker *b, struct unwind *u, bool heading,
			struct idle_timeout *timeout)
{
	const struct msg_table m = {
		.h = MSG_HEADER(MSG_TABLE),
		.max_rows = TABLE_ROWS,
		.full_names = b->modules.state.options.full_names,
	};

	if (u->has_died)
		log_warning("the table lacks samples: the %s that had them has ended",
			    u->child.type->name);
	if (heading)
		printf("Processes of uid %u:\n", u->key.uid);
	(void)fflush(stdout);
	b->table_awaited = true;
	child_send(&u->child, &m, sizeof(m), (int[]){STDOUT_FILENO}, 1);
	while (b->table_awaited && u->child.fd >= 0 && run_within(b, timeout))
		continue;
}

/* An unwind process that no run was given has only answered questions about programs. */
static bool has_table(const struct unwind *u)
{
	return u->newest_run != 0 && u->child.fd >= 0;
}

void shutdown_print_tables(struct broker *b)
{
	struct children *c = &b->modules.children;
	struct idle_timeout timeout;
	size_t n_tables = 0;

	if (!has_samples(b))
		return;
	idle_timeout_start(&timeout, state_now_ns(&b->modules.state));
	for (size_t i = 0; i < c->n_unwinds; i++)
		n_tables += has_table(c->unwinds[i]);
	for (size_t i = 0; i < c->n_unwinds; i++)
		if (has_table(c->unwinds[i]))
			print_table(b, c->unwinds[i], n_tables > 1, &timeout);
}

/* Chunks that were lost. A process that was too short for a chunk had nothing to lose. */
static uint64_t lost_chunks(const struct run_totals *all)
{
	return totals_discarded(all) - all->chunks.discarded[PROFILE_NO_SAMPLES];
}

bool shutdown_lost_all(const struct broker *b)
{
	struct run_totals all;
	const struct chunk_counts *c = &all.chunks;
	uint64_t lost;

	/* A warning at the start has said that profiles are discarded. */
	if (!b->modules.children.has_dsn && !delivery_has_files(&b->modules.delivery))
		return false;
	totals_of_all(&b->modules.targets, &all);
	lost = lost_chunks(&all);
	if (lost == 0 || c->sent + c->written + c->spooled > 0)
		return false;
	log_error("everything is lost: no chunk of this run was sent, written "
		  "or put into a spool (chunks lost: %llu)",
		  (unsigned long long)lost);
	return true;
}

void shutdown_log_lost(const struct broker *b)
{
	struct run_totals all;
	uint64_t lost;

	totals_of_all(&b->modules.targets, &all);
	lost = lost_chunks(&all);
	if (lost > 0)
		log_warning("%llu chunk%s of this run %s lost (--stats FILE writes the reasons)",
			    (unsigned long long)lost, lost == 1 ? "" : "s",
			    lost == 1 ? "is" : "are");
}

static void log_cut_stacks(const struct unwind_counts *c, uint32_t max_frames)
{
	const uint64_t cut = c->ends[UNWIND_END_MAX_FRAMES];

	if (cut == 0)
		return;
	if (max_frames < UNWIND_FRAMES_MAX)
		log_warning(
			"%llu of %llu stacks have more than %u frames and lack the outermost ones "
			"(--max-frames %d keeps more)",
			(unsigned long long)cut, (unsigned long long)c->stacks, max_frames,
			UNWIND_FRAMES_MAX);
	else
		log_warning("%llu of %llu stacks have more than %u frames, the most that "
			    "--max-frames can keep, and lack the outermost ones",
			    (unsigned long long)cut, (unsigned long long)c->stacks, max_frames);
}

/* With sampler = perf the kernel copies the stacks; their size is fixed when the run starts. */
static void log_capped_stacks(const struct unwind_counts *c)
{
	const uint64_t capped = c->ends[UNWIND_END_CAPPED];

	if (capped > 0)
		log_warning("%llu of %llu stacks are larger than the %u KB that sampler = perf "
			    "copies, and lack the outermost frames (sampler = ptrace copies more)",
			    (unsigned long long)capped, (unsigned long long)c->stacks,
			    CAPTURE_PERF_STACK_BYTES / 1024);
}

void shutdown_log_figures(const struct broker *b)
{
	const struct options *options = &b->modules.state.options;
	struct run_totals all;

	if (b->modules.discovery != NULL)
		return;
	totals_of_all(&b->modules.targets, &all);
	times_log(&b->times, &all.capture, totals_lowest_hz(&all, options->config.rate_hz),
		  options->quiet);
	log_cut_stacks(&all.unwind, options->config.max_frames);
	if (options->config.sampler == SAMPLER_PERF)
		log_capped_stacks(&all.unwind);
}

void shutdown_print_outcome(const struct broker *b)
{
	struct run_totals all;
	const struct chunk_counts *c = &all.chunks;
	uint64_t lost;

	/* shutdown_conversion() has said why there is no file. */
	if (b->modules.discovery == NULL && !has_samples(b)) {
		if (b->modules.state.options.output_format == NULL)
			printf("no samples were taken: what was profiled has ended too early "
			       "(--rate 1000 takes a sample each millisecond)\n");
		return;
	}
	totals_of_all(&b->modules.targets, &all);
	lost = totals_discarded(&all);
	if (b->conversion.is_made)
		printf("the profile is in %s\n", b->modules.state.options.output);
	else if (delivery_has_files(&b->modules.delivery))
		printf("%llu envelope%s in %s\n",
		       (unsigned long long)b->modules.delivery.files_written,
		       b->modules.delivery.files_written == 1 ? "" : "s",
		       b->modules.delivery.output.path);
	if (c->not_written > 0)
		printf("%llu envelope%s could not be written\n", (unsigned long long)c->not_written,
		       c->not_written == 1 ? "" : "s");
	if (b->modules.children.has_dsn)
		printf("%llu chunk%s sent\n", (unsigned long long)c->sent, c->sent == 1 ? "" : "s");
	if (b->modules.children.spotlight != NULL)
		printf("%llu chunk%s sent to Spotlight\n",
		       (unsigned long long)b->modules.delivery.spotlight.sent,
		       b->modules.delivery.spotlight.sent == 1 ? "" : "s");
	if (c->spooled > 0)
		printf("%llu chunk%s put into the spool, to be sent later\n",
		       (unsigned long long)c->spooled, c->spooled == 1 ? "" : "s");
	if (lost > 0 && b->command.pid == 0)
		printf("%llu chunk%s discarded (--stats tells why)\n", (unsigned long long)lost,
		       lost == 1 ? "" : "s");
}

/* Events end the wait. The time is for the watchdog of the service manager. */
#define TURN_MS 1000

void shutdown_conversion(struct broker *b)
{
	const char *path = b->modules.state.options.output;
	struct output_conversion *c = &b->conversion;
	int r;

	if (b->modules.delivery.files_written == 0) {
		log_error("%s is not written: there is no profile, since no chunk was made (the "
			  "processes ended too early, or could not be attached to)",
			  path);
		return;
	}
	/* A signal from here on is to end the conversion. */
	b->modules.state.end_at_once = false;
	r = output_conversion_start(c, &b->modules.delivery.output, b->modules.state.nice_steps,
				    b->modules.state.options.output_format->name);
	while (c->pid != 0) {
		if (b->modules.state.end_at_once)
			output_conversion_stop(c);
		run_turn(b, TURN_MS);
	}
	output_conversion_finish(c, &b->modules.delivery.output, path, r,
				 b->modules.state.end_at_once);
}

void shutdown_print_viewer(const struct broker *b)
{
	const struct options *o = &b->modules.state.options;

	if (!o->quiet && b->modules.discovery == NULL && delivery_has_files(&b->modules.delivery) &&
	    b->modules.delivery.files_written > 0 && o->transaction == NULL)
		output_conversion_print_viewer(&b->conversion, &b->modules.delivery.output, o);
}

int shutdown_command(struct broker *b)
{
	command_cancel(&b->command);
	while (!b->command.has_ended)
		run_turn(b, TURN_MS);
	return command_exit_status(&b->command);
}

void shutdown_children(struct broker *b)
{
	struct idle_timeout timeout;

	state_advance(&b->modules.state, PHASE_CLOSING);
	idle_timeout_start(&timeout, clock_mono_ns());
	while (children_close(&b->modules.children)) {
		const uint64_t now = clock_mono_ns();

		/*
		 * A ship may still write chunks to the spool; the other children have no work
		 * left.
		 */
		if (now >=
		    idle_timeout_end_ns(&timeout, now, children_ships_work(&b->modules.children)))
			children_kill(&b->modules.children);
		(void)!loop_run_once(b->modules.state.loop, 100);
		command_check_stopped(&b->command, &b->modules.state);
		children_reap(&b->modules.children);
		children_check_killed(&b->modules.children);
	}
}
