"""The errors that system calls may give: a part of the storm faults.

ERRNOS has the errors of each call that Linux may give while the program is
right: a lack of memory, descriptors or room, a refusal, an interruption, an
object that has gone. Errors that only a defect of the caller explains (EBADF,
EFAULT, EINVAL) are left out, and calls that cannot fail otherwise are in
NEVER_FAIL. A call with the name of a request, "ptrace SEIZE", is this request
only.
"""

import errno

LACKS = 'EMFILE ENFILE ENOMEM'
OPEN = f'{LACKS} EACCES EINTR EIO ELOOP ENOENT ENOTDIR ENXIO EPERM ESRCH ' \
    'ENOSPC EROFS'
STAT = 'EACCES EIO ENOENT ENOMEM'
WRITE = 'EDQUOT EFBIG EINTR EIO ENOMEM ENOSPC EPIPE'
SEND = 'EAGAIN EINTR ENOBUFS ENOMEM'
FORK = 'EAGAIN ENOMEM'

ERRNOS = {
    # files
    'open': OPEN, 'openat': OPEN, 'openat2': f'{OPEN} EAGAIN ENOSYS EXDEV',
    'read': 'EINTR EIO ENOMEM ESRCH', 'pread64': 'EINTR EIO ENOMEM ESRCH',
    'readv': 'EINTR EIO ENOMEM',
    'write': WRITE, 'pwrite64': WRITE, 'writev': WRITE,
    'fstat': 'ENOMEM EIO', 'stat': STAT, 'lstat': STAT, 'newfstatat': STAT,
    'statx': STAT, 'access': STAT, 'faccessat': STAT, 'faccessat2': STAT,
    'readlink': f'{STAT} ESRCH', 'readlinkat': f'{STAT} ESRCH',
    'getdents64': 'EIO ENOENT ENOMEM', 'statfs': 'EIO ENOSYS EACCES',
    'fstatfs': 'EIO ENOSYS', 'lseek': 'ESPIPE',
    'mkdir': 'EACCES EDQUOT EEXIST EIO ENOMEM ENOSPC EROFS',
    'mkdirat': 'EACCES EDQUOT EEXIST EIO ENOMEM ENOSPC EROFS',
    'rename': 'EACCES EDQUOT EIO ENOENT ENOMEM ENOSPC EROFS',
    'renameat': 'EACCES EDQUOT EIO ENOENT ENOMEM ENOSPC EROFS',
    'renameat2': 'EACCES EDQUOT EIO ENOENT ENOMEM ENOSPC EROFS',
    'unlink': 'EACCES EBUSY EIO ENOENT ENOMEM EROFS',
    'unlinkat': 'EACCES EBUSY EIO ENOENT ENOMEM EROFS',
    'fsync': 'EDQUOT EINTR EIO ENOSPC', 'ftruncate': 'EFBIG EINTR EIO ENOSPC',
    'chmod': 'EIO ENOENT EPERM EROFS', 'fchmod': 'EIO EPERM EROFS',
    'fchmodat': 'EIO ENOENT EPERM EROFS', 'chown': 'EIO ENOENT EPERM EROFS',
    'fchown': 'EIO EPERM EROFS', 'fchownat': 'EIO ENOENT EPERM EROFS',
    'flock': 'EINTR ENOLCK EWOULDBLOCK',
    # descriptors
    'dup': 'EMFILE', 'dup2': 'EBUSY EINTR EMFILE', 'dup3': 'EBUSY EMFILE',
    'fcntl F_DUPFD': 'EMFILE', 'fcntl F_DUPFD_CLOEXEC': 'EMFILE ENOMEM',
    'fcntl F_ADD_SEALS': 'EBUSY EPERM', 'fcntl F_SETFL': 'EPERM',
    'fcntl F_GET_SEALS': '', 'fcntl F_GETFL': '', 'fcntl F_GETFD': '',
    'fcntl F_SETFD': '',
    'close_range': 'EMFILE ENOMEM ENOSYS', 'pipe': LACKS, 'pipe2': LACKS,
    'eventfd2': LACKS, 'signalfd4': LACKS, 'memfd_create': LACKS,
    'timerfd_create': LACKS, 'epoll_create1': LACKS,
    'epoll_ctl ADD': 'ENOMEM ENOSPC EPERM', 'epoll_ctl MOD': '',
    'epoll_ctl DEL': '',
    'epoll_wait': 'EINTR', 'epoll_pwait': 'EINTR', 'poll': 'EINTR ENOMEM',
    'ppoll': 'EINTR ENOMEM', 'select': 'EINTR ENOMEM',
    'ioctl TCGETS': 'ENOTTY EIO', 'ioctl FIONREAD': 'EIO',
    'pidfd_open': f'{LACKS} ENODEV ESRCH', 'pidfd_send_signal': 'EPERM ESRCH',
    # sockets
    'socket': f'{LACKS} EACCES EAFNOSUPPORT ENOBUFS EPROTONOSUPPORT',
    'socketpair': f'{LACKS} ENOBUFS', 'bind': 'EACCES EADDRINUSE ENOMEM EROFS',
    'listen': 'EADDRINUSE', 'accept4': f'{LACKS} EAGAIN ECONNABORTED EINTR '
    'ENOBUFS EPERM', 'connect': 'EACCES EADDRNOTAVAIL ECONNREFUSED '
    'EHOSTUNREACH ENETUNREACH ENOBUFS EPERM ETIMEDOUT',
    'sendmsg': f'{SEND} ETOOMANYREFS', 'sendto': SEND, 'sendmmsg': SEND,
    'recvmsg': 'EAGAIN EINTR ENOBUFS ENOMEM',
    'recvfrom': 'EAGAIN ENOMEM',
    'recvmmsg': 'EAGAIN EINTR ENOMEM',
    'getsockopt': 'ENOBUFS ENOMEM ENOPROTOOPT',
    'setsockopt': 'ENOBUFS ENOMEM ENOPROTOOPT', 'getsockname': 'ENOBUFS',
    'getpeername': 'ENOBUFS ENOTCONN', 'shutdown': 'ENOTCONN',
    # memory
    'mmap': 'EAGAIN ENFILE ENOMEM', 'brk': 'ENOMEM', 'mremap': 'EAGAIN ENOMEM',
    'munmap': 'ENOMEM', 'mprotect': 'EACCES ENOMEM',
    'madvise': 'EAGAIN EIO ENOMEM', 'sigaltstack': 'ENOMEM',
    # processes
    'clone': FORK, 'clone3': f'{FORK} ENOSYS', 'fork': FORK, 'vfork': FORK,
    'execve': 'EACCES EAGAIN EIO ELIBBAD ENOENT ENOMEM EPERM ETXTBSY',
    'setpgid': 'EACCES EPERM', 'getpgid': 'EPERM', 'setsid': 'EPERM',
    'kill': 'EPERM ESRCH', 'tgkill': 'EPERM', 'setpriority': 'EACCES EPERM',
    'getpriority': 'ESRCH', 'sched_setscheduler': 'EPERM',
    'sched_getaffinity': 'ESRCH', 'prlimit64': 'EPERM',
    'setrlimit': 'EPERM',
    'timer_create': 'EAGAIN ENOMEM', 'clock_nanosleep': 'EINTR',
    'clock_gettime': 'ENODEV', 'nanosleep': 'EINTR',
    'rt_sigtimedwait': 'EAGAIN EINTR',
    'futex WAIT': 'EAGAIN EINTR', 'process_vm_readv': 'EPERM ESRCH ENOMEM',
    # rights
    'capget': 'EPERM', 'capset': 'EPERM', 'setgroups': 'ENOMEM EPERM',
    'setresuid': 'EAGAIN EPERM', 'setresgid': 'EAGAIN EPERM',
    'setuid': 'EAGAIN EPERM', 'setgid': 'EPERM', 'setfsuid': '',
    'setfsgid': '', 'chdir': 'EACCES EIO ENOENT', 'seccomp': 'EACCES ENOMEM',
    'prctl PR_CAPBSET_DROP': 'EPERM', 'prctl PR_SET_KEEPCAPS': 'EPERM',
    'landlock_create_ruleset': 'EMFILE ENOMEM ENOSYS EOPNOTSUPP',
    'landlock_add_rule': 'ENOMEM', 'landlock_restrict_self': 'E2BIG ENOMEM '
    'EPERM',
    # tracees
    'ptrace SEIZE': 'EIO ENOMEM EPERM ESRCH', 'ptrace INTERRUPT': 'EIO ESRCH',
    'ptrace GETREGSET': 'EIO ESRCH', 'ptrace GETREGS': 'EIO ESRCH',
    'ptrace GETEVENTMSG': 'ESRCH', 'ptrace PEEKDATA': 'EIO ESRCH',
    'ptrace PEEKUSER': 'EIO ESRCH', 'ptrace GETSIGINFO': 'ESRCH',
    'ptrace GETSIGMASK': 'ESRCH',
    'ptrace GET_SYSCALL_INFO': 'EIO ESRCH',
}

