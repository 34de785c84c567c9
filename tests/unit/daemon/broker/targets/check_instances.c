/*
 * When the run of a profiled process is ended and another begins; and what happens to instances
 * whose processes end or whose sections change.
 */
#include "daemon/broker/targets/instances.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/broker/targets/attach.h"
#include "daemon/broker/targets/lifecycle.h"
#include "daemon/broker/targets/owners.h"
#include "daemon/config/config.h"
#include "daemon/process/process.h"
#include "lib/base/clock.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/daemon/log_capture.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct instance instance;
static struct instance *list[] = {&instance};
static uint64_t mono_ns, slept_ns, wall_ns;

static uint64_t mono(void)
{
	return mono_ns;
}

static uint64_t boot(void)
{
	return mono_ns + slept_ns;
}

static uint64_t wall(void)
{
	return wall_ns;
}

/* An instance that is profiled. */
static void set_up(void)
{
	build_broker(&b);
	b.modules.state.clocks = (struct state_clocks){mono, boot, wall};
	b.modules.targets.instances = list;
	b.modules.targets.n_instances = 1;
	mono_ns = slept_ns = 1000 * NS_PER_SEC;
	wall_ns = UINT64_C(1763755000) * NS_PER_SEC;
	instance = (struct instance){
		.pid = 1,
		.pidfd = -1,
		.is_sampled = true,
		.is_started = true,
	};
	build_run(&b, &instance, NULL)->in_capture = true;
}

static bool run_continues(void)
{
	instances_check(&b.modules.targets);
	return instance.run->phase == RUN_PROFILED;
}

FIXTURE(set_up, NULL)

TEST(a_run_ends_when_the_instance_is_stopped)
{
	ck_assert(run_continues());
	instance.is_started = false;
	ck_assert(!run_continues());
}

TEST(a_run_ends_when_the_machine_has_slept)
{
	ck_assert(run_continues());
	slept_ns += 3600 * NS_PER_SEC;
	ck_assert(!run_continues());
}

TEST(a_run_ends_when_the_clock_was_set)
{
	mono_ns += 3600 * NS_PER_SEC;
	wall_ns += 3600 * NS_PER_SEC;
	ck_assert(run_continues());
	wall_ns += 3600 * NS_PER_SEC;
	ck_assert(!run_continues());
}

enum { MANY = 32 };

static struct ship ship;
static struct unwind unwind;
static struct section_config sections[2];
static struct instance *many[MANY];

/*
 * MANY instances of section "a", with the pid of this process, which lives. The
 * broker has a ship and an unwind process that do not run.
 */
static void set_up_many(void)
{
	struct owner own;

	build_broker(&b);
	memset(sections, 0, sizeof(sections));
	b.modules.state.timer_hz = 101;
	b.modules.targets.instances = many;
	b.modules.targets.n_instances = MANY;
	ship = (struct ship){.child = {.children = &b.modules.children, .fd = -1},
			     .is_first = true};
	b.modules.children.ships[0] = &ship;
	b.modules.children.n_ships = 1;
	unwind = (struct unwind){.child = {.children = &b.modules.children, .fd = -1},
				 .link_fd = -1};
	OK(owner_read(getpid(), &own));
	unwind.key = owner_key(&own);
	b.modules.children.unwinds[0] = &unwind;
	b.modules.children.n_unwinds = 1;
	memcpy(sections[0].name, "a", sizeof("a"));
	memcpy(sections[1].name, "b", sizeof("b"));
	sections[0].autostart = sections[1].autostart = true;
	sections[0].session_sample_rate = sections[1].session_sample_rate = 1;
	sections[0].rate_hz = sections[1].rate_hz = 101;
	b.modules.state.options.config.sections = sections;
	b.modules.state.options.config.n_sections = 2;
	for (size_t k = 0; k < MANY; k++) {
		struct instance *i = calloc(1, sizeof(*i));

		ck_assert_ptr_nonnull(i);
		i->targets = &b.modules.targets;
		i->pid = getpid();
		OK(owner_read(getpid(), &i->owner));
		i->pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
		i->config = sections[0];
		i->is_sampled = true;
		many[k] = i;
	}
}

