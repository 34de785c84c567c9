/*
 * Makes processes that are born and die by the hundred, as its standard input
 * says, a line each:
 *   fork N WHAT   makes N children
 *   kill N        ends the N oldest of them by SIGKILL
 *   turn N WHAT   makes N children, and then ends the N oldest
 *   exec N        the N youngest become the program PROGRAM
 * WHAT is "plain"; "comm" or "title": MARK is the child's name, or its command
 * line; or "client": the child connects to $SENTRY_PROFD_SOCKET, asks for a
 * page and to be profiled, and reads no answer. After each line it prints "did
 * N": N children are left.
 *
 * Usage: churn make PROGRAM PADDING; a title is as long as all that at most.
 *        churn idle: waits for ever.
 *        churn work: two threads that work now and then; says "ready PID".
 */
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "target.h"

#define MARK	     "churn-marked"
#define CHILDREN_MAX 4096
#define ROUNDS	     200000
#define PAUSE_NS     (200 * 1000 * 1000)

static pid_t children[CHILDREN_MAX]; /* the oldest first */
static size_t n_children;
static const char *program;
static volatile uint64_t sum;

static void idle(void)
{
	for (;;)
		(void)pause();
}

static void become(int number)
{
	(void)number;
	(void)execl(program, program, "idle", (char *)NULL);
	_exit(1);
}

static void set_title(int argc, char **argv)
{
	char *end = argv[argc - 1] + strlen(argv[argc - 1]);
	const size_t size = (size_t)(end - argv[0]);

	memset(argv[0], 0, size);
	memcpy(argv[0], MARK, strlen(MARK) < size ? strlen(MARK) : size);
}

/* The messages are those of the daemon's socket (protocol.h). */
static void connect_to_daemon(void)
{
	static const uint32_t hello[6] = {1, sizeof(hello), 1, 0x46525053, 1,
					  1};
	static const uint32_t start[20] = {3, sizeof(start), 2};
	const char *path = getenv("SENTRY_PROFD_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (path == NULL || strlen(path) >= sizeof(to.sun_path))
		_exit(1);
	memcpy(to.sun_path, path, strlen(path) + 1);
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0 &&
	    send(fd, hello, sizeof(hello), MSG_NOSIGNAL) > 0)
		(void)!send(fd, start, sizeof(start), MSG_NOSIGNAL);
}

static void make(size_t n, const char *what, int argc, char **argv)
{
	while (n-- > 0 && n_children < CHILDREN_MAX) {
		pid_t pid = fork();

		if (pid < 0)
			return;
		if (pid > 0) {
			children[n_children++] = pid;
			continue;
		}
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (strcmp(what, "comm") == 0)
			(void)prctl(PR_SET_NAME, MARK);
		else if (strcmp(what, "title") == 0)
			set_title(argc, argv);
		else if (strcmp(what, "client") == 0)
			connect_to_daemon();
		(void)signal(SIGUSR1, become);
		idle();
	}
}

/* All of them get the signal before the first is waited for. */
static void end(size_t n)
{
	if (n > n_children)
		n = n_children;
	for (size_t i = 0; i < n; i++)
		(void)kill(children[i], SIGKILL);
	for (size_t i = 0; i < n; i++)
		(void)waitpid(children[i], NULL, 0);
	n_children -= n;
	memmove(children, children + n, n_children * sizeof(children[0]));
}

static void change(size_t n)
{
	for (size_t i = n_children; i > 0 && n > 0; i--, n--)
		(void)kill(children[i - 1], SIGUSR1);
}

static __attribute__((noipa)) void churn_work(void)
{
	for (int i = 0; i < ROUNDS; i++)
		sum++;
}

static void *work(void *unused)
{
	const struct timespec pause_time = {.tv_nsec = PAUSE_NS};

	(void)unused;
	for (;;) {
		churn_work();
		(void)nanosleep(&pause_time, NULL);
	}
	return NULL;
}

static int work_in_two(void)
{
	start(work, NULL);
	ready(getpid());
	(void)work(NULL);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	char line[256];

	if (argc > 1 && strcmp(argv[1], "idle") == 0)
		idle();
	if (argc > 1 && strcmp(argv[1], "work") == 0)
		return work_in_two();
	if (argc < 4)
		return EXIT_FAILURE;
	program = strdup(argv[2]);
	/* An exec would find in the file what the parent has not read. */
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IONBF, 0);
	ready(getpid());
	while (fgets(line, sizeof(line), stdin) != NULL) {
		char word[16] = "", what[16] = "plain";
		size_t n = 0;

		if (sscanf(line, "%15s %zu %15s", word, &n, what) < 2)
			return EXIT_FAILURE;
		if (strcmp(word, "fork") == 0 || strcmp(word, "turn") == 0)
			make(n, what, argc, argv);
		if (strcmp(word, "kill") == 0 || strcmp(word, "turn") == 0)
			end(n);
		if (strcmp(word, "exec") == 0)
			change(n);
		printf("did %zu\n", n_children);
	}
	return EXIT_SUCCESS;
}
