/*
 * A process of many threads, nearly all of which wait: in epoll_wait, which
 * fails with EINTR as soon as anything wakes it, and until all are told to go.
 *
 * Usage: life_many N SIGNALS. When it begins MORE others come, and the main
 * thread calculates for a while; then the last of them is sent a signal SIGNALS
 * times that is ignored by default.
 */
#include "life.h"

#include <sys/epoll.h>
#include <sys/mman.h>

/* No guard pages: a process may have 65,530 mappings. */
#define STACK 16384

/* Of the first, a few descriptors may be left. */
#define MORE 4

static int told[2], epoll;
static atomic_ulong waiting, woken, failed;
static _Atomic pid_t someone;

static void *wait_once(void *unused)
{
	struct epoll_event event;

	atomic_store(&someone, thread_number());
	atomic_fetch_add(&waiting, 1);
	if (epoll_wait(epoll, &event, 1, -1) == 1)
		atomic_fetch_add(&woken, 1);
	else
		atomic_fetch_add(&failed, 1);
	return unused;
}

static pthread_t start_on(char *stack)
{
	pthread_attr_t attributes;
	pthread_t thread;

	(void)pthread_attr_init(&attributes);
	(void)pthread_attr_setstack(&attributes, stack, STACK);
	must(pthread_create(&thread, &attributes, wait_once, NULL) == 0,
	     "pthread_create");
	(void)pthread_attr_destroy(&attributes);
	return thread;
}

static void until_waiting(unsigned long n)
{
	uint64_t since = now_ns();

	while (atomic_load(&waiting) < n)
		patience(since, "threads that wait");
}

int main(int argc, char **argv)
{
	struct epoll_event event = {.events = EPOLLHUP};
	unsigned long n, signals;
	pthread_t *threads;
	char *stacks;

	if (argc != 3)
		return 2;
	n = strtoul(argv[1], NULL, 10);
	signals = strtoul(argv[2], NULL, 10);
	threads = calloc(n + MORE, sizeof(*threads));
	stacks = mmap(NULL, (n + MORE) * STACK, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	must(threads != NULL && stacks != MAP_FAILED && epoll >= 0 &&
		     pipe2(told, O_CLOEXEC) == 0 &&
		     epoll_ctl(epoll, EPOLL_CTL_ADD, told[0], &event) == 0,
	     "setting up");
	for (unsigned long i = 0; i < n; i++)
		threads[i] = start_on(stacks + i * STACK);
	until_waiting(n);
	begin();
	for (int i = 0; i < MORE; i++, n++) {
		threads[n] = start_on(stacks + n * STACK);
		until_waiting(n + 1);
	}
	run_for(1000000000);
	for (unsigned long i = 0; i < signals; i++) {
		send_to(someone, SIGWINCH);
		run_for(100000);
	}
	(void)close(told[1]);
	for (unsigned long i = 0; i < n; i++)
		join(threads[i]);
	printf("woken %lu failed %lu\n", atomic_load(&woken),
	       atomic_load(&failed));
	return finish();
}
