/*
 * A program with a crash reporter. It crashes, its handler has a report
 * written, and the report says whether it is complete.
 *
 * Usage: crash [NAME=VALUE...], with these names and values, the default first:
 *   signal    SEGV | BUS | ILL | FPE (x86_64 only) | ABRT | TRAP | SYS
 *   by        fault (an instruction, abort(3), or a system call that a seccomp filter traps) |
 *             raise | thread (tgkill(2) by another thread) | outside (the test sends the signal)
 *   way       fork (the handler forks the reporter) | clone (so, as Breakpad does) | helper (a
 *             process that waits on a socket, as crashpad's) | none (no report)
 *   attach    attach (PTRACE_ATTACH) | seize (PTRACE_SEIZE, PTRACE_INTERRUPT)
 *   read      vm (process_vm_readv) | mem (/proc/PID/mem) | peek (PTRACE_PEEKDATA)
 *   threads   1; N: one in each kind of call of crash_threads.h in turn
 *   who       leader | other: the thread that crashes
 *   crashers  1 | 2: so many threads crash at once
 *   stack     own | alt (of the handler) | overflow (of the thread, and the handler has alt)
 *   nodefer   0 | 1: SA_NODEFER
 *   survive   0; N: the first N crashes are survived,
 *   how       jump (siglongjmp) | return (behind the instruction): in this way
 *   end       raise (with the default action) | exit (with STATUS) | on: after the crashes that are
 *             survived comes one more, whose handler ends the process so. "on": none comes; the
 *             process ends with STATUS at the end of its input
 *   status    0
 *   go        line (of the input: the next crash) | traced (the crash comes when the thread is
 *             traced) | now
 *   beside    none | children | vfork | births (of threads) | winch (an ignored signal): what one
 *             more thread does all the time
 *   calm, stops, holds   0 | 1: see crash_report.h. A held process goes on with a line
 *
 * Lines: "ready PID"; for each report the line of write_report(); "survived N" after each crash;
 * "holding PID", with the reporter's pid. On stderr a line "wrong: ..." for each call of the
 * program that ended as it does not without a profiler, each wrong siginfo_t, and each signal that
 * was handled twice or not at all; "interrupted: ..." for a call that an ignored signal may have
 * ended (crash_threads.h).
 */
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "crash_report.h"
#include "crash_threads.h"
#include "filter.h"

/* A call that no program makes. */
#define TRAPPED_CALL SYS_nfsservctl
/* si_code, which the C library's headers lack. */
#define CODE_SECCOMP 1

/*
 * An instruction that faults, with its register a. Says before where it is, and where the next
 * instruction is.
 */
#if defined(__x86_64__)
#define FAULT(instruction, a)                                        \
	__asm__ volatile("lea 1f(%%rip), %%rsi\n\tmov %%rsi, %0\n\t" \
			 "lea 2f(%%rip), %%rsi\n\tmov %%rsi, %1\n"   \
			 "1:\t" instruction "\n2:"                   \
			 : "=m"(fault_at), "=m"(resume_at)           \
			 : "a"(a), "d"(0), "D"(0)                    \
			 : "rcx", "rsi", "r11", "cc", "memory")
#define STORE	   "movl $1, (%%rax)"
#define UNDEFINED  "ud2"
#define DIVIDE	   "idivl %%edi"
#define BREAKPOINT "int3"
#define CALL	   "syscall"
#define ILL_CODE   ILL_ILLOPN
#define TRAP_CODE  SI_KERNEL
#define CONTEXT_PC gregs[REG_RIP]
#else
#define FAULT(instruction, a)                                                \
	do {                                                                 \
		register uint64_t x0 __asm__("x0") = (uint64_t)(a);          \
		register uint64_t x8 __asm__("x8") = (uint64_t)(a);          \
                                                                             \
		__asm__ volatile("adr x1, 1f\n\tstr x1, %0\n\t"              \
				 "adr x1, 2f\n\tstr x1, %1\n"                \
				 "1:\t" instruction "\n2:"                   \
				 : "=m"(fault_at), "=m"(resume_at), "+r"(x0) \
				 : "r"(x8)                                   \
				 : "x1", "memory");                          \
	} while (0)
#define STORE	   "str wzr, [x0]"
#define UNDEFINED  "udf #0"
#define BREAKPOINT "brk #0"
#define CALL	   "svc #0"
#define ILL_CODE   ILL_ILLOPC
#define TRAP_CODE  TRAP_BRKPT
#define CONTEXT_PC pc
#endif

