/*
 * sentry-profd-capture: the process that may ptrace. It drives lib/capture by
 * a timer and by SIGCHLD, and hands rings to the unwind processes.
 *
 * It opens nothing but files of /proc, and nothing while a thread is stopped.
 *
 * All that is done by one thread, the tracer. The first thread of the process
 * only waits for its end, and starts another: a tracer that ends lets go of all
 * without stopping anybody, and the next one takes those that are to be kept.
 */
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "daemon/capture/cpu_quota.h"
#include "daemon/capture/readers.h"
#include "daemon/capture/realtime.h"
#include "daemon/capture/slots.h"
#include "daemon/capture/stops.h"
#include "daemon/capture/tell.h"
#include "daemon/capture/ticker.h"
#include "daemon/capture/tracer.h"
#include "daemon/common/child.h"
#include "daemon/common/log.h"
#include "daemon/common/privileges.h"
#include "daemon/msg/heartbeat.h"
#include "daemon/msg/msg.h"
#include "daemon/msg/msg_io.h"
#include "lib/base/loop.h"
#include "lib/capture/capture.h"
#include "lib/capture/leave.h"
#include "lib/capture/reap.h"

/* How long credits are waited for at the end. */
#define FINISH_NS (2 * NS_PER_SEC)

/*
 * To let go of one target takes some 5 us for each thread of the others: no
 * more than one of so many parts of the time. On a machine that leaves us none
 * it takes seconds, and who is to be let go of waits for no more than this.
 */
#define LEAVE_SHARE  50
#define LEAVE_MAX_NS (2 * NS_PER_SEC)
/* It is asked this often whether the moment has come. */
#define LEAVE_LOOK_NS (10 * NS_PER_MS)

/* Beyond that they are not profiled: the broker has not listened for long. */
#define BORN_MAX 4096

static struct {
	struct loop *loop;
	struct capture *capture;
	struct heartbeat *heartbeat;
	struct readers *readers;
	struct slots slots;
	/* Forked children whose pids capture has not sent to the broker yet. */
	int32_t born[BORN_MAX];
	size_t n_born;
	struct loop_source *broker;
	struct stops stops;
	struct ticker ticker; /* from the first target on */
	/* One target is let go of by this tracer's end: but not before. */
	uint64_t leave_ns;
	bool finishing;
	bool settling; /* no tick is taken any more by this tracer */
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
	tell_ring_made(m->id, fd);
	close_fd(&fd);
	return 0;
}

static void on_tick(void *ctx)
{
	const uint64_t now = clock_mono_ns();
	struct tick tick;

	(void)ctx;
	beat();
	if (me.stops.await.rings ? !ticker_pass(&me.ticker, now) : !ticker_take(&me.ticker, now))
		return;
	if (me.settling)
		return;
	tick = ticker_now(&me.ticker);
	/* Ticks that it leaves out are late at the next one. */
	if (!me.realtime.exceeded) {
		readers_tick(me.readers, now);
		capture_tick(me.capture, &tick);
		readers_tell_first(me.readers);
	}
	stops_tick(&me.stops, &me.ticker);
}

/* Where nobody is left there are no ticks until somebody comes. */
static void rest(void)
{
	if (slots_are_free(&me.slots))
		ticker_stop(&me.ticker, me.loop);
}

static int add_target(void *ctx, struct ipc_message *message)
{
	const struct msg_target_add *m = (const void *)message->bytes;
	struct capture_sink *sink = readers_sink(me.readers, m->ring);
	int r;

	(void)ctx;
	if (m->target == 0 || sink == NULL || m->pid <= 0 || !slots_is_free(&me.slots, m->slot))
		return -EPROTO;
	r = ticker_start(&me.ticker, me.loop, m->epoch_ns, m->period_ns, on_tick);
	if (r < 0)
		return r;
	/* Somebody else's before. */
	memset(&me.heartbeat->slots[m->slot], 0, sizeof(me.heartbeat->slots[m->slot]));
	r = capture_add(me.capture, m->target, m->pid, message->fds[0], sink,
			&me.heartbeat->slots[m->slot], ticker_at(&me.ticker, clock_mono_ns()));
	if (r < 0) {
		tell_state(m->target, TARGET_REFUSED, -r);
		rest();
		return 0;
	}
	if (m->wants_pointers)
		capture_want_pointers(me.capture, m->target);
	if (m->awaits_exec)
		capture_await_exec(me.capture, m->target);
	slots_take(&me.slots, m->slot, m->target);
	tell_state(m->target, TARGET_ATTACHED, 0);
	return 0;
}

