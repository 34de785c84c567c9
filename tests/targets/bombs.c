/*
 * A program that costs its profiler much: many mappings, deep stacks, odd names,
 * one program after the other. tests/storm/bombs.py starts it, and forges files of
 * it whose call frame information and symbols are bombs.
 *
 * Usage:
 *   bombs work            computes in bomb_work()
 *   bombs hop             computes in HOPS functions in turn, 20 ms in each
 *   bombs maps N FILE     computes, with N mappings of the first page of FILE
 *   bombs stack MB FRAME  computes below a stack of so many MB, whose frames have
 *                         FRAME bytes each and touch one of them
 *   bombs names NAME...   a thread of each name, and the main thread takes one
 *                         after the other
 *   bombs execs           executes itself every millisecond
 *   bombs forks           a chain of processes: each makes the next and ends
 *   bombs truncate FILE KEPT  cuts FILE after KEPT bytes and writes it whole again,
 *                         all the time
 *
 * It says "ready PID" and runs until it is killed.
 */
#include <alloca.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "target.h"

#define WORK_ROUNDS   500000
#define WORK_PAUSE_US 4000
#define HOPS	      64
#define HOP_BYTES     65536
#define HOP_NS	      20000000
#define EXEC_NS	      1000000
#define FILE_MAX      (256u << 20)
#define THREADS_MAX   64

static volatile uint64_t rounds;

/* Works and sleeps in turns, to leave the processors to others. noipa: not inlined. */
static __attribute__((noipa)) void bomb_work(void)
{
	for (;;) {
		for (int i = 0; i < WORK_ROUNDS; i++)
			rounds++;
		(void)usleep(WORK_PAUSE_US);
	}
}

/* HOPS functions, HOP_BYTES apart: each counts its argument down to 0. */
#if defined(__x86_64__)
__asm__(".text\n.balign 65536\n.globl bomb_hops\n.type bomb_hops, @function\n"
	"bomb_hops:\n"
	".rept 64\n"
	"1: dec %rdi\n jnz 1b\n ret\n .balign 65536\n"
	".endr\n"
	".size bomb_hops, . - bomb_hops\n");
extern char bomb_hops[];

static void hop(void)
{
	uint64_t n = 1000000;

	for (unsigned int i = 0;; i = (i + 1) % HOPS) {
		const char *at = bomb_hops + HOP_BYTES * (size_t)i;
		const uint64_t since = now_ns();
		void (*function)(uint64_t);

		memcpy(&function, &at, sizeof(function));
		function(n);
		/* So that the next one takes about HOP_NS. */
		n = n * HOP_NS / (now_ns() - since + 1);
		if (n < 1000 || n > 100000000)
			n = 1000000;
	}
}
#else
static void hop(void)
{
	bomb_work();
}
#endif

static void map(size_t n, const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	need(fd >= 0);
	/* The offsets do not continue each other, so that no two become one. */
	while (n-- > 0)
		if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
			 0) == MAP_FAILED)
			break;
	(void)close(fd);
}

struct deep {
	char *end;
	size_t frame;
};

static __attribute__((noipa)) int bomb_dive(const struct deep *deep)
{
	volatile char *room = alloca(deep->frame);

	room[0] = 1;
	if (room < deep->end) {
		ready(getpid());
		bomb_work();
	}
	return bomb_dive(deep) + room[0];
}

static void *run_deep(void *arg)
{
	(void)bomb_dive(arg);
	return NULL;
}

static void start_deep(size_t bytes, size_t frame)
{
	char *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	static struct deep deep;
	pthread_attr_t attr;
	pthread_t thread;

	need(stack != MAP_FAILED);
	deep = (struct deep){.end = stack + 2 * frame + 65536, .frame = frame};
	(void)pthread_attr_init(&attr);
	need(pthread_attr_setstack(&attr, stack, bytes) == 0 &&
	     pthread_create(&thread, &attr, run_deep, &deep) == 0);
}

static void *run_named(void *name)
{
	(void)prctl(PR_SET_NAME, name);
	bomb_work();
	return NULL;
}

static void take_names(int n, char **names)
{
	for (int i = 0; i < n && i < THREADS_MAX; i++)
		(void)start(run_named, names[i]);
	ready(getpid());
	for (int i = 0;; i = (i + 1) % n) {
		(void)prctl(PR_SET_NAME, names[i]);
		run_for(5000000);
	}
}

static void exec_again(char **argv)
{
	if (getenv("BOMB_AGAIN") == NULL)
		ready(getpid());
	(void)setenv("BOMB_AGAIN", "1", 1);
	run_for(EXEC_NS);
	(void)execv("/proc/self/exe", argv);
	perror("exec");
}

/*
 * The first of the chain inherits the others and waits for none, so that none becomes
 * a zombie. The last one ends when the first one has.
 */
static void fork_on(void)
{
	const pid_t first = getpid();

	(void)signal(SIGCHLD, SIG_IGN);
	need(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	ready(first);
	if (fork() > 0)
		bomb_work();
	while (kill(first, 0) == 0 || errno == EPERM) {
		run_for(1000000);
		if (fork() > 0)
			_exit(0);
	}
	_exit(0);
}

static void truncate_on(const char *path, size_t kept)
{
	const int fd = open(path, O_RDWR | O_CLOEXEC);
	char *whole = malloc(FILE_MAX);
	ssize_t n;

	need(fd >= 0 && whole != NULL);
	n = read(fd, whole, FILE_MAX);
	need(n > 0 && (size_t)n > kept);
	ready(getpid());
	for (;;) {
		need(ftruncate(fd, (off_t)kept) == 0);
		run_for(1000000);
		need(pwrite(fd, whole + kept, (size_t)n - kept, (off_t)kept) >=
		     0);
		run_for(3000000);
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "work";

	if (strcmp(how, "stack") == 0 && argc == 4) {
		start_deep(strtoul(argv[2], NULL, 0) << 20,
			   strtoul(argv[3], NULL, 0));
		for (;;)
			(void)pause();
	}
	if (strcmp(how, "names") == 0 && argc > 2)
		take_names(argc - 2, argv + 2);
	if (strcmp(how, "execs") == 0)
		exec_again(argv);
	if (strcmp(how, "forks") == 0)
		fork_on();
	if (strcmp(how, "truncate") == 0 && argc == 4)
		truncate_on(argv[2], strtoul(argv[3], NULL, 0));
	if (strcmp(how, "maps") == 0 && argc == 4)
		map(strtoul(argv[2], NULL, 0), argv[3]);
	ready(getpid());
	if (strcmp(how, "hop") == 0)
		hop();
	bomb_work();
	return EXIT_FAILURE;
}