static const struct crash_kind {
	const char *name;
	int signal;
	int code; /* of siginfo_t, at a fault */
} crash_kinds[] = {
	{"SEGV", SIGSEGV, SEGV_MAPERR}, {"BUS", SIGBUS, BUS_ADRERR},  {"ILL", SIGILL, ILL_CODE},
	{"ABRT", SIGABRT, SI_TKILL},	{"TRAP", SIGTRAP, TRAP_CODE}, {"SYS", SIGSYS, CODE_SECCOMP},
#ifdef DIVIDE
	{"FPE", SIGFPE, FPE_INTDIV},
#endif
};

static struct options {
	const char *signal, *by, *way, *attach, *read, *who, *stack, *how, *end, *go, *beside;
	long threads, crashers, nodefer, survive, status, calm, stops, holds;
} o = {
	.signal = "SEGV",
	.by = "fault",
	.way = "fork",
	.attach = "attach",
	.read = "vm",
	.who = "leader",
	.stack = "own",
	.how = "jump",
	.end = "raise",
	.go = "line",
	.beside = "none",
	.threads = 1,
	.crashers = 1,
};

static const struct crash_kind *kind;
static int helper_socket = -1;
static pid_t helper;

/* The thread that is to crash. */
static atomic_int crasher;
static uint64_t fault_ns;
static char *truncated;

static _Thread_local sigjmp_buf survived;
/* Set by the fault: where it is, and where the next instruction is. */
static _Thread_local volatile uintptr_t fault_at, resume_at;

/* Calls of the handler: those that have begun, and those that have returned or jumped. */
static atomic_uint n_handled, n_left;
static atomic_uint n_reported;
static atomic_bool is_reporting;

static bool is(const char *value, const char *word)
{
	return strcmp(value, word) == 0;
}

/* The crash. */

static __attribute__((noipa)) void fault(void)
{
	switch (kind->signal) {
	case SIGSEGV:
		FAULT(STORE, NULL);
		return;
	case SIGBUS:
		FAULT(STORE, truncated);
		return;
	case SIGILL:
		FAULT(UNDEFINED, 0);
		return;
#ifdef DIVIDE
	case SIGFPE:
		FAULT(DIVIDE, 1);
		return;
#endif
	case SIGTRAP:
		FAULT(BREAKPOINT, 0);
		return;
	case SIGSYS:
		FAULT(CALL, TRAPPED_CALL);
		return;
	default:
		abort();
	}
}

static atomic_uint deepest = UINT_MAX;

/* Fills the stack; the mark is in each frame. */
static __attribute__((noipa)) void overflow(unsigned int depth)
{
	MARK_STACK(mark);
	volatile char frame[512];

	frame[0] = (char)depth;
	if (depth < atomic_load(&deepest))
		overflow(depth + 1);
	KEEP_MARK(mark);
	KEEP_MARK(frame);
}

static void wait_signal_of_other(unsigned int n)
{
	const uint64_t since = now_ns();

	while (atomic_load(&n_left) < n) {
		(void)usleep(1000);
		patience(since, "a signal that another thread or process sends");
	}
}

static atomic_uint n_asked; /* signals that the sender is to send */

static void *send_signals(void *unused)
{
	struct member *m = member_add();
	MARK_STACK(mark);

	atomic_store(&m->tid, thread_number());
	for (unsigned int sent = 0;;) {
		(void)usleep(1000);
		if (sent == atomic_load(&n_asked))
			continue;
		sent++;
		fault_ns = now_ns();
		send_to(atomic_load(&crasher), kind->signal);
	}
	KEEP_MARK(mark);
	return unused;
}

/* Crashes for the nth time. */
static __attribute__((noipa)) void crash(unsigned int n)
{
	fault_ns = is(o.by, "fault") || is(o.by, "raise") ? now_ns() : 0;
	if (is(o.stack, "overflow"))
		overflow(0);
	else if (is(o.by, "fault"))
		fault();
	else if (is(o.by, "raise"))
		must(raise(kind->signal) == 0, "raise");
	else {
		atomic_fetch_add(&n_asked, is(o.by, "thread"));
		wait_signal_of_other(n);
	}
}

/* The handler. */

static void check_info(const siginfo_t *info)
{
	const void *address = kind->signal == SIGSEGV  ? NULL
			      : kind->signal == SIGBUS ? (const void *)truncated
						       : (const void *)fault_at;

	if (is(o.stack, "overflow"))
		return;
	if (info->si_code != (is(o.by, "fault")	    ? kind->code
			      : is(o.by, "outside") ? SI_USER
						    : SI_TKILL))
		crash_wrong("si_code is %d", info->si_code);
	if (info->si_code == SI_TKILL && info->si_pid != getpid())
		crash_wrong("si_pid is %d", info->si_pid);
	if (!is(o.by, "fault"))
		return;
	if (kind->signal == SIGSYS && info->si_syscall != TRAPPED_CALL)
		crash_wrong("si_syscall is %d", info->si_syscall);
	if (info->si_code > 0 && info->si_code != SI_KERNEL && kind->signal != SIGSYS &&
	    info->si_addr != address)
		crash_wrong("si_addr is %p, not %p", info->si_addr, address);
}

