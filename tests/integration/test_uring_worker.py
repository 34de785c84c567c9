#!/usr/bin/python3
"""Threads that the kernel makes in a process for io_uring. They have no code
and no stack of the program, and a stop would make the operations fail that
they wait for."""

import os

import harness
from harness import BUILD, Skip, check, wait_for
from test_profctl import parse, run

harness.filters_kill()

KERNELS = "it is a kernel thread and cannot be stopped"


def start(box):
    fifo = box.dir / 'fifo'
    os.mkfifo(fifo)
    target = box.start([BUILD / 'targets/uring_worker', fifo])
    if target.wait_line('(ready|none) .*')[1] == 'none':
        raise Skip('no io_uring here')

    def workers():
        return [t for t in harness.threads(target.pid)
                if harness.proc_text(t, 'comm').startswith('iou-wrk-') and
                harness.proc_text(t, 'syscall').split()[-2:] == ['0x0', '0x0']]
    wait_for(workers, 'its worker waits')
    return target, workers()[0], fifo


def goes_on(target, fifo):
    """Checks that the worker's operation completes as without the profiler."""
    check('opened' not in target.stdout, target.stdout)
    writer = os.open(fifo, os.O_WRONLY)
    result = int(target.wait_line('opened (-?[0-9]+)')[1])
    os.close(writer)
    check(result >= 0, f'{result}')


def test_stack(box):
    target, worker, fifo = start(box)
    thread = parse(run('stack', '--oracle=dwfl', target.pid).stdout)[worker]
    check(thread.missed == KERNELS and thread.frames == [], f'{thread}')
    text = run('stack', target.pid).stdout
    check(list(parse(text)) == [target.pid] and
          '\nnot seen: 1 of 2 threads ' in text, text)
    goes_on(target, fifo)


def test_profile(box):
    target, worker, fifo = start(box)
    profd = box.profd([target])
    wait_for(lambda: harness.tracer(target.pid) in profd.helpers()['capture'],
             'it is traced')
    profd.wait_looks()
    check(harness.tracer(worker) == 0, 'its worker is not')
    profd.interrupt()
    check(profd.stats['unwind']['failed'] == {}, f"{profd.stats['unwind']}")
    tids = {sample['thread_id'] for envelope in profd.envelopes
            for sample in envelope.chunk['profile']['samples']}
    check(tids == {str(target.pid)}, f'{tids}, worker {worker}')
    goes_on(target, fifo)


if __name__ == '__main__':
    harness.main(globals())