static void turn(void)
{
	instances_check(&b.modules.targets);
	targets_sweep(&b.modules.targets);
	instances_sweep(&b.modules.targets);
}

static void tear_down_many(void)
{
	for (size_t k = 0; k < b.modules.targets.n_instances; k++) {
		many[k]->life = INSTANCE_ENDED;
		many[k]->run = NULL;
	}
	turn();
	ck_assert_uint_eq(b.modules.targets.n_instances, 0);
}

FIXTURE(set_up_many, tear_down_many)

/* Starting the youngest walks over all others. */
TEST(many_instances_end_in_the_turn_in_which_a_run_starts)
{
	for (size_t k = 0; k < MANY - 1; k++)
		many[k]->life = INSTANCE_ENDED;
	many[MANY - 1]->is_started = true;
	turn();
	ck_assert_uint_eq(b.modules.targets.n_instances, 1);
	ck_assert_ptr_nonnull(many[0]->run);
}

/* LIMITS in sentry-profd.conf(5). */
TEST(a_4097th_process_is_told_once)
{
	struct process p = {.pid = 7, .pidfd = -1};

	b.modules.targets.n_instances = INSTANCES_MAX;
	log_capture_begin();
	ck_assert_int_eq(instance_add(&b.modules.targets, &p, 0), -ENOSPC);
	ck_assert_int_eq(instance_add(&b.modules.targets, &p, 0), -ENOSPC);
	ck_assert_uint_eq(log_capture_end("more than 4096 processes match sections: process 7 "),
			  1);
	b.modules.targets.n_instances = MANY;
}

TEST(a_257th_run_waits_for_a_place)
{
	struct run *table = b.modules.targets.table;

	for (uint32_t k = 0; k < HEARTBEAT_SLOTS; k++)
		table[k] = (struct run){.id = k + 1, .instance = many[MANY - 1]};
	many[0]->is_started = many[1]->is_started = true;
	log_capture_begin();
	instances_check(&b.modules.targets);
	ck_assert_uint_eq(log_capture_end("256 processes are profiled, the maximum: process "), 1);
	ck_assert(many[0]->obstacle == INSTANCE_LIMIT_REACHED);
	ck_assert(many[1]->obstacle == INSTANCE_LIMIT_REACHED);
	memset(&table[255], 0, sizeof(table[255]));
	instances_check(&b.modules.targets);
	ck_assert_ptr_nonnull(many[0]->run);
	memset(table, 0, 255 * sizeof(*table));
}

/* Returns the run of many[0]; the test reports for capture that it has detached. */
static struct run *profile_first(void)
{
	struct run *run;

	many[0]->is_started = true;
	turn();
	run = many[0]->run;
	ck_assert_ptr_nonnull(run);
	run->phase = RUN_PROFILED;
	run->in_capture = true;
	return run;
}

static void end_run(struct run *run)
{
	run->in_capture = false;
	run->phase = RUN_CLOSED;
}

/* By two reloads while its run is ending. */
TEST(an_instance_whose_section_changes_and_is_removed_is_freed)
{
	struct run *run = profile_first();

	instance_becomes(many[0], INSTANCE_CHANGED);
	turn();
	ck_assert_int_eq(run->phase, RUN_STOPPING);
	instance_becomes(many[0], INSTANCE_REMOVED);
	b.modules.state.options.config.sections = NULL;
	b.modules.state.options.config.n_sections = 0;
	end_run(run);
	turn();
	ck_assert_uint_eq(b.modules.targets.n_instances, MANY - 1);
}

