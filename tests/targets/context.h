/* What a signal handler reads of the thread that it interrupts. */
#ifndef TESTS_TARGETS_CONTEXT_H
#define TESTS_TARGETS_CONTEXT_H

#include <stdint.h>
#include <ucontext.h>

static inline uintptr_t context_pc(const ucontext_t *u)
{
#if defined(__x86_64__)
	return (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
#else
	return (uintptr_t)u->uc_mcontext.pc;
#endif
}

/* At the first instruction of a function: the address to which it returns. */
static inline uintptr_t context_return(const ucontext_t *u)
{
#if defined(__x86_64__)
	return *(uintptr_t *)u->uc_mcontext.gregs[REG_RSP];
#else
	return (uintptr_t)u->uc_mcontext.regs[30];
#endif
}

#endif
