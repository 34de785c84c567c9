#!/usr/bin/python3
"""The broker, root, when what is around it is not as it should be: children
that were taken over (hostile.py), children that die, whatever it was started
with, full disks, a user in a hurry.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import harness
from harness import Skip, check, wait_for

import hostile_attacks as attacks

HERE = pathlib.Path(__file__).parent

# Kills of each child in the test of what a broker keeps of them.
KILLS = 4

# A broker that holds a few pages more is not one that leaks a child's worth.
RSS_SLACK_KB = 512


def check_sums(profd):
    stats = profd.stats
    for figures in [stats] + stats['targets']:
        missed, chunks = figures['missed'], figures['chunks']
        check(figures['samples_expected'] ==
              figures['samples_taken'] + sum(missed.values()),
              f'expected is not taken and missed: {figures}')
        check(chunks['made'] ==
              chunks['written'] + sum(chunks['discarded'].values()),
              f'chunks are missing: {chunks}')
        check(0 <= figures['duration_s'] < 3600,
              f'a duration that cannot be: {figures["duration_s"]}')