/* An instance does not store the index of its section. */
TEST(a_changed_section_is_found_by_its_name)
{
	struct run *run = profile_first();

	instance_becomes(many[0], INSTANCE_CHANGED);
	turn();
	memcpy(sections[0].name, "b", sizeof("b"));
	memcpy(sections[1].name, "a", sizeof("a"));
	sections[1].rate_hz = 11;
	end_run(run);
	turn();
	ck_assert_uint_eq(many[0]->config.rate_hz, 11);
	ck_assert_str_eq(many[0]->config.name, "a");
}

TEST(an_instance_whose_section_is_gone_after_the_run_is_freed)
{
	struct run *run = profile_first();

	instance_becomes(many[0], INSTANCE_CHANGED);
	turn();
	memcpy(sections[0].name, "c", sizeof("c"));
	end_run(run);
	turn();
	ck_assert_uint_eq(b.modules.targets.n_instances, MANY - 1);
}

/* The server of the old DSN takes nothing; the server of the new one does. */
TEST(a_new_dsn_ends_the_limit_of_the_old_one)
{
	struct run *run = profile_first();

	ck_assert_ptr_eq(many[0]->ship, &ship);
	memcpy(ship.dsn, "https://k@a/1", sizeof("https://k@a/1"));
	ship.limit.stops_sampling = true;
	instance_becomes(many[0], INSTANCE_CHANGED);
	turn();
	end_run(run);
	sections[0].autostart = false;
	turn();
	ck_assert_ptr_null(many[0]->ship);
}

/* An inspection has started it. */
TEST(a_ship_that_was_only_asked_to_probe_is_needed_by_a_run)
{
	ship.only_probed_ns = 1;
	(void)profile_first();
	ck_assert_uint_eq(ship.only_probed_ns, 0);
}

/* Not even for one turn, since each start attaches to the process. */
TEST(no_run_starts_while_a_rate_limit_stops_sampling)
{
	ship.limit.stops_sampling = true;
	many[0]->is_started = true;
	turn();
	ck_assert_ptr_null(many[0]->run);
	ship.limit.stops_sampling = false;
	turn();
	ck_assert_ptr_nonnull(many[0]->run);
}

TEST(no_run_is_faster_than_the_timer)
{
	many[0]->config.rate_hz = 1000;
	ck_assert_uint_eq(profile_first()->rate_hz, 101);
	ck_assert_uint_eq(many[0]->run->full_hz, 101);
	many[1]->config.rate_hz = 11;
	ck_assert_uint_eq(instance_rate_hz(many[1]), 11);
}

TESTS(a_shortage_is_retried_after_a_delay, 4)
{
	static const int errors[] = {EMFILE, ENFILE, ENOMEM, EAGAIN};
	struct run *run = profile_first();

	run->attach_error = errors[_i];
	end_run(run);
	turn();
	ck_assert_int_eq(many[0]->obstacle, INSTANCE_NO_OBSTACLE);
	/* After the first failure the next run starts at once. */
	run = many[0]->run;
	ck_assert_ptr_nonnull(run);
	run->attach_error = errors[_i];
	end_run(run);
	turn();
	ck_assert_ptr_null(many[0]->run);
	ck_assert_uint_eq(many[0]->run_delay_ns, INSTANCE_WAIT_NS);
	many[0]->failed_ns -= INSTANCE_WAIT_NS;
	turn();
	ck_assert_ptr_nonnull(many[0]->run);
}

TEST(after_another_error_the_process_is_left_out)
{
	struct run *run = profile_first();

	run->attach_error = ENOEXEC;
	end_run(run);
	turn();
	ck_assert_int_eq(many[0]->obstacle, INSTANCE_LEFT_OUT);
	ck_assert_ptr_null(many[0]->run);
}

TEST(a_process_whose_section_has_changed_is_tried_again)
{
	struct run *run = profile_first();

	run->attach_error = ENOEXEC;
	end_run(run);
	turn();
	ck_assert_str_ne(many[0]->last_error, "");
	instance_becomes(many[0], INSTANCE_CHANGED);
	turn();
	ck_assert_ptr_nonnull(many[0]->run);
	ck_assert_str_eq(many[0]->last_error, "");
}

