/*
 * A seccomp filter for a target: statements that look at the call's number, and
 * installing them.
 */
#ifndef TESTS_TARGETS_FILTER_H
#define TESTS_TARGETS_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILTER_LOAD_NUMBER \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
/* What becomes of a call: SECCOMP_RET_*. */
#define FILTER_CALL(number, action)                          \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, (action))
#define FILTER_ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/*
 * For this thread and those that it makes, or with SECCOMP_FILTER_FLAG_TSYNC
 * for all. False if the kernel refuses.
 */
static inline bool filter_install(const struct sock_filter *code, size_t n,
			   unsigned int flags)
{
	const struct sock_fprog program = {
		.len = (unsigned short)n,
		.filter = (struct sock_filter *)(unsigned long)code,
	};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) ==
		       0;
}

/* The same of statements: what is none of them is allowed. */
#define FILTER_CODE(...) \
	((const struct sock_filter[]){FILTER_LOAD_NUMBER, __VA_ARGS__, \
				      FILTER_ALLOW})
#define FILTER_INSTALL(flags, ...)                                      \
	filter_install(FILTER_CODE(__VA_ARGS__),                        \
		       sizeof(FILTER_CODE(__VA_ARGS__)) /               \
			       sizeof(struct sock_filter),              \
		       flags)

#endif
