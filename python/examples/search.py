#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks for a learning rate with four jobs at a time on one machine, which share their input work.

    search.py DATA [ARGUMENT OF train.py...]
"""
import json
import os
import subprocess
import sys
import tempfile
import time

RATES = (0.2, 0.05, 0.0125, 0.003)
TRAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.py")


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        jobs = []
        for rate in RATES:
            file = os.path.join(folder, f"{rate}.json")
            command = [sys.executable, TRAIN, *sys.argv[1:], "--lr", str(rate), "--json", file]
            jobs.append((rate, file, subprocess.Popen(command, stdout=subprocess.DEVNULL)))
        failed = [rate for rate, _, job in jobs if job.wait() != 0]
        if failed:
            sys.exit(f"search.py: failed with the rates {failed}")
        print("    rate     loss  right  CPU seconds of the job")
        for rate, file, _ in jobs:
            with open(file, encoding="utf-8") as text:
                result = json.load(text)
            last = result["epochs"][-1]
            print(f"{rate:8g} {last['loss']:8.3f} {last['accuracy']:6.1%} {result['cpu_seconds']:8.1f}")
    print(f"{time.monotonic() - begin:.1f} s for all of them")


if __name__ == "__main__":
    main()