TEST(failures_of_a_profile_are_forgiven)
{
	many[0]->is_started = true;
	for (uint32_t k = 0; k < INSTANCE_CUTS_LOGGED; k++)
		instance_note_run_cut_short(many[0]);
	ck_assert_str_ne(many[0]->last_error, "");
	many[0]->failed_ns -= INSTANCE_FORGIVEN_NS - 60 * NS_PER_SEC;
	turn();
	ck_assert_str_ne(many[0]->last_error, "");
	many[0]->failed_ns -= 60 * NS_PER_SEC;
	turn();
	ck_assert_str_eq(many[0]->last_error, "");
	ck_assert_uint_eq(many[0]->failures, 0);
}

/* The event of the exec that began the program may come late. */
TEST(a_process_with_leak_sanitizer_is_left_out_until_it_executes_another_program)
{
	struct run *run = profile_first();
	struct process_identity now;

	ck_assert(process_identity(many[0]->pid, &now));
	run->has_leak_check = true;
	run->leak_program = now.program_hash;
	end_run(run);
	turn();
	instance_has_executed(many[0]);
	ck_assert_int_eq(many[0]->obstacle, INSTANCE_LEFT_OUT);
	many[0]->refused_program++;
	instance_has_executed(many[0]);
	ck_assert_int_eq(many[0]->obstacle, INSTANCE_NO_OBSTACLE);
}

/* For example that of a 32-bit launcher, or of one that a security module protects. */
TESTS(a_refused_program_counts_until_the_process_executes_another, 2)
{
	static const int errors[] = {ENOEXEC, EPERM};
	struct run *run = profile_first();
	struct process_identity now;

	ck_assert(process_identity(many[0]->pid, &now));
	run->attach_error = errors[_i];
	end_run(run);
	turn();
	instance_has_executed(many[0]);
	ck_assert_int_eq(many[0]->obstacle, INSTANCE_LEFT_OUT);
	ck_assert_uint_eq(many[0]->refused_program, now.program_hash);
	many[0]->refused_program++;
	instance_has_executed(many[0]);
	ck_assert_int_eq(many[0]->obstacle, INSTANCE_NO_OBSTACLE);
}

/* The refusal is noted when unwind has closed the session. */
TESTS(a_program_that_follows_a_refused_one_before_the_run_is_over_is_tried, 2)
{
	struct run *run = profile_first();
	struct process_identity now;

	ck_assert(process_identity(many[0]->pid, &now));
	run->program_hash = run->leak_program = now.program_hash + 1;
	/* Discovery has seen the second one. */
	many[0]->program_hash = now.program_hash;
	instance_has_executed(many[0]);
	run->attach_error = _i == 0 ? EPERM : 0;
	run->has_leak_check = _i == 1;
	end_run(run);
	turn();
	ck_assert_int_eq(many[0]->obstacle, INSTANCE_NO_OBSTACLE);
	ck_assert_ptr_nonnull(many[0]->run);
}

/* A program of milliseconds. Before it is reaped, its identity is not that of before. */
TEST(a_refused_process_that_has_ended_is_not_tried_again)
{
	struct run *run = profile_first();
	siginfo_t ended;

	many[0]->pid = fork();
	if (many[0]->pid == 0)
		_exit(0);
	OK(waitid(P_PID, (id_t)many[0]->pid, &ended, WEXITED | WNOWAIT));
	run->program_hash = 1;
	run->attach_error = EPERM;
	end_run(run);
	turn();
	ck_assert_int_eq(many[0]->obstacle, INSTANCE_LEFT_OUT);
	ck_assert_ptr_null(many[0]->run);
	ck_assert_int_eq(waitpid(many[0]->pid, NULL, 0), many[0]->pid);
}

/* A rename looks like an exec. */
TEST(a_process_that_made_capture_hang_stays_left_out)
{
	struct run *run = profile_first();

	run->program_hash = 1;
	run->left_out = true;
	end_run(run);
	turn();
	instance_has_executed(many[0]);
	ck_assert_int_eq(many[0]->obstacle, INSTANCE_LEFT_OUT);
}

