#include "lib/capture/ptrace/arch.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "lib/capture/ptrace/aarch64.h"

static int get_regs(uint32_t tid, struct user_regs_struct *ret)
{
	struct iovec iov = {.iov_base = ret, .iov_len = sizeof(*ret)};

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov) < 0)
		return -errno;
	return iov.iov_len == sizeof(*ret) ? 0 : -ENOEXEC;
}

static int set_regs(uint32_t tid, const struct user_regs_struct *regs)
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

int arch_get_regs(uint32_t tid, struct arch_regs *ret)
{
	return get_regs(tid, ret);
}

int arch_set_regs(uint32_t tid, const struct arch_regs *regs)
{
	return set_regs(tid, regs);
}

void arch_find_call(struct arch_regs *regs, const uint8_t *code)
{
	(void)regs;
	(void)code;
}

void arch_to_dwarf(const struct arch_regs *r, uint64_t *ret_regs)
{
	const uint64_t regs[ARCH_REGS] = {
		r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
		r->r9,	r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip,
	};

	memcpy(ret_regs, regs, sizeof(regs));
}

bool arch_in_call(const struct arch_regs *regs)
{
	return (long)regs->orig_rax >= 0;
}

bool arch_interrupted_call(const struct arch_regs *regs, long *ret_nr, long *ret_result)
{
	if (!arch_in_call(regs))
		return false;
	*ret_nr = (long)regs->orig_rax;
	*ret_result = (long)regs->rax;
	return true;
}

long arch_result_at_end(const struct arch_regs *regs)
{
	return (long)regs->rax;
}

bool arch_knows_arguments(const struct arch_regs *regs)
{
	(void)regs;
	return true;
}

void arch_set_first_argument(struct arch_regs *regs, uint64_t first)
{
	regs->rdi = first;
}

uint64_t arch_pc_in_call(const struct arch_regs *regs)
{
	return regs->rip;
}

/*
 * x64_setup_rt_frame() in arch/x86/kernel/signal_64.c. The frame has a return address, a struct
 * ucontext of 304 bytes, and the siginfo.
 */
bool arch_enters_handler(const struct arch_regs *regs, int signal)
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

uint64_t arch_argument(const struct arch_regs *regs, unsigned int n)
{
	const uint64_t arguments[ARCH_ARGUMENTS] = {
		regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8, regs->r9,
	};

	return arguments[n];
}

uint64_t arch_thread_pointer(uint32_t tid, const struct arch_regs *regs)
{
	(void)tid;
	return regs->fs_base;
}

/* The two words are tcb and self of tcbhead_t (sysdeps/x86_64/nptl/tls.h). */
bool arch_is_own_data(const uint64_t *words, size_t n, uint64_t addr)
{
	return n > 2 && words[0] == addr && words[2] == addr;
}

