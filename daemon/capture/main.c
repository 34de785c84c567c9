/*
 * sentry-profd-capture: the process that may use ptrace. It calls lib/capture at each tick of a
 * timer and at each SIGCHLD, and hands rings to the unwind processes.
 *
 * It opens only files of /proc, and none while a thread is stopped.
 *
 * One thread, the tracer, does all the work. The first thread of the process only waits for the
 * tracer's end and starts another one: at the end of a tracer the kernel detaches its tracees
 * without stopping them, and the next tracer attaches to those that stay targets.
 */
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "daemon/capture/broker_link.h"
#include "daemon/capture/filter.h"
#include "daemon/capture/readers.h"
#include "daemon/capture/realtime.h"
#include "daemon/capture/slots.h"
#include "daemon/capture/stops.h"
#include "daemon/capture/ticker.h"
#include "daemon/capture/tracer.h"
#include "daemon/common/child.h"
#include "daemon/common/log.h"
#include "daemon/common/privileges.h"
#include "daemon/msg/msg.h"
#include "daemon/msg/msg_capture.h"
#include "daemon/msg/msg_io.h"
#include "daemon/process/cpu_group.h"
#include "lib/base/loop.h"
#include "lib/capture/capture.h"
#include "lib/capture/crash.h"
#include "lib/capture/detach.h"
#include "lib/capture/held_exec.h"
#include "lib/capture/perf/perf.h"
#include "lib/capture/reap.h"

/* The longest wait for credits at the end. */
#define FINISH_NS (2 * NS_PER_SEC)

/*
 * Detaching from one target costs some 5 us for each thread of the other targets: at most
 * 1/DETACH_SHARE of the time is spent on that. On a machine that gives capture no processor, the 5
 * us become seconds; a detaching target waits DETACH_MAX_NS at most.
 */
#define DETACH_SHARE  50
#define DETACH_MAX_NS (2 * NS_PER_SEC)
/* How often capture_prepare_detach is called. */
#define DETACH_CHECK_NS (10 * NS_PER_MS)

/*
 * The most children that wait for a broker that does not read its messages. Further ones are not
 * profiled.
 */
#define BORN_MAX 4096

static struct {
	struct loop *loop;
	struct capture *capture;
	struct heartbeat *heartbeat;
	struct readers *readers;
	struct slots slots;
	/* The ids of MSG_CHILD_BORN that capture has not sent to the broker yet. */
	int32_t born[BORN_MAX];
	size_t n_born;
	/* Held processes of which capture has not told the broker yet (lib/capture/held_exec.h). */
	int32_t executed[HELD_EXEC_MAX];
	size_t n_executed;
	struct loop_source *broker;
	struct stops stops;
	struct ticker ticker; /* runs while there are targets */
	/* Capture detaches from no target before this time. */
	uint64_t detach_ns;
	bool finishing;
	bool settling; /* this tracer gives no more ticks to capture */
	struct realtime realtime;
	bool keep_sessions;
} me;

static void beat(void)
{
	me.heartbeat->beat.time_ns = clock_mono_ns();
}

static void die(const char *what, int error)
{
	log_error("%s: %s", what, strerror(error));
	exit(EXIT_FAILURE);
}

static int make_ring(void *ctx, struct ipc_message *message)
{
	const struct msg_id *m = (const void *)message->bytes;
	int fd, r;

	(void)ctx;
	r = readers_make(me.readers, m->id, ipc_take_fd(message, 0), &fd);
	if (r < 0)
		return r;
	broker_link_ring_made(m->id, fd);
	close_fd(&fd);
	return 0;
}

static void on_tick(void *ctx)
{
	const uint64_t now = clock_mono_ns();
	struct tick tick;

	(void)ctx;
	beat();
	if (me.stops.await.is_set ? !ticker_pass(&me.ticker, now) : !ticker_take(&me.ticker, now))
		return;
	if (me.settling)
		return;
	tick = ticker_now(&me.ticker);
	/* Ticks left out here count as late at the next one. */
	if (!me.realtime.exceeded) {
		readers_tick(me.readers, now);
		capture_tick(me.capture, &tick);
		readers_send_first_heads(me.readers, now);
	}
	stops_tick(&me.stops, &me.ticker);
}

/* Without targets there are no ticks until one is added. */
static void stop_idle_ticker(void)
{
	if (slots_are_free(&me.slots))
		ticker_stop(&me.ticker, me.loop);
}

