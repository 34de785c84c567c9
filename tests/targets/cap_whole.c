/*
 * Threads whose calls move much at once, and count those that come back with
 * less than they were asked for, though they should not. What arrives is compared
 * with what was sent.
 *
 * Usage: cap_whole [KIND]: all kinds, or this one.
 *        cap_whole --list
 * Says "ready TID", the number of the thread that makes the (first) calls.
 *
 * Lines on its input, each answered by one: "short", "wrong" by that and the
 * number of calls that came back with a part, and of those whose data was not
 * what it should be; "whole", "least": calls that did all they should, of all kinds and of
 * the kind with the fewest; "handled": SIGUSR1 handled by the first thread.
 * "names": a line for each kind, with its name and short, wrong, whole.
 * "filter" by "ok 0": from now on all are under a seccomp filter that kills for
 * a sendto(2) with MSG_NOSIGNAL, which nobody here makes. At the input's end it
 * ends.
 */
#include <limits.h>

#include "cap_whole_waits.h"
#include "filter.h"

static const struct kind kinds[] = {
	{"write_pipe", make_pipe, call_write, drain},
	{"writev_pipe", make_pipe, call_writev, drain},
	{"write_tty", make_tty, call_write_tty, drain, .may_be_short = true},
	{"write_unix", make_unix, call_write, drain},
	{"write_tcp", make_tcp, call_write, drain},
	{"pwritev2_pipe", make_pipe, call_pwritev2, drain},
	{"writev_unix", make_unix, call_writev, drain},
	{"send_unix", make_unix, call_send, drain},
	{"send_flag", make_unix, call_send_flag, drain},
	{"send_zerocopy", make_zerocopy, call_send_zerocopy, drain},
	{"send_tcp", make_tcp, call_send, drain},
	{"sendmsg_tcp", make_tcp, call_sendmsg, drain},
	{"sendfile_tcp", make_tcp_and_file, call_sendfile, drain, .may_be_short = true},
	{"recv_unix", make_unix, call_recv, send_bit},
	{"recv_tcp", make_narrow_tcp, call_recv, send_bit},
	{"recvmsg_tcp", make_narrow_tcp, call_recvmsg, send_bit},
	{"recvmmsg", make_datagrams, call_recvmmsg, send_number, .may_be_short = true},
	{"splice", make_splice, call_splice, drain},
	{"io_uring_several", make_ring_and_pipe, call_io_uring_several,
	 write_one, .may_be_short = true},
	{"bpf", NULL, call_bpf, NULL},
	{"io_getevents", make_aio, call_io_getevents, post},
	{"tty_ioctls", make_tty, call_tty_ioctls, NULL},
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct work works[N_KINDS];
static size_t n_works;

static void *call_again(void *arg)
{
	struct work *w = arg;

	atomic_store(&w->tid, thread_number());
	for (;;) {
		ssize_t missing = w->kind->call(w);

		if (missing == 0 || (missing > 0 && w->kind->may_be_short))
			atomic_fetch_add(&w->whole, 1);
		else if (missing > 0)
			atomic_fetch_add(&w->shorter, 1);
		else
			atomic_fetch_add(&w->wrong, 1);
	}
	return NULL;
}

static void *other_again(void *arg)
{
	struct work *w = arg;

	for (;;)
		w->kind->other(w);
	return NULL;
}

static void add(const struct kind *kind)
{
	struct work *w = &works[n_works++];

	w->kind = kind;
	w->bytes = malloc(WHOLE + PATTERN);
	need(w->bytes != NULL);
	fill(w->bytes, 0, WHOLE + PATTERN);
	if (kind->make != NULL)
		kind->make(w);
}

static atomic_ulong handled;

static void on_signal(int number)
{
	(void)number;
	atomic_fetch_add(&handled, 1);
}

static void answer_sum(const char *line)
{
	unsigned long shorter = 0, wrong = 0, whole = 0, least = ULONG_MAX;

	for (size_t i = 0; i < n_works; i++) {
		const struct work *w = &works[i];

		shorter += w->shorter;
		wrong += w->wrong;
		whole += w->whole;
		if (w->whole < least)
			least = w->whole;
		if (strcmp(line, "names\n") == 0)
			printf("%s %lu %lu %lu\n", w->kind->name, w->shorter,
			       w->wrong, w->whole);
	}
	(void)(answer(line, "short", shorter) || answer(line, "wrong", wrong) ||
	       answer(line, "whole", whole) || answer(line, "least", least) ||
	       answer(line, "handled", handled));
}

static void install_filter(void)
{
	need(FILTER_INSTALL(
		SECCOMP_FILTER_FLAG_TSYNC,
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendto, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[3])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MSG_NOSIGNAL, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)));
	puts("ok 0");
}

int main(int argc, char **argv)
{
	char line[64];

	handle(SIGUSR1, on_signal, SA_RESTART);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < N_KINDS; i++) {
		if (argc > 1 && strcmp(argv[1], "--list") == 0)
			puts(kinds[i].name);
		else if (argc == 1 || strcmp(argv[1], kinds[i].name) == 0)
			add(&kinds[i]);
	}
	if (n_works == 0)
		return argc > 1 && strcmp(argv[1], "--list") == 0 ? 0 : 2;
	for (size_t i = 0; i < n_works; i++) {
		start(call_again, &works[i]);
		if (works[i].kind->other != NULL)
			start(other_again, &works[i]);
	}
	while (atomic_load(&works[0].tid) == 0)
		;
	ready(works[0].tid);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (strcmp(line, "filter\n") == 0)
			install_filter();
		else
			answer_sum(line);
	}
	_exit(0);
}