static int begin_report(void *go)
{
	char byte;

	/* The process has named this one by PR_SET_PTRACER. */
	if (read(*(const int *)go, &byte, 1) == 1)
		write_report();
	_exit(0);
}

static void report_by_child(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	int go[2], status;
	pid_t pid;

	must(pipe(go) == 0, "pipe");
	if (is(o.way, "clone")) {
		pid = clone(begin_report, stack + sizeof(stack), CLONE_FS | CLONE_UNTRACED, &go[0]);
	} else {
		pid = fork();
		if (pid == 0)
			(void)begin_report(&go[0]);
	}
	must(pid > 0, "the reporter");
	(void)prctl(PR_SET_PTRACER, pid, 0, 0, 0);
	must(write(go[1], "", 1) == 1, "go");
	while (waitpid(pid, &status, __WALL) != pid)
		must(errno == EINTR, "waitpid");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		crash_wrong("the reporter ended with status %#x", (unsigned int)status);
	(void)close(go[0]);
	(void)close(go[1]);
}

static void report_by_helper(void)
{
	char byte = 0;

	(void)prctl(PR_SET_PTRACER, helper, 0, 0, 0);
	must(write(helper_socket, &byte, 1) == 1, "the socket of the helper");
	while (read(helper_socket, &byte, 1) != 1)
		must(errno == EINTR, "the answer of the helper");
}

static void end_by_default_action(void)
{
	handle(kind->signal, SIG_DFL, 0);
	/* These come again when the handler returns. */
	if ((is(o.by, "fault") || is(o.stack, "overflow")) &&
	    (kind->signal == SIGSEGV || kind->signal == SIGBUS || kind->signal == SIGILL ||
	     kind->signal == SIGFPE))
		return;
	send_to(thread_number(), kind->signal);
}

/* Goes on behind the instruction. A system call that was trapped has been left already. */
static void step_over(ucontext_t *context)
{
	if (is(o.by, "fault"))
		context->uc_mcontext.CONTEXT_PC =
			(__typeof__(context->uc_mcontext.CONTEXT_PC))resume_at;
}

static void on_crash(int signal, siginfo_t *info, void *context)
{
	const uint64_t entered_ns = now_ns();
	const unsigned int n = atomic_fetch_add(&n_handled, 1) + 1;
	const int error = errno;
	const uint64_t since = now_ns();
	MARK_STACK(mark);

	if (signal != kind->signal)
		crash_wrong("signal %d", signal);
	if (is(o.stack, "own") == on_altstack((const void *)(uintptr_t)mark) && altstack != NULL)
		crash_wrong("the handler has the wrong stack");
	check_info(info);
	/* Of threads that crash at once, one reports; others wait, as in Breakpad. */
	while (atomic_exchange(&is_reporting, true)) {
		(void)usleep(1000);
		patience(since, "the report of another thread");
	}
	if (o.crashers == 1 || n % (unsigned int)o.crashers == 1) {
		shared->crash = atomic_fetch_add(&n_reported, 1) + 1;
		shared->crashed = thread_number();
		shared->context = (uintptr_t)context;
		shared->handler_us = fault_ns == 0 ? 0 : (entered_ns - fault_ns) / 1000;
		if (is(o.way, "helper"))
			report_by_helper();
		else if (!is(o.way, "none"))
			report_by_child();
	}
	KEEP_MARK(mark);
	if (shared->crash > (unsigned int)o.survive) {
		if (is(o.end, "exit"))
			_exit((int)o.status);
		end_by_default_action();
		return;
	}
	atomic_store(&is_reporting, false);
	atomic_fetch_add(&n_left, 1);
	errno = error;
	if (is(o.how, "jump"))
		siglongjmp(survived, 1);
	step_over(context);
}

/* The helper, which is there before the crash. */

static void help(int fd)
{
	char byte;

	(void)prctl(PR_SET_NAME, "crash-helper", 0, 0, 0);
	while (read(fd, &byte, 1) == 1) {
		write_report();
		must(write(fd, &byte, 1) == 1, "the answer");
	}
	_exit(0);
}