# Errors of TCP, which only ship uses. Unix sockets report EPIPE and ECONNRESET only
# if the peer has closed its end. The broker calls recv(2) with MSG_DONTWAIT, which
# no signal interrupts.
TCP = {
    'recvfrom': 'ECONNRESET EINTR ETIMEDOUT', 'sendto': 'ECONNRESET EPIPE',
}

# Requests to a tracee in a ptrace-stop fail only if the tracee was killed, so the
# storm kills the tracee just before the request. An error while the tracee stays
# in its stop would be a defect of the kernel.
KILL = ('ptrace CONT', 'ptrace SYSCALL', 'ptrace LISTEN', 'ptrace DETACH',
        'ptrace SETREGSET', 'ptrace SETREGS', 'ptrace SETOPTIONS',
        'ptrace INTERRUPT', 'ptrace GETREGSET', 'ptrace GETREGS',
        'ptrace SEIZE')

# Calls that fail only by a defect of the caller, or do not return. close(2) closes
# the descriptor even if it returns an error, which a call that is not carried out
# would not do. wait4(2) and waitid(2) fail only without a child, and are
# interrupted only by a signal with a handler. getrandom(2) fails only if a filter
# refuses the call.
NEVER_FAIL = {
    'alarm', 'arch_prctl', 'close', 'exit', 'exit_group', 'epoll_ctl', 'fcntl',
    'futex', 'getegid', 'geteuid', 'getgid', 'getitimer', 'getpgrp', 'getpid',
    'getppid', 'getrusage', 'gettid', 'getuid', 'ioctl', 'prctl', 'ptrace',
    'restart_syscall', 'rseq', 'rt_sigaction', 'rt_sigprocmask',
    'rt_sigreturn', 'sched_getparam', 'sched_getscheduler', 'sched_yield',
    'set_robust_list', 'set_tid_address', 'setitimer', 'sysinfo', 'time',
    'timer_settime', 'timer_delete', 'timer_gettime', 'timerfd_settime',
    'timerfd_gettime', 'umask', 'uname', 'wait4', 'waitid', 'getgroups',
    'getresuid', 'getresgid', 'getrlimit', 'gettimeofday', 'clock_getres',
    'rt_sigpending', 'pidfd_getfd', 'getcwd', 'fadvise64', 'getrandom',
}