TEST(a_process_whose_rights_change_waits)
{
	struct instance *const i = many[0];

	i->is_started = true;
	i->owner_has_changed = true;
	i->owner_run_ns = b.modules.state.clocks.mono() - OWNER_RUN_NS / 2;
	turn();
	ck_assert_ptr_null(i->run);
	ck_assert_int_eq(lifecycle_state(i), PROTOCOL_STATE_WAITING);
	ck_assert_ptr_nonnull(strstr(instance_obstacle_text(i), "rights"));
	ck_assert_uint_ne(i->unsampled_since_ns, 0);
	/* One that is stopped waits for nothing. */
	i->is_started = false;
	turn();
	ck_assert_str_eq(instance_obstacle_text(i), "");
	ck_assert_uint_eq(i->unsampled_since_ns, 0);
}

TEST(a_section_has_at_most_max_instances_runs)
{
	for (size_t k = 0; k < MANY; k++) {
		many[k]->pid = (int32_t)k + 1;
		many[k]->is_started = true;
		many[k]->config.max_instances = 3;
	}
	memcpy(many[MANY - 1]->config.name, "b", sizeof("b"));
	turn();
	ck_assert_uint_eq(targets_count_runs(&b.modules.targets), 4);
	ck_assert_int_eq(many[3]->obstacle, INSTANCE_LIMIT_REACHED);
	ck_assert_int_eq(lifecycle_state(many[3]), PROTOCOL_STATE_WAITING);
	ck_assert_ptr_nonnull(strstr(instance_obstacle_text(many[3]), "max_instances"));
	/* One that is stopped waits for nothing. */
	many[4]->is_started = false;
	turn();
	ck_assert_int_eq(many[4]->obstacle, INSTANCE_NO_OBSTACLE);
	ck_assert_int_eq(lifecycle_state(many[4]), PROTOCOL_STATE_STOPPED);
	ck_assert_str_eq(instance_obstacle_text(many[4]), "");
	many[4]->is_started = true;
	end_run(many[0]->run);
	many[0]->is_started = false;
	turn();
	ck_assert_uint_eq(targets_count_runs(&b.modules.targets), 4);
	ck_assert_int_eq(many[3]->obstacle, INSTANCE_NO_OBSTACLE);
}

/* By `record`, `top` or `stack`. */
TEST(a_recording_beyond_max_instances_makes_no_other_chunks)
{
	for (size_t k = 0; k < 4; k++) {
		many[k]->pid = (int32_t)k + 1;
		many[k]->is_started = true;
		many[k]->config.max_instances = 3;
	}
	turn();
	ck_assert_ptr_null(many[3]->run);
	many[3]->n_recordings = 1;
	turn();
	ck_assert_ptr_nonnull(many[3]->run);
	ck_assert(many[3]->run->is_for_recordings);
	turn();
	ck_assert_int_eq(lifecycle_state(many[3]), PROTOCOL_STATE_WAITING);
	/* A place that becomes free does not interrupt the recording. */
	end_run(many[0]->run);
	many[0]->is_started = false;
	turn();
	ck_assert(run_is_open(many[3]->run) && many[3]->run->is_for_recordings);
	many[0]->is_started = true;
	turn();
	/* A whole run goes on while it is recorded, too. */
	many[2]->n_recordings = 1;
	turn();
	ck_assert(!many[2]->run->is_for_recordings);
	many[3]->n_recordings = 0;
	turn();
	ck_assert(!run_is_open(many[3]->run));
	many[2]->n_recordings = 0;
}

