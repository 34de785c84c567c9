/*
 * What machine code of aarch64 says about a system call. Compiled for every processor, so that the
 * tests of each can run it.
 */
#ifndef LIB_CAPTURE_PTRACE_AARCH64_H
#define LIB_CAPTURE_PTRACE_AARCH64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Finds the register that still has the first argument of a system call, which the result has
 * replaced in x0. code: the n bytes before the svc instruction. In glibc's functions for calls that
 * wait, the argument is copied to x0 from a callee-saved register just before:
 *     mov x0, x20
 *     mov x3, x19
 *     mov x8, #207
 *     svc #0
 * The function reads such instructions backwards, up to the one that sets x0, and returns true with
 * *ret_register n for xn. Returns false at any other instruction, at the start of code, or if an
 * instruction in between changes the register.
 *
 * The result is wrong if the program branches to one of the instructions in between with another
 * x0. Compilers have no reason for such a branch: two paths to a call would share its last
 * instructions but not its argument.
 */
bool aarch64_first_argument(const uint8_t *code, size_t n, unsigned int *ret_register);

#endif