# linux/ptrace.h, linux/fcntl.h, linux/prctl.h, sys/epoll.h, asm/ioctls.h,
# linux/futex.h (without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME).
REQUESTS = {
    'ptrace': {1: 'PEEKTEXT', 2: 'PEEKDATA', 3: 'PEEKUSER', 7: 'CONT',
               12: 'GETREGS', 13: 'SETREGS', 17: 'DETACH', 24: 'SYSCALL',
               0x4200: 'SETOPTIONS', 0x4201: 'GETEVENTMSG',
               0x4202: 'GETSIGINFO', 0x4204: 'GETREGSET',
               0x4205: 'SETREGSET', 0x4206: 'SEIZE', 0x4207: 'INTERRUPT',
               0x4208: 'LISTEN', 0x420a: 'GETSIGMASK',
               0x420e: 'GET_SYSCALL_INFO'},
    'fcntl': {0: 'F_DUPFD', 1: 'F_GETFD', 2: 'F_SETFD', 3: 'F_GETFL',
              4: 'F_SETFL', 1030: 'F_DUPFD_CLOEXEC', 1033: 'F_ADD_SEALS',
              1034: 'F_GET_SEALS'},
    'epoll_ctl': {1: 'ADD', 2: 'DEL', 3: 'MOD'},
    'prctl': {8: 'PR_SET_KEEPCAPS', 24: 'PR_CAPBSET_DROP'},
    'ioctl': {0x5401: 'TCGETS', 0x541b: 'FIONREAD'},
    'futex': {0: 'WAIT', 128: 'WAIT', 9: 'WAIT', 137: 'WAIT', 265: 'WAIT',
              393: 'WAIT'},
}


def name_of(call, request):
    """Returns the name of a call in ERRNOS. request: the text that faults.c
    writes."""
    names = REQUESTS.get(call, {})
    name = names.get(int(request)) if request != '-' else None
    return f'{call} {name}' if name else call


def errors_of(process, name):
    """Returns [(name, number for faults.c)]; None: the call is in no table."""
    kills = [('KILL', 'KILL')] if name in KILL else []
    if kills or name in ERRNOS:
        errors = ERRNOS.get(name, '').split()
        if process == 'ship':
            errors += TCP.get(name, '').split()
        return kills + [(e, getattr(errno, e)) for e in errors]
    return [] if name in NEVER_FAIL else None