/* Of --children: a run that is closed is kept for the exit status. */
TEST(a_closed_run_of_a_named_process_makes_room)
{
	static struct instance given[HEARTBEAT_SLOTS];
	struct run *table = b.modules.targets.table;

	for (uint32_t k = 0; k < HEARTBEAT_SLOTS; k++) {
		table[k] = (struct run){
			.id = k + 1, .instance = &given[k], .phase = RUN_CLOSED, .statm_fd = -1};
		given[k] = (struct instance){.targets = &b.modules.targets,
					     .origin = INSTANCE_GIVEN,
					     .was_attached = true,
					     .closed_run = &table[k]};
	}
	many[0]->is_started = true;
	turn();
	turn();
	ck_assert_ptr_nonnull(many[0]->run);
	memset(table, 0, sizeof(b.modules.targets.table));
}

TEST(a_pid_that_is_used_again_has_a_run)
{
	static struct instance given;
	struct run *closed = &b.modules.targets.table[9];

	given = (struct instance){.targets = &b.modules.targets, .pid = many[0]->pid};
	*closed =
		(struct run){.id = 9, .pid = many[0]->pid, .instance = &given, .phase = RUN_CLOSED};
	many[0]->is_started = true;
	turn();
	ck_assert_ptr_nonnull(many[0]->run);
	memset(closed, 0, sizeof(*closed));
}

/* The process of the instances is the test, which no process traces. */
TEST(a_released_process_has_no_run_until_its_time_is_over)
{
	struct run *run = profile_first();

	b.modules.state.clocks.mono = mono;
	mono_ns = 1000 * NS_PER_SEC;
	run->profile.opened_ns = mono_ns;
	instance_release(many[0], 30 * NS_PER_SEC);
	instance_release(many[0], NS_PER_SEC);
	turn();
	ck_assert_int_eq(run->phase, RUN_STOPPING);
	ck_assert_int_eq(lifecycle_state(many[0]), PROTOCOL_STATE_DETACHING);
	end_run(run);
	mono_ns += 30 * NS_PER_SEC - 1;
	turn();
	ck_assert_ptr_null(many[0]->run);
	ck_assert_int_eq(lifecycle_state(many[0]), PROTOCOL_STATE_LEFT_OUT);
	mono_ns++;
	turn();
	ck_assert_ptr_nonnull(many[0]->run);
	ck_assert_int_eq(lifecycle_state(many[0]), PROTOCOL_STATE_PROFILING);
}

/* Starts a process that traces a thread of this process, which is not the leader. */
static void *be_traced(void *ctx)
{
	pid_t *tracer = ctx, tid = (pid_t)syscall(SYS_gettid);
	pid_t pid = fork();

	if (pid == 0) {
		(void)ptrace(PTRACE_SEIZE, tid, NULL, NULL);
		for (;;)
			(void)pause();
	}
	while (process_tracer(tid) != pid)
		(void)poll(NULL, 0, 1);
	__atomic_store_n(tracer, pid, __ATOMIC_SEQ_CST);
	for (;;)
		(void)pause();
	return NULL;
}

TEST(a_release_lasts_while_another_process_traces_a_thread)
{
	pid_t tracer = 0;
	pthread_t thread;

	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	OK(pthread_create(&thread, NULL, be_traced, &tracer));
	while (__atomic_load_n(&tracer, __ATOMIC_SEQ_CST) == 0)
		(void)poll(NULL, 0, 1);
	b.modules.state.clocks.mono = mono;
	mono_ns = 1000 * NS_PER_SEC;
	many[0]->is_started = true;
	instance_release(many[0], NS_PER_SEC);
	mono_ns += NS_PER_SEC;
	turn();
	ck_assert_ptr_null(many[0]->run);
	OK(kill(tracer, SIGKILL));
	ck_assert_int_eq(waitpid(tracer, NULL, 0), tracer);
	/* The next look is a second later. */
	turn();
	ck_assert_ptr_null(many[0]->run);
	mono_ns += NS_PER_SEC;
	turn();
	ck_assert_ptr_nonnull(many[0]->run);
}