static void report_added(uint32_t target, enum target_state state, int error)
{
	const struct msg_target_state m = {
		.h = MSG_HEADER(MSG_TARGET_STATE),
		.target = target,
		.state = state,
		.error = error,
	};

	broker_link_state(&m);
}

static int add_target(void *ctx, struct ipc_message *message)
{
	const struct msg_target_add *m = (const void *)message->bytes;
	struct capture_sink *sink = readers_sink(me.readers, m->ring);
	struct capture_crash crash;
	int r;

	(void)ctx;
	if (m->target == 0 || sink == NULL || m->pid <= 0 || !slots_is_free(&me.slots, m->slot))
		return -EPROTO;
	if (capture_child_has_crashed(me.capture, m->pid, &crash)) {
		slots_report_crash(m->target, &crash, broker_link_state);
		return 0;
	}
	r = ticker_start(&me.ticker, me.loop, m->epoch_ns, m->period_ns, on_tick);
	if (r < 0)
		return r;
	/* The slot may have been another target's. */
	memset(&me.heartbeat->slots[m->slot], 0, sizeof(me.heartbeat->slots[m->slot]));
	r = capture_add(me.capture, m->target, m->pid, message->fds[0], sink,
			&me.heartbeat->slots[m->slot], ticker_at(&me.ticker, clock_mono_ns()));
	if (r < 0) {
		report_added(m->target, TARGET_REFUSED, -r);
		stop_idle_ticker();
		return 0;
	}
	if (m->wants_thread_pointers)
		capture_want_thread_pointers(me.capture, m->target);
	slots_take(&me.slots, m->slot, m->target);
	report_added(m->target, TARGET_ATTACHED, 0);
	capture_set_user(me.capture, m->target, m->uid, m->files_uid);
	capture_ignore_crashes(me.capture, m->target, m->ignored_crashes);
	if (m->awaits_exec)
		capture_await_exec(me.capture, m->target);
	return 0;
}

/* If the target has ended already, the broker has its state, so that is no error. */
static int remove_target(void *ctx, struct ipc_message *message)
{
	const struct msg_id *m = (const void *)message->bytes;

	(void)ctx;
	(void)!capture_remove(me.capture, m->id);
	return 0;
}

static int set_rate(void *ctx, struct ipc_message *message)
{
	const struct msg_target_rate *m = (const void *)message->bytes;

	(void)ctx;
	if (m->sampled_ticks == 0 || m->sampled_ticks > m->of_ticks)
		return -EPROTO;
	capture_rate(me.capture, m->target, m->sampled_ticks, m->of_ticks);
	capture_withhold(me.capture, m->target, m->is_withheld != 0);
	return 0;
}

static int stop(void *ctx, struct ipc_message *message)
{
	const struct msg_id *m = (const void *)message->bytes;

	(void)ctx;
	me.keep_sessions = m->id == CAPTURE_KEEP_SESSIONS;
	me.finishing = true;
	return 0;
}

static int decide_exec(void *ctx, struct ipc_message *message)
{
	const struct msg_exec_decided *m = (const void *)message->bytes;

	(void)ctx;
	if (m->decision >= EXEC_DECISION_END)
		return -EPROTO;
	if (m->decision == EXEC_ALWAYS_GOES_ON)
		capture_trust_exec(me.capture, m->pid);
	capture_decide_exec(me.capture, m->pid, m->decision == EXEC_LEFT);
	return 0;
}

static void on_broker(void *ctx)
{
	static const struct msg_rule rules[] = {
		{MSG_RING_MAKE, make_ring},	    {MSG_TARGET_ADD, add_target},
		{MSG_TARGET_REMOVE, remove_target}, {MSG_TARGET_RATE, set_rate},
		{MSG_EXEC_DECIDED, decide_exec},    {MSG_CAPTURE_STOP, stop},
	};
	struct ipc_message m;
	int r = ipc_recv(MSG_FD, &m);

	(void)ctx;
	if (r == 0)
		exit(EXIT_SUCCESS);
	if (r > 0)
		r = msg_handle(rules, array_size(rules), NULL, &m);
	ipc_close_fds(&m);
	if (r < 0 && r != -EAGAIN && r != -EPIPE)
		die("cannot handle a message from sentry-profd", -r);
}

static void note_born(void *ctx, int32_t pid)
{
	(void)ctx;
	/* A child is reported twice, mostly in a row: at its parent's stop and at its own. */
	if (me.n_born > 0 && me.born[me.n_born - 1] == pid)
		return;
	if (me.n_born < BORN_MAX)
		me.born[me.n_born++] = pid;
}