/* One that has ended is no fault: the broker will hear of it. */
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
	if (m->ticks == 0 || m->ticks > m->of_ticks)
		return -EPROTO;
	capture_rate(me.capture, m->target, m->ticks, m->of_ticks);
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

static void on_broker(void *ctx)
{
	static const struct msg_rule rules[] = {
		{MSG_RING_MAKE, make_ring},	    {MSG_TARGET_ADD, add_target},
		{MSG_TARGET_REMOVE, remove_target}, {MSG_TARGET_RATE, set_rate},
		{MSG_CAPTURE_STOP, stop},
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
		die("a message of the broker", -r);
}

static void note_born(void *ctx, int32_t pid)
{
	(void)ctx;
	/* Its parent's stop and its own mostly come one after the other. */
	if (me.n_born > 0 && me.born[me.n_born - 1] == pid)
		return;
	if (me.n_born < BORN_MAX)
		me.born[me.n_born++] = pid;
}

static void tell_of_born(void)
{
	size_t told = 0;

	while (told < me.n_born && tell_born(me.born[told]))
		told++;
	me.n_born -= told;
	memmove(me.born, me.born + told, me.n_born * sizeof(me.born[0]));
}

/* One round of events. */
static int run_once(int timeout_ms)
{
	const uint64_t now = clock_mono_ns();
	const uint64_t next = ticker_time(&me.ticker, ticker_next(&me.ticker));
	int r = 0;

	me.heartbeat->beat.time_ns = now;
	realtime_keep(&me.realtime, capture_realtime_priority(me.capture), now);
	if (stops_take(&me.stops, now, next)) {
		/* A stop is one round. */
	} else if (stops_spare_loop(&me.stops, next)) {
		on_tick(NULL);
	} else {
		r = loop_run_once(me.loop, me.stops.behind ? 0 : timeout_ms);
		stops_take_rest(&me.stops);
	}
	/* Before the end of a parent: that of the last process ends the run. */
	if (me.n_born > 0)
		tell_of_born();
	/* Whoever waits for an end, or has to look at a new program. */
	if (me.slots.noted) {
		readers_tell(me.readers);
		slots_tell(&me.slots, tell_state);
		rest();
	}
	return r < 0 ? r : ticker_plan(&me.ticker, me.capture);
}

static void set_up(const struct msg_init *init, int heartbeat_fd)
{
	capability_set keep = CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_SYS_NICE);
	const struct capture_options options = {
		.now_ns = clock_mono_ns,
		.process_ns = clock_process_ns,
		.switches = clock_switches,
		.beat = &me.heartbeat->beat,
		.event = slots_note,
		.born = init->follows ? note_born : NULL,
		.ctx = &me.slots,
	};
	capability_set have;
	int r;

	r = privileges_permitted(&have);
	if (r == 0) {
		keep |= privileges_to_read(have);
		r = privileges_drop(init->uid, init->gid, keep, false);
	}
	if (r < 0)
		die("cannot give up privileges", -r);
	/* A hung capture must not outlive the broker that would kill it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		die("prctl", errno);
	privileges_all_files();
	close_fd(&heartbeat_fd);
	r = capture_new(&options, &me.capture);
	if (r == 0)
		r = loop_new(&me.loop);
	if (r == 0)
		r = stops_init(&me.stops, me.loop, me.capture);
	if (r == 0)
		r = readers_new(
			&(const struct readers_options){
				.loop = me.loop,
				.capture = me.capture,
				.broken = tell_ring_broken,
			},
			&me.readers);
	if (r == 0)
		r = loop_add(me.loop, MSG_FD, on_broker, NULL, &me.broker);
	if (r < 0)
		die("cannot start", -r);
}

/* False: not all of it. */
static bool tell_ends(void)
{
	return !me.finishing || me.keep_sessions || capture_finish(me.capture);
}

/*
 * Before the tracer ends. Running threads stop within a moment. False: one of
 * those that are to be kept was met in a call that may take longer.
 */
static bool settle(void)
{
	uint64_t deadline = UINT64_MAX;
	bool settled = false;

	stops_rest(&me.stops);
	while (!settled && clock_mono_ns() < deadline) {
		/* Not after capture_settle: who stops may be run again. */
		(void)capture_reap(me.capture);
		if (!me.finishing && !capture_lets_go(me.capture))
			return false;
		if (capture_settle(me.capture)) {
			settled = tell_ends();
			deadline = min_u64(deadline, clock_mono_ns() + FINISH_NS);
		}
		readers_tell(me.readers);
		beat();
		if (!settled && loop_run_once(me.loop, 10) < 0)
			break;
	}
	if (!settled)
		(void)!tell_ends();
	readers_tell(me.readers);
	return true;
}

/* The others had no ticks since. */
static void go_on(uint64_t since_ns)
{
	const uint64_t now = clock_mono_ns();

	me.leave_ns = now + min_u64(LEAVE_SHARE * (now - since_ns), LEAVE_MAX_NS);
}

static bool lets_go(void)
{
	const uint64_t now = clock_mono_ns();

	if (now < me.leave_ns)
		return false;
	me.leave_ns = now + LEAVE_LOOK_NS;
	return capture_lets_go(me.capture);
}

static bool ends(void)
{
	return me.finishing || (capture_is_leaving(me.capture) && lets_go());
}

/* False: it is to go on. */
static bool finish(uint64_t *ret_since_ns)
{
	bool settled;

	*ret_since_ns = clock_mono_ns();
	me.settling = true;
	settled = settle();
	me.settling = false;
	if (!settled)
		go_on(*ret_since_ns);
	return settled;
}

/* A quota stops ordinary processes, also while somebody waits for us. */
static void look_at_quota(void)
{
	me.heartbeat->cpu_quota = cpu_quota_own();
	if (me.realtime.scheduler != SCHEDULER_FIFO && me.heartbeat->cpu_quota != 0)
		log_warning("our control group has a CPU quota of %u %% of a "
			    "core, and SCHED_FIFO is refused: when the quota "
			    "is used up, a thread that is being sampled stands "
			    "until there is a new one; permit SCHED_FIFO "
			    "(CAP_SYS_NICE), or take the quota away",
			    (unsigned int)me.heartbeat->cpu_quota);
}

/*
 * A thread's; its end lets go of all. ctx: since when they are let go of; 0:
 * there was no tracer before. That the others are traced again takes its time,
 * the longer the more there are: where many are let go of, they go together.
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
		go_on(*since_ns);
	} else {
		look_at_quota();
	}
	do {
		while (r == 0 && !ends())
			r = run_once(HEARTBEAT_EVERY_MS);
		if (r < 0)
			die("the wait for events", -r);
	} while (!finish(since_ns));
}

static void run_tracer(void)
{
	static uint64_t since_ns;
	int r = tracer_run(trace, &since_ns);

	if (r < 0)
		die("the tracer", -r);
}

int main(int argc, char **argv)
{
	struct ipc_message message;
	const struct msg_init *init = child_start(argc, argv, "sentry-profd-capture", &message);
	int heartbeat_fd = ipc_take_fd(&message, 0);

	me.heartbeat = mmap(NULL, sizeof(*me.heartbeat), PROT_READ | PROT_WRITE, MAP_SHARED,
			    heartbeat_fd, 0);
	if (me.heartbeat == MAP_FAILED)
		die("the heartbeat page", errno);
	set_up(init, heartbeat_fd);
	ipc_close_fds(&message);
	child_is_ready();
	while (!me.finishing)
		run_tracer();
	tell_done();
	return EXIT_SUCCESS;
}