static void start_helper(void)
{
	int pair[2];

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
	helper = fork();
	must(helper >= 0, "fork");
	if (helper == 0) {
		(void)close(pair[0]);
		help(pair[1]);
	}
	(void)close(pair[1]);
	helper_socket = pair[0];
}

/* The thread that crashes. */

static void wait_for_go(void)
{
	const uint64_t since = now_ns();
	char byte = '\0';

	errno = 0;
	while (is(o.go, "traced") && !is_traced())
		patience(since, "a tracer");
	while (is(o.go, "line") && byte != '\n')
		if (read(STDIN_FILENO, &byte, 1) != 1 && errno != EINTR)
			_exit(0);
}

static void wait_end_of_input(void)
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) == 1)
		;
}

static pthread_barrier_t together;

/* One of the threads that crash. */
static void crash_again(bool is_first)
{
	const long n = o.survive + (is(o.end, "on") ? 0 : 1);

	for (volatile long i = 1; i <= n; i = i + 1) {
		const unsigned int expected = (unsigned int)(i * o.crashers);

		if (is_first)
			wait_for_go();
		if (o.crashers > 1)
			(void)pthread_barrier_wait(&together);
		/* The mask of signals is that of before the handler. */
		if (sigsetjmp(survived, 1) == 0)
			crash((unsigned int)i);
		if (o.crashers > 1)
			(void)pthread_barrier_wait(&together);
		if (atomic_load(&n_handled) != expected)
			crash_wrong("%u signals are handled, not %u", atomic_load(&n_handled),
				    expected);
		if (i > o.survive)
			crash_wrong("it has survived");
		check_registers(1000);
		if (is_first)
			say(STDOUT_FILENO, "survived %ld\n", i);
	}
}

static void be_ready(void)
{
	wait_members((unsigned int)o.threads);
	wait_calm(atomic_load(&crasher));
	ready(getpid());
}

/*
 * The stack for the handler. Above it lies the mark: a thread that has just
 * entered the handler has no other on this stack.
 */
static void take_marked_altstack(void)
{
	const uint64_t mark = MARK_HIGH | (uint64_t)thread_number();
	stack_t stack = {.ss_size = ALTSTACK};

	stack.ss_sp = altstack = malloc(ALTSTACK + sizeof(mark));
	must(altstack != NULL && sigaltstack(&stack, NULL) == 0, "sigaltstack");
	memcpy(altstack + ALTSTACK, &mark, sizeof(mark));
}

static void *be_crasher(void *is_first)
{
	struct member *m = member_add();
	MARK_STACK(mark);

	if (is_first != NULL)
		mask(SIG_UNBLOCK, kind->signal);
	if (!is(o.stack, "own"))
		take_marked_altstack();
	atomic_store(&m->tid, thread_number());
	if (is_first != NULL) {
		atomic_store(&crasher, thread_number());
		be_ready();
	}
	crash_again(is_first != NULL);
	if (is_first != NULL) {
		wait_end_of_input();
		exit(atomic_load(&shared->n_wrong) == 0 ? (int)o.status : EXIT_FAILURE);
	}
	for (;;)
		(void)pause();
	KEEP_MARK(mark);
	return NULL;
}

static void handle_crashes(void)
{
	handle_info(kind->signal, on_crash,
		    (o.nodefer ? SA_NODEFER : 0) | (is(o.stack, "own") ? 0 : SA_ONSTACK));
	if (kind->signal == SIGSYS)
		must(FILTER_INSTALL(0, FILTER_CALL(TRAPPED_CALL, SECCOMP_RET_TRAP)), "seccomp");
	if (kind->signal == SIGBUS) {
		int fd = memfd_create("truncated", MFD_CLOEXEC);

		must(fd >= 0 && ftruncate(fd, PAGE) == 0, "memfd");
		truncated = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		must(truncated != MAP_FAILED && ftruncate(fd, 0) == 0, "truncate");
	}
}

/* The leader starts the others, and becomes one of them. */
static void run(void)
{
	const bool is_leader = is(o.who, "leader"), sends = is(o.by, "thread");
	long n = o.threads - 1;

	/* If another thread could take the signal, the thread that it has woken would see EINTR. */
	if (is(o.by, "outside"))
		mask(SIG_BLOCK, kind->signal);
	if (sends) {
		start_member(send_signals, NULL);
		n--;
	}
	if (!is(o.beside, "none")) {
		beside = o.beside;
		start_member(go_on_beside, NULL);
		n--;
	}
	for (long i = 1; i < o.crashers; i++, n--)
		start_member(be_crasher, NULL);
	for (long i = is_leader ? 0 : 1; i < n; i++)
		start_member(wait_again, kind_of((unsigned int)i));
	/* The thread that says "ready" counts those that are there. */
	wait_members((unsigned int)(o.threads - (is_leader ? 1 : 2)));
	if (is_leader)
		(void)be_crasher(&o);
	start_member(be_crasher, &o);
	(void)wait_again((void *)(uintptr_t)kind_of(0));
}