static bool note_executed(void *ctx, int32_t pid)
{
	(void)ctx;
	if (me.n_executed == HELD_EXEC_MAX)
		return false;
	me.executed[me.n_executed++] = pid;
	return true;
}

static void report_list(int32_t *pids, size_t *n_pids, bool (*report)(int32_t pid))
{
	size_t n = 0;

	while (n < *n_pids && report(pids[n]))
		n++;
	*n_pids -= n;
	memmove(pids, pids + n, *n_pids * sizeof(pids[0]));
}

/*
 * Children are reported before the ends of their parents, because the end of the last process ends
 * the run, and before their own execs.
 */
static void report_processes(void)
{
	report_list(me.born, &me.n_born, broker_link_born);
	if (me.n_born == 0)
		report_list(me.executed, &me.n_executed, broker_link_exec_held);
	if (capture_holds_execs(me.capture))
		capture_leave_overdue_execs(me.capture);
}

/* Handles one round of events. */
static int run_once(int timeout_ms)
{
	const uint64_t now = clock_mono_ns();
	const uint64_t next = ticker_time(&me.ticker, ticker_next(&me.ticker));
	int r = 0;

	me.heartbeat->beat.time_ns = now;
	realtime_keep(&me.realtime, capture_realtime_priority(me.capture), now);
	if (stops_take(&me.stops, now, next)) {
		/* Stops were handled: this round is done. */
	} else if (stops_spare_loop(&me.stops, next)) {
		on_tick(NULL);
	} else {
		r = loop_run_once(me.loop, me.stops.behind ? 0 : timeout_ms);
		stops_take_more(&me.stops);
	}
	report_processes();
	/* unwind gets the records of a target's end or exec before the broker gets the event. */
	if (me.slots.noted) {
		readers_send_heads(me.readers);
		slots_report(&me.slots, broker_link_state);
		stop_idle_ticker();
	}
	return r < 0 ? r : ticker_plan(&me.ticker, me.capture);
}

static void set_up(const struct msg_init *init, int heartbeat_fd)
{
	capability_set keep = CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_SYS_NICE);
	struct capture_options options = {
		.now_ns = clock_mono_ns,
		.process_ns = clock_process_ns,
		.switches = clock_switches,
		.beat = &me.heartbeat->beat,
		.event = slots_note_event,
		.crashed = slots_note_crash,
		.born = init->follow_children ? note_born : NULL,
		.executed = note_executed,
		.ctx = &me.slots,
	};
	capability_set have;
	int r;

	r = privileges_permitted(&have);
	if (r == 0) {
		keep |= privileges_for_reading(have);
		if (init->uses_perf)
			keep |= CAPABILITY(CAP_PERFMON);
		r = privileges_drop(init->uid, init->gid, keep, false);
	}
	if (r < 0)
		die("cannot give up privileges", -r);
	/* A hung capture must not outlive the broker that would kill it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		die("cannot arrange to end with sentry-profd", errno);
	privileges_raise_descriptor_limit();
	close_fd(&heartbeat_fd);
	if (init->uses_perf) {
		r = perf_open(CAPTURE_PERF_STACK_BYTES, &options.perf);
		if (r < 0)
			die("cannot open perf events", -r);
	}
	r = capture_new(&options, &me.capture);
	if (r == 0)
		r = loop_new(&me.loop);
	if (r == 0)
		r = stops_init(&me.stops, me.loop, me.capture, &me.heartbeat->polls);
	if (r == 0)
		r = readers_new(
			&(const struct readers_options){
				.loop = me.loop,
				.capture = me.capture,
				.broken = broker_link_ring_broken,
			},
			&me.readers);
	if (r == 0)
		r = loop_add(me.loop, MSG_FD, on_broker, NULL, &me.broker);
	if (r < 0)
		die("cannot start", -r);
	r = filter_install(init->uses_perf, init->seccomp_kill);
	if (r < 0)
		die("cannot install the filter of system calls", -r);
}

/* Ends all targets if the run ends. Returns false if a ring had no room for a RECORD_END. */
static bool end_targets(void)
{
	return !me.finishing || me.keep_sessions || capture_finish(me.capture);
}

/*
 * Waits until no thread would lose anything by the end of the tracer. Running threads stop within a
 * moment. Returns false if a thread of a target that stays is in a call that may take longer: then
 * the tracer goes on.
 */