/* The kernel restarts calls in the same way (arch/x86/kernel/signal.c). */
bool arch_call_again(const struct arch_regs *regs, const uint8_t before[ARCH_CALL_BYTES], long nr,
		     const uint64_t arguments[ARCH_ARGUMENTS], struct arch_regs *ret)
{
	static const uint8_t syscall_code[ARCH_CALL_BYTES] = {0x0f, 0x05};

	if (regs->cs != CODE_64 || memcmp(before, syscall_code, sizeof(syscall_code)) != 0)
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

void arch_regs_set_result(struct arch_regs *regs, uint64_t result)
{
	regs->rax = result;
}

#elif defined(__aarch64__)

/* svc #0, in the order of its bytes. */
static const uint8_t call_code[ARCH_CALL_BYTES] = {0x01, 0x00, 0x00, 0xd4};

/* x8 has the number of a system call. */
#define NUMBER	    8

/* What the kernel does with a call that it restarts by itself (lib/capture/restart/syscalls.h). */
#define ERESTARTSYS 512

int arch_get_regs(uint32_t tid, struct arch_regs *ret)
{
	ret->stopped = ARCH_IN_USER_MODE;
	ret->first_known = false;
	ret->first = 0;
	return get_regs(tid, &ret->user);
}

int arch_set_regs(uint32_t tid, const struct arch_regs *regs)
{
	return set_regs(tid, &regs->user);
}

void arch_find_call(struct arch_regs *regs, const uint8_t *code)
{
	const uint8_t *at_pc = code + ARCH_CODE_BEFORE;
	const uint8_t *before_pc = at_pc - ARCH_CALL_BYTES;
	unsigned int copy;

	regs->first = regs->user.regs[0];
	regs->first_known = false;
	if (memcmp(at_pc, call_code, sizeof(call_code)) == 0) {
		regs->stopped = ARCH_BEFORE_CALL;
		regs->first_known = true;
	} else if (memcmp(before_pc, call_code, sizeof(call_code)) == 0) {
		regs->stopped = ARCH_AFTER_CALL;
		if (aarch64_first_argument(code, (size_t)(before_pc - code), &copy))
			arch_set_first_argument(regs, regs->user.regs[copy]);
	} else {
		regs->stopped = ARCH_IN_USER_MODE;
	}
}

void arch_to_dwarf(const struct arch_regs *r, uint64_t *ret_regs)
{
	memcpy(ret_regs, r->user.regs, sizeof(r->user.regs));
	ret_regs[ARCH_SP] = r->user.sp;
	ret_regs[ARCH_PC] = r->user.pc;
}

bool arch_in_call(const struct arch_regs *regs)
{
	return regs->stopped != ARCH_IN_USER_MODE;
}

bool arch_interrupted_call(const struct arch_regs *regs, long *ret_nr, long *ret_result)
{
	if (!arch_in_call(regs))
		return false;
	*ret_nr = (long)regs->user.regs[NUMBER];
	*ret_result = regs->stopped == ARCH_BEFORE_CALL ? -ERESTARTSYS : (long)regs->user.regs[0];
	return true;
}

long arch_result_at_end(const struct arch_regs *regs)
{
	return (long)regs->user.regs[0];
}

bool arch_knows_arguments(const struct arch_regs *regs)
{
	return regs->first_known;
}

void arch_set_first_argument(struct arch_regs *regs, uint64_t first)
{
	regs->first_known = true;
	regs->first = first;
}

uint64_t arch_pc_in_call(const struct arch_regs *regs)
{
	return regs->user.pc + (regs->stopped == ARCH_BEFORE_CALL ? ARCH_CALL_BYTES : 0);
}

/*
 * setup_rt_frame() in arch/arm64/kernel/signal.c. The frame begins with a siginfo of 128 bytes,
 * and the ucontext follows.
 */
bool arch_enters_handler(const struct arch_regs *regs, int signal)
{
	const struct user_regs_struct *user = &regs->user;

	return user->regs[0] == (unsigned long long)signal && user->regs[1] == user->sp &&
	       user->regs[2] == user->sp + 128;
}

int arch_set_result(uint32_t tid, long result)
{
	(void)tid;
	(void)result;
	return -ENOSYS;
}

uint64_t arch_argument(const struct arch_regs *regs, unsigned int n)
{
	return n == 0 ? regs->first : regs->user.regs[n];
}

uint64_t arch_thread_pointer(uint32_t tid, const struct arch_regs *regs)
{
	uint64_t pointer = 0;
	struct iovec iov = {.iov_base = &pointer, .iov_len = sizeof(pointer)};

	(void)regs;
	return ptrace(PTRACE_GETREGSET, tid, NT_ARM_TLS, &iov) == 0 ? pointer : 0;
}

/*
 * No word of a thread's own data tells where they are. But the head of its list of robust locks is
 * 28 words behind their start in each version of glibc: 24 words for the architecture, two links of
 * the list of threads, the tid, and the link before the head (struct pthread in nptl/descr.h).
 */
bool arch_is_own_data(const uint64_t *words, size_t n, uint64_t addr)
{
	(void)addr;
	return n == 28 && words[24] != 0 && words[24] % 8 == 0 && words[25] != 0 &&
	       words[25] % 8 == 0 && (int32_t)words[26] > 0;
}

/* The kernel restarts calls in the same way. */
bool arch_call_again(const struct arch_regs *regs, const uint8_t before[ARCH_CALL_BYTES], long nr,
		     const uint64_t arguments[ARCH_ARGUMENTS], struct arch_regs *ret)
{
	if (memcmp(before, call_code, sizeof(call_code)) != 0)
		return false;
	*ret = *regs;
	ret->user.pc -= sizeof(call_code);
	ret->user.regs[NUMBER] = (unsigned long long)nr;
	for (unsigned int i = 0; i < ARCH_ARGUMENTS; i++)
		ret->user.regs[i] = arguments[i];
	return true;
}

void arch_regs_set_result(struct arch_regs *regs, uint64_t result)
{
	regs->user.regs[0] = result;
}

#endif