static bool take_text(const char *argument, const char *name, const char **ret, const char *values)
{
	const size_t n = strlen(name);
	const char *value = argument + n + 1, *found;

	if (strncmp(argument, name, n) != 0 || argument[n] != '=')
		return false;
	/* The values are words between spaces. */
	for (found = strstr(values, value); found != NULL; found = strstr(found + 1, value))
		if ((found == values || found[-1] == ' ') &&
		    (found[strlen(value)] == ' ' || found[strlen(value)] == '\0'))
			break;
	if (found == NULL || *value == '\0')
		return false;
	*ret = value;
	return true;
}

static bool take_number(const char *argument, const char *name, long *ret)
{
	const size_t n = strlen(name);

	if (strncmp(argument, name, n) != 0 || argument[n] != '=')
		return false;
	*ret = strtol(argument + n + 1, NULL, 10);
	return true;
}

static bool take_option(const char *a)
{
	return take_text(a, "signal", &o.signal, "SEGV BUS ILL FPE ABRT TRAP SYS") ||
	       take_text(a, "by", &o.by, "fault raise thread outside") ||
	       take_text(a, "way", &o.way, "fork clone helper none") ||
	       take_text(a, "attach", &o.attach, "attach seize") ||
	       take_text(a, "read", &o.read, "vm mem peek") ||
	       take_text(a, "who", &o.who, "leader other") ||
	       take_text(a, "stack", &o.stack, "own alt overflow") ||
	       take_text(a, "how", &o.how, "jump return") ||
	       take_text(a, "end", &o.end, "raise exit on") ||
	       take_text(a, "go", &o.go, "line traced now") ||
	       take_text(a, "beside", &o.beside, "none children vfork births winch") ||
	       take_number(a, "threads", &o.threads) || take_number(a, "crashers", &o.crashers) ||
	       take_number(a, "nodefer", &o.nodefer) || take_number(a, "survive", &o.survive) ||
	       take_number(a, "status", &o.status) || take_number(a, "calm", &o.calm) ||
	       take_number(a, "stops", &o.stops) || take_number(a, "holds", &o.holds);
}

/* Are all threads there that the options need, and can the crashes be survived so? */
static bool can_be(void)
{
	const long least = 1 + is(o.who, "other") + is(o.by, "thread") + !is(o.beside, "none") +
			   (o.crashers - 1);

	if (o.threads < least || o.threads > CRASH_THREADS_MAX - 1 || o.crashers < 1 ||
	    (is(o.stack, "overflow") && (!is(o.by, "fault") || kind->signal != SIGSEGV)))
		return false;
	if (o.crashers > 1 && (!is(o.by, "fault") || is(o.stack, "overflow")))
		return false;
	if (o.survive == 0)
		return true;
	/* abort(3) ends the process if the handler returns, a jump is for the thread itself. */
	return is(o.how, "return")
		       ? !is(o.stack, "overflow") && !(kind->signal == SIGABRT && is(o.by, "fault"))
		       : is(o.by, "fault") || is(o.by, "raise");
}

int main(int argc, char **argv)
{
	const struct rlimit no_core = {0, 0};

	for (int i = 1; i < argc; i++)
		if (!take_option(argv[i])) {
			fprintf(stderr, "crash: %s?\n", argv[i]);
			return 2;
		}
	for (size_t i = 0; i < sizeof(crash_kinds) / sizeof(crash_kinds[0]); i++)
		if (is(crash_kinds[i].name, o.signal))
			kind = &crash_kinds[i];
	if (!can_be()) {
		fputs("crash: these do not go together\n", stderr);
		return 2;
	}
	reporting = (struct reporting){.seizes = is(o.attach, "seize"),
				       .read = o.read,
				       .gives_up = is(o.way, "helper"),
				       .stops = o.stops != 0,
				       .is_calm = o.calm != 0,
				       .holds = o.holds != 0};
	(void)setrlimit(RLIMIT_CORE, &no_core);
	shared = share(sizeof(*shared));
	shared->pid = getpid();
	nap_ns = NAP_NS(o.threads);
	open_empty();
	(void)pthread_barrier_init(&together, NULL, (unsigned int)o.crashers);
	mask(SIG_BLOCK, SIGUSR2);
	if (is(o.way, "helper"))
		start_helper();
	handle_crashes();
	run();
	return 2;
}