static bool settle(void)
{
	uint64_t deadline = UINT64_MAX;
	bool settled = false;

	stops_by_signal(&me.stops);
	while (!settled && !capture_must_detach_now(me.capture) && clock_mono_ns() < deadline) {
		/* Called before capture_settle, since a stop may begin a resumed call. */
		(void)capture_reap(me.capture);
		if (!me.finishing && !capture_prepare_detach(me.capture))
			return false;
		if (capture_settle(me.capture)) {
			settled = end_targets();
			deadline = min_u64(deadline, clock_mono_ns() + FINISH_NS);
		}
		readers_send_heads(me.readers);
		/* Processes execute programs meanwhile, and are held until the broker has decided.
		 */
		report_processes();
		beat();
		if (!settled && loop_run_once(me.loop, 10) < 0)
			break;
	}
	if (!settled)
		(void)!end_targets();
	readers_send_heads(me.readers);
	return true;
}

/*
 * Sets detach_ns, so that targets leave seldom enough for DETACH_SHARE: the targets that stay had
 * no ticks since since_ns.
 */
static void put_off_detaching(uint64_t since_ns)
{
	const uint64_t now = clock_mono_ns();

	me.detach_ns = now + min_u64(DETACH_SHARE * (now - since_ns), DETACH_MAX_NS);
}

static bool can_detach(void)
{
	const uint64_t now = clock_mono_ns();

	if (now < me.detach_ns)
		return false;
	me.detach_ns = now + DETACH_CHECK_NS;
	return capture_prepare_detach(me.capture);
}

/* Returns true if this tracer is to end. */
static bool ends(void)
{
	return me.finishing || capture_must_detach_now(me.capture) ||
	       (capture_is_detaching(me.capture) && can_detach());
}

/* Tries to end the tracer. Returns false if the tracer goes on. */
static bool finish(uint64_t *ret_since_ns)
{
	bool settled;

	*ret_since_ns = clock_mono_ns();
	me.settling = true;
	settled = settle();
	me.settling = false;
	if (!settled)
		put_off_detaching(*ret_since_ns);
	return settled;
}

/*
 * Warns of a CPU quota, which stops ordinary processes, and so capture while it has a thread
 * stopped.
 */
static void check_quota(void)
{
	me.heartbeat->cpu_quota = cpu_group_own_quota();
	if (me.realtime.scheduler != SCHEDULER_FIFO && me.heartbeat->cpu_quota != 0)
		log_warning(
			"the control group of sentry-profd has a CPU quota of %u %% of a core, "
			"and SCHED_FIFO is refused: when the quota is used up, a stopped thread "
			"waits for the next quota period; permit SCHED_FIFO (CAP_SYS_NICE) or "
			"remove the quota",
			(unsigned int)me.heartbeat->cpu_quota);
}

/*
 * The work of one tracer, in a thread at whose end the kernel detaches all tracees. ctx: the time
 * since which the targets have no tracer; 0: there was none before. Attaching again takes longer
 * the more threads there are, so capture detaches from several detaching targets together.
 */
static void trace(void *ctx)
{
	uint64_t *since_ns = ctx;
	int r = 0;

	await_enter();
	realtime_start(&me.realtime);
	me.heartbeat->scheduler = me.realtime.scheduler;
	if (*since_ns != 0) {
		capture_attach_again(me.capture);
		put_off_detaching(*since_ns);
	} else {
		check_quota();
	}
	do {
		while (r == 0 && !ends())
			r = run_once(HEARTBEAT_EVERY_MS);
		if (r < 0)
			die("cannot wait for events", -r);
	} while (!finish(since_ns));
}

static void run_tracer(void)
{
	static uint64_t since_ns;
	int r = tracer_run(trace, &since_ns);

	if (r < 0)
		die("cannot run the tracing thread", -r);
}

int main(int argc, char **argv)
{
	struct ipc_message message;
	const struct msg_init *init =
		child_start(argc, argv, "sentry-profd-capture", NULL, &message);
	int heartbeat_fd = ipc_take_fd(&message, 0);

	me.heartbeat = mmap(NULL, sizeof(*me.heartbeat), PROT_READ | PROT_WRITE, MAP_SHARED,
			    heartbeat_fd, 0);
	if (me.heartbeat == MAP_FAILED)
		die("cannot map the heartbeat page", errno);
	set_up(init, heartbeat_fd);
	ipc_close_fds(&message);
	child_send_ready();
	while (!me.finishing)
		run_tracer();
	broker_link_done();
	return EXIT_SUCCESS;
}
