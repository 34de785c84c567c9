#include "lib/capture/arch.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

int arch_get_regs(uint32_t tid, struct user_regs_struct *ret)
{
	struct iovec iov = {.iov_base = ret, .iov_len = sizeof(*ret)};

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov) < 0)
		return -errno;
	return iov.iov_len == sizeof(*ret) ? 0 : -ENOEXEC;
}

#if defined(__x86_64__)

void arch_to_dwarf(const struct user_regs_struct *r, uint64_t *ret_regs)
{
	const uint64_t regs[ARCH_REGS] = {
		r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi,
		r->rbp, r->rsp, r->r8,	r->r9,	r->r10, r->r11,
		r->r12, r->r13, r->r14, r->r15, r->rip,
	};

	memcpy(ret_regs, regs, sizeof(regs));
}

bool arch_interrupted_call(const struct user_regs_struct *regs, long *ret_nr,
			   long *ret_result)
{
	if ((long)regs->orig_rax < 0)
		return false;
	*ret_nr = (long)regs->orig_rax;
	*ret_result = (long)regs->rax;
	return true;
}

int arch_set_result(uint32_t tid, long result)
{
	if (ptrace(PTRACE_POKEUSER, tid, offsetof(struct user_regs_struct, rax),
		   result) < 0)
		return -errno;
	return 0;
}

uint64_t arch_argument(const struct user_regs_struct *regs, unsigned int n)
{
	const uint64_t arguments[ARCH_ARGUMENTS] = {
		regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8, regs->r9,
	};

	return arguments[n];
}

uint64_t arch_thread_pointer(const struct user_regs_struct *regs)
{
	return regs->fs_base;
}

#elif defined(__aarch64__)

void arch_to_dwarf(const struct user_regs_struct *r, uint64_t *ret_regs)
{
	memcpy(ret_regs, r->regs, sizeof(r->regs));
	ret_regs[ARCH_SP] = r->sp;
	ret_regs[ARCH_PC] = r->pc;
}

/*
 * Here the result overwrites the first argument, and the kernel has already
 * moved the pc back for the restart when the stop is seen: a rewrite would
 * need the argument that is gone.
 */
bool arch_interrupted_call(const struct user_regs_struct *regs, long *ret_nr,
			   long *ret_result)
{
	(void)regs;
	(void)ret_nr;
	(void)ret_result;
	return false;
}

int arch_set_result(uint32_t tid, long result)
{
	(void)tid;
	(void)result;
	return -ENOSYS;
}

uint64_t arch_argument(const struct user_regs_struct *regs, unsigned int n)
{
	return regs->regs[n];
}

uint64_t arch_thread_pointer(const struct user_regs_struct *regs)
{
	(void)regs;
	return 0;
}

#endif
