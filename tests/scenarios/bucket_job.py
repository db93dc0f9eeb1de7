# SPDX-License-Identifier: Apache-2.0
"""bucket_job.py SOCKET DATASET [NAME=VALUE...]: a job over a data set, by a path or a URL; it prints what it got, a line of JSON: how many samples,
how many of them were different ones, and a digest of each sample's bytes in the order of their numbers.

  source=JSON    Loader's source=, with what access-bucket is told
  tokens=N       windows of N tokens (uint16); pack=1: packed
  batch=16 epochs=1 bad=error job=NAME order=seeded
  state=FILE     goes on from there, if it is there, and leaves its state there
  at=N,N,...     behind these batches it runs `do`, a command of the shell, and waits for it
  do=COMMAND
  stop=N         ends behind so many batches
Errors of the data set are printed as they are: {"error": NAME, "text": ...}, and the status is 1."""
import hashlib
import json
import os
import subprocess
import sys

import oneaccess as oa


def digest_of(batch, sample):
    columns = batch.items() if isinstance(batch, dict) else enumerate(batch)
    found = hashlib.sha256()
    for name, column in columns:
        found.update(f"{name}:{column.dtype}:{column.shape[1:]}".encode())
        found.update(column[sample].tobytes())
    return found.hexdigest()


def main():
    socket, dataset = sys.argv[1:3]
    said = dict(word.partition("=")[::2] for word in sys.argv[3:])
    source = json.loads(said.get("source", "{}"))
    if "tokens" in said:
        dataset = oa.tokens(dataset, int(said["tokens"]), None if "pack" in said else "uint16", pack="pack" in said)
    known = {"ids": [], "samples": {}, "state": None}
    if "state" in said and os.path.exists(said["state"]):
        with open(said["state"], encoding="utf-8") as file:
            known = json.load(file)
    pipeline = None if said.get("pipeline") == "none" or "tokens" in said else oa.imagenet_eval(32, dtype="uint8")
    ends = {int(word) for word in said.get("at", "").split(",") if word}
    seen, different = 0, 0
    try:
        loader = oa.Loader(dataset, pipeline, int(said.get("batch", 16)), socket=socket, epochs=int(said.get("epochs", 1)), as_="numpy", seed=5,
                           order=said.get("order", "seeded"), state=known["state"], source=source or None, bad=said.get("bad", "error"),
                           job=said.get("job"))
        stopped = False
        for _ in range(int(said.get("epochs", 1))):
            for batch in loader:
                for at, number in enumerate(batch.ids.tolist()):
                    sample = digest_of(batch, at)
                    different += known["samples"].setdefault(str(number), sample) != sample
                    known["ids"].append(number)
                seen += 1
                if seen in ends:
                    subprocess.run(said["do"], shell=True, check=True)
                stopped = seen == int(said.get("stop", 0))
                if stopped:
                    break
            if stopped:
                break
        known["state"] = loader.state_dict()
        bad = [tuple(map(str, sample)) for sample in loader.bad_samples] if said.get("bad") == "skip" else []
        loader.close()
    except oa.errors.Error as why:
        print(json.dumps({"error": type(why).__name__, "text": str(why), "samples": len(known["ids"])}))
        sys.exit(1)
    if "state" in said:
        with open(said["state"], "w", encoding="utf-8") as file:
            json.dump(known, file)
    whole = hashlib.sha256("".join(known["samples"][number] for number in sorted(known["samples"], key=int)).encode()).hexdigest()
    in_order = hashlib.sha256(" ".join(map(str, known["ids"])).encode()).hexdigest()
    print(json.dumps({"samples": len(known["ids"]), "unique": len(set(known["ids"])), "digest": whole, "order": in_order, "different": different, "bad": bad}))


if __name__ == "__main__":
    main()
