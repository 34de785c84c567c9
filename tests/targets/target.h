/* What many programs here do in the same way. */
#ifndef TESTS_TARGETS_TARGET_H
#define TESTS_TARGETS_TARGET_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Ends the program where the kernel refuses what it needs. */
static inline void need(bool ok)
{
	if (!ok) {
		perror(program_invocation_short_name);
		abort();
	}
}

/* The program can be profiled; the test waits for this line. */
static inline void ready(pid_t pid)
{
	printf("ready %ld\n", (long)pid);
	(void)fflush(stdout);
}

static inline pid_t thread_number(void)
{
	return (pid_t)syscall(SYS_gettid);
}

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Keeps a processor busy, so that the next thing happens at any moment of a
 * tick. */
static inline void run_for(uint64_t ns)
{
	const uint64_t since = now_ns();

	while (now_ns() - since < ns)
		;
}

/*
 * Each multiplication needs the last one's result, so that the time is that of
 * n multiplications wherever the code lies in memory.
 */
static inline __attribute__((always_inline)) uint64_t burn(uint64_t x, int n)
{
	for (int i = 0; i < n; i++)
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
	return x;
}

static inline struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
				 .tv_nsec = (long)(ns % 1000000000u)};
}

static inline pthread_t start(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, run, argument);
	need(errno == 0);
	return thread;
}

/* The set of this signal alone. */
static inline sigset_t set_of(int signal)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	return set;
}

/* In this thread and those that it starts. SIG_BLOCK or SIG_UNBLOCK. */
static inline void mask(int how, int signal)
{
	const sigset_t set = set_of(signal);

	(void)pthread_sigmask(how, &set, NULL);
}

static inline void handle(int signal, void (*handler)(int), int flags)
{
	const struct sigaction action = {.sa_handler = handler,
					 .sa_flags = flags};

	need(sigaction(signal, &action, NULL) == 0);
}

/* A handler: the test has sent the signal that the program waits for. */
static volatile sig_atomic_t asked;

static inline void ask(int signal)
{
	(void)signal;
	asked = 1;
}

/* Is this thread? True too if that cannot be told. */
static inline bool is_traced(void)
{
	static const char key[] = "TracerPid:\t";
	char text[4096];
	const char *line;
	int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	(void)close(fd);
	if (n <= 0)
		return true;
	text[n] = '\0';
	line = strstr(text, key);
	return line == NULL || line[sizeof(key) - 1] != '0';
}

/*
 * Answers a line that is this word by the word and the number. False: it is
 * another one.
 */
static inline bool answer(const char *line, const char *word,
			  unsigned long number)
{
	const size_t n = strlen(word);

	if (strncmp(line, word, n) != 0 || line[n] != '\n')
		return false;
	printf("%s %lu\n", word, number);
	return true;
}

#endif
