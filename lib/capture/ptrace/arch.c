#include "lib/capture/ptrace/arch.h"

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

int arch_set_regs(uint32_t tid, const struct user_regs_struct *regs)
{
	struct user_regs_struct copy = *regs;
	struct iovec iov = {.iov_base = &copy, .iov_len = sizeof(copy)};

	if (ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &iov) < 0)
		return -errno;
	return 0;
}

#if defined(__x86_64__)

/* The selector of 64-bit code (__USER_CS). */
#define CODE_64 0x33

void arch_to_dwarf(const struct user_regs_struct *r, uint64_t *ret_regs)
{
	const uint64_t regs[ARCH_REGS] = {
		r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
		r->r9,	r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip,
	};

	memcpy(ret_regs, regs, sizeof(regs));
}

bool arch_in_call(const struct user_regs_struct *regs)
{
	return (long)regs->orig_rax >= 0;
}

bool arch_interrupted_call(const struct user_regs_struct *regs, long *ret_nr, long *ret_result)
{
	if (!arch_in_call(regs))
		return false;
	*ret_nr = (long)regs->orig_rax;
	*ret_result = (long)regs->rax;
	return true;
}

/*
 * x64_setup_rt_frame() in arch/x86/kernel/signal_64.c. The frame has a return address, a struct
 * ucontext of 304 bytes, and the siginfo.
 */
bool arch_enters_handler(const struct user_regs_struct *regs, int signal)
{
	return regs->rdi == (unsigned long long)signal && regs->rax == 0 &&
	       regs->rdx == regs->rsp + 8 && regs->rsi == regs->rsp + 8 + 304;
}

int arch_set_result(uint32_t tid, long result)
{
	if (ptrace(PTRACE_POKEUSER, tid, offsetof(struct user_regs_struct, rax), result) < 0)
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

/* The two words are tcb and self of tcbhead_t (sysdeps/x86_64/nptl/tls.h). */
bool arch_is_own_data(const uint64_t *words, size_t n, uint64_t addr)
{
	return n > 2 && words[0] == addr && words[2] == addr;
}

/* The kernel restarts calls in the same way (arch/x86/kernel/signal.c). */
bool arch_call_again(const struct user_regs_struct *regs, const uint8_t before[2], long nr,
		     const uint64_t arguments[ARCH_ARGUMENTS], struct user_regs_struct *ret)
{
	static const uint8_t syscall_code[2] = {0x0f, 0x05};

	if (regs->cs != CODE_64 || memcmp(before, syscall_code, 2) != 0)
		return false;
	*ret = *regs;
	ret->rip -= sizeof(syscall_code);
	ret->rax = (unsigned long long)nr;
	/* With this value the thread counts as in user mode, and the kernel restarts nothing. */
	ret->orig_rax = UINT64_MAX;
	ret->rdi = arguments[0];
	ret->rsi = arguments[1];
	ret->rdx = arguments[2];
	ret->r10 = arguments[3];
	ret->r8 = arguments[4];
	ret->r9 = arguments[5];
	return true;
}

void arch_regs_set_result(struct user_regs_struct *regs, uint64_t result)
{
	regs->rax = result;
}

#elif defined(__aarch64__)

void arch_to_dwarf(const struct user_regs_struct *r, uint64_t *ret_regs)
{
	memcpy(ret_regs, r->regs, sizeof(r->regs));
	ret_regs[ARCH_SP] = r->sp;
	ret_regs[ARCH_PC] = r->pc;
}

/* The answer would need another register set, and so another ptrace(2). */
bool arch_in_call(const struct user_regs_struct *regs)
{
	(void)regs;
	return true;
}

/*
 * Restarts are not possible here: the result overwrites the first argument, and the kernel has
 * moved the pc back for the restart before the stop is seen. A new result would need the lost
 * argument.
 */
bool arch_interrupted_call(const struct user_regs_struct *regs, long *ret_nr, long *ret_result)
{
	(void)regs;
	(void)ret_nr;
	(void)ret_result;
	return false;
}

/*
 * setup_rt_frame() in arch/arm64/kernel/signal.c. The frame begins with a siginfo of 128 bytes,
 * and the ucontext follows.
 */
bool arch_enters_handler(const struct user_regs_struct *regs, int signal)
{
	return regs->regs[0] == (unsigned long long)signal && regs->regs[1] == regs->sp &&
	       regs->regs[2] == regs->sp + 128;
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

bool arch_is_own_data(const uint64_t *words, size_t n, uint64_t addr)
{
	(void)words;
	(void)n;
	(void)addr;
	return false;
}

bool arch_call_again(const struct user_regs_struct *regs, const uint8_t before[2], long nr,
		     const uint64_t arguments[ARCH_ARGUMENTS], struct user_regs_struct *ret)
{
	(void)regs;
	(void)before;
	(void)nr;
	(void)arguments;
	(void)ret;
	return false;
}

void arch_regs_set_result(struct user_regs_struct *regs, uint64_t result)
{
	regs->regs[0] = result;
}

#endif
