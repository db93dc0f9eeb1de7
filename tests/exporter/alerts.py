#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""alerts.py RULES FOLDER: each alert of RULES fires on what it says, and on nothing less (promtool, which is in PATH)."""

import json
import os
import re
import subprocess
import sys

# Alert: (minutes until it fires, series and values a minute that it fires on, the same that it does not). Values as promtool has them:
# "0+1x3" is 0 1 2 3, "_" none.
ALERTS = {
    "OneAccessDown": (2, {'oneaccess_up{instance="n"}': "0x9"}, {'oneaccess_up{instance="n"}': "1x9", 'up{job="other"}': "0x9"}),
    "OneAccessRestarts": (9, {'oneaccess_uptime_seconds{instance="n"}': "500 10 70 10 _ 5 65 20 80 140"},
                          {'oneaccess_uptime_seconds{instance="n"}': "500 10 70 130 10 70 130 190 250 310"}),
    "OneAccessOpensRefused": (9, {'oneaccess_opens_refused_total{instance="n"}': "0+3x9"},
                              {'oneaccess_opens_refused_total{instance="n"}': "90 90 90 91 91 92 93 93 93 93"}),
    "OneAccessMemoryShort": (9, {'oneaccess_memory_pressure_ratio{instance="n"}': "0.3x9"},
                             {'oneaccess_memory_pressure_ratio{instance="n"}': "0.3 0.3 0.3 0.05 0.3 0.3 0.05 0.3 0.3 0.3"}),
    "OneAccessJobStarved": (9, {'oneaccess_job_waiting_seconds{instance="n",jobid="4",uid="7"}': "0+60x9",
                                'oneaccess_job_info{instance="n",jobid="4",name="a"}': "1x9"},
                            {'oneaccess_job_waiting_seconds{instance="n",jobid="4",uid="7"}': "0 20 61 0 50 61 0 0 59 59",
                             'oneaccess_job_info{instance="n",jobid="4",name="a"}': "1x9"}),
    "OneAccessCacheOff": (11, {'oneaccess_cache_on{instance="n",uid="7"}': "0x12", 'oneaccess_cache_size_bytes{instance="n"}': "8e9x12"},
                          {'oneaccess_cache_on{instance="n",uid="7"}': "0x12", 'oneaccess_cache_size_bytes{instance="n"}': "0x12"}),
    "OneAccessBadSamples": (9, {'oneaccess_bad_samples_total{instance="n"}': "0 0 1 1 1 1 1 1 1 1"},
                            {'oneaccess_bad_samples_total{instance="n"}': "5x9"}),
    "OneAccessPeerAway": (6, {'oneaccess_peer_met{instance="n",node="b"}': "0x9"}, {'oneaccess_peer_met{instance="n",node="b"}': "0 0 1 0 0 1 0"}),
    "OneAccessPeerShut": (6, {'oneaccess_peer_open{instance="n",node="b",uid="7"}': "0x9"},
                          {'oneaccess_peer_open{instance="n",node="b",uid="7"}': "0 0 1 0 0 1 0"}),
    "OneAccessLoopSlow": (16, {'oneaccess_loop_long_turns_total{instance="n"}': "0+120x17"},
                          {'oneaccess_loop_long_turns_total{instance="n"}': "0+30x17"}),
    "OneAccessWorkersDie": (9, {'oneaccess_worker_restarts_total{instance="n"}': "0+5x9", 'oneaccess_reader_restarts_total{instance="n"}': "0x9"},
                            {'oneaccess_worker_restarts_total{instance="n"}': "7+1x9", 'oneaccess_reader_restarts_total{instance="n"}': "0x9"}),
}


def fires(rules, folder, alert, minutes, series):
    """What promtool says of a test that expects no such alert: with its labels and texts where there is one."""
    test = {"rule_files": [rules], "evaluation_interval": "1m", "tests": [{
        "interval": "1m", "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [{"eval_time": f"{minutes}m", "alertname": alert, "exp_alerts": []}]}]}
    with open(f"{folder}/alerts.yml", "w") as file:
        json.dump(test, file)
    done = subprocess.run(["promtool", "test", "rules", file.name], capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert done.returncode == 0 or "got:" in said, said
    return said if done.returncode else ""


def main():
    rules, folder = os.path.abspath(sys.argv[1]), sys.argv[2]  # promtool looks for it beside the test
    named = re.findall(r"- alert: (\w+)", open(rules).read())
    assert sorted(named) == sorted(ALERTS), f"alerts without a test here, or the reverse: {set(named) ^ set(ALERTS)}"
    for alert, (minutes, on, not_on) in ALERTS.items():
        said = fires(rules, folder, alert, minutes, on)
        assert said, f"{alert} does not fire on {on}"
        assert "<no value>" not in said and "error" not in said.lower(), f"{alert} lacks a label: {said}"
        said = fires(rules, folder, alert, minutes, not_on)
        assert not said, f"{alert} fires on {not_on}: {said}"


if __name__ == "__main__":
    main()