/* The transaction of such a span refers to no profile. */
TEST(a_root_span_that_ended_during_a_release_starts_no_run)
{
	b.modules.state.clocks.mono = mono;
	mono_ns = 1000 * NS_PER_SEC;
	many[0]->config.lifecycle = many[1]->config.lifecycle = LIFECYCLE_TRACE;
	for (size_t k = 0; k < 2; k++) {
		instance_release(many[k], NS_PER_SEC);
		(void)lifecycle_span(many[k], true);
	}
	(void)lifecycle_span(many[0], false);
	turn();
	mono_ns += NS_PER_SEC;
	turn();
	ck_assert_ptr_null(many[0]->run);
	ck_assert_ptr_nonnull(many[1]->run);
}

/* Its status shows until then that it is being detached from. */
TEST(an_attached_process_that_is_detached_is_an_instance_until_its_run_is_over)
{
	struct run *run = profile_first();

	many[0]->origin = INSTANCE_ATTACHED;
	many[0]->wish = INSTANCE_WISH_DETACHED;
	turn();
	ck_assert(!instance_is_gone(many[0]));
	ck_assert_int_eq(lifecycle_state(many[0]), PROTOCOL_STATE_DETACHING);
	end_run(run);
	turn();
	ck_assert_uint_eq(b.modules.targets.n_instances, MANY - 1);
}

/* For example a minute after its rate was 0 for a minute. */
TEST(a_run_that_was_over_the_budget_starts_again)
{
	struct run *run = profile_first();

	many[0]->origin = INSTANCE_ATTACHED;
	many[0]->asker.is_set = true;
	instance_wait_for_budget(many[0]);
	attach_stop(&b.modules.targets, run);
	end_run(run);
	turn();
	ck_assert_ptr_null(many[0]->run);
	ck_assert(!instance_is_gone(many[0]));
	ck_assert_int_eq(lifecycle_state(many[0]), PROTOCOL_STATE_WAITING);
	ck_assert_ptr_nonnull(instance_budget_text(many[0]));
	many[0]->failed_ns -= INSTANCE_BUDGET_WAIT_NS;
	turn();
	ck_assert_ptr_nonnull(many[0]->run);
	ck_assert_int_eq(many[0]->obstacle, INSTANCE_NO_OBSTACLE);
}

TEST(a_run_for_a_user_above_the_part_waits)
{
	b.modules.state.options.config.cpu_budget = 5;
	b.modules.governor.users.list[0] = (struct governor_user){.use = 0.2};
	b.modules.governor.users.n = 1;
	b.modules.governor.users.part = 0.1;
	many[0]->origin = INSTANCE_ATTACHED;
	many[0]->asker.is_set = true;
	many[0]->is_started = true;
	turn();
	ck_assert_ptr_null(many[0]->run);
	ck_assert_int_eq(many[0]->obstacle, INSTANCE_OVER_BUDGET);
	b.modules.governor.users.list[0].use = 0.1;
	turn();
	ck_assert_ptr_nonnull(many[0]->run);
}

/* A reload has replaced the DSN. The ship of the former one ends within a second. */
TEST(a_new_dsn_waits_for_the_place_of_the_old_one)
{
	static struct ship others[SHIPS_MAX];
	static const char dsn[] = "https://new@h/1";

	for (size_t k = 1; k < SHIPS_MAX; k++) {
		others[k] = (struct ship){.child = {.children = &b.modules.children, .fd = -1}};
		(void)snprintf(others[k].dsn, sizeof(others[k].dsn), "https://k%zu@h/1", k);
		b.modules.children.ships[k] = &others[k];
	}
	b.modules.children.n_ships = SHIPS_MAX;
	memcpy(many[0]->config.dsn, dsn, sizeof(dsn));
	many[0]->is_started = true;
	turn();
	ck_assert_ptr_null(many[0]->run);
	ck_assert_int_eq(many[0]->obstacle, INSTANCE_LIMIT_REACHED);
	/* As if the place was free, and had the new DSN. */
	memcpy(others[3].dsn, dsn, sizeof(dsn));
	turn();
	ck_assert_ptr_nonnull(many[0]->run);
	ck_assert_int_eq(many[0]->obstacle, INSTANCE_NO_OBSTACLE);
}
