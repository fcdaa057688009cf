"""See device.sh, which starts this."""
import argparse
import json
import os
import platform
import shutil
import sys
import time

import bench
import checks
import kit as kits
import peers
import serving
import traces
from report import Report, Skip, summary

HERE = os.path.dirname(os.path.abspath(__file__))


def numerics(report, kit):
    try:
        import numerics as module
    except ModuleNotFoundError as error:
        raise Skip(f"python3 has no {error.name}") from error
    module.group(report, kit)


def ratios(benchmarks):
    """llmc's tokens per second over those of the best mode of torch (bf16), where both were measured."""
    out = {}
    for storage in ("bf16", "q4_0", "q4_k"):
        for kind, sizes, key in (("decode", (1, 16, 64), "decode_tok_s"), ("prefill", (8192,), "prefill_tok_s")):
            for size in sizes:
                ours = benchmarks.get(f"8b.{storage}.{kind}.{size}", {}).get(key)
                modes = {name.rsplit(".", 1)[1]: figures["tok_s"] for name, figures in benchmarks.items()
                         if name.startswith(f"peer.{kind}.{size}.") and "tok_s" in figures}
                if ours and modes:
                    best = max(modes, key=modes.get)
                    out[f"8b.{storage}.{kind}.{size}"] = {"ratio": round(ours / modes[best], 3), "llmc_tok_s": ours, "peer_tok_s": modes[best],
                                                          "peer_mode": best}
    return out


def merge(out, paths):
    """Several device.json as one: the first's facts, everyone's checks and figures, later ones winning."""
    merged = None
    for path in paths:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        if merged is None:
            merged = data
            continue
        done = {(c["group"], c["name"]) for c in data["checks"]}
        merged["checks"] = [c for c in merged["checks"] if (c["group"], c["name"]) not in done] + data["checks"]
        groups = {s["group"] for s in data["skipped"]} | {c["group"] for c in data["checks"]}
        merged["skipped"] = [s for s in merged["skipped"] if s["group"] not in groups] + data["skipped"]
        merged["benchmarks"].update(data["benchmarks"])
        merged["seconds"] = round(merged["seconds"] + data["seconds"], 1)
    merged["ratios"] = ratios(merged["benchmarks"])
    with open(out, "w", encoding="utf-8") as file:
        json.dump(merged, file, indent=1, ensure_ascii=False)
    print(json.dumps(summary(merged)))
    return 0


GROUPS = {"smoke": checks.smoke, "conformance": checks.conformance, "numerics": numerics, "errors": checks.errors,
          "memory": checks.memory, "sanitizer": checks.sanitizer, "bench": bench.group, "peer": peers.torch, "ops": peers.ops,
          "steps-8b": lambda report, kit: peers.steps(report, kit, "8b"), "steps-1b": lambda report, kit: peers.steps(report, kit, "1b"),
          "trace-8b": traces.group, "serve-8b": serving.group}
GPU_ONLY = ("errors", "memory", "sanitizer", "peer", "ops", "steps-8b", "steps-1b", "trace-8b", "serve-8b")


def measure(args):
    report = Report(args.out, args.seconds_budget)
    report.data.update(host=platform.node(), system=platform.platform(), python=platform.python_version(), only=args.only)
    kit = kits.Kit(args.kit)
    try:
        report.data["kit"] = kit.about
        report.log(f"kit: {json.dumps(kit.about)}", True)
        if kit.cuda:
            try:
                report.data["gpu"] = kits.gpu()
            except Skip as reason:
                report.data["error"] = str(reason)
                report.log(str(reason), True)
                report.write()
                print(json.dumps({**summary(report.data), "error": str(reason)}))
                return 1
            report.log(json.dumps(report.data["gpu"]), True)
        for name in args.only.split(","):
            report.group = name
            started = time.monotonic()
            if name in GPU_ONLY and not kit.cuda:
                report.skip(name, "the kit is for a CPU")
                continue
            report.step(name, GROUPS[name], report, kit)
            report.log(f"== {name}: {time.monotonic() - started:.1f} s", True)
        report.data["ratios"] = ratios(report.data["benchmarks"])
        report.write()
    finally:
        shutil.rmtree(kit.work, ignore_errors=True)
    words = summary(report.data)
    print(json.dumps(words, ensure_ascii=False))
    return 1 if words["failed"] else 0


def main():
    parser = argparse.ArgumentParser(prog="device.sh", description="Conformance, numerics and benchmarks on a GPU machine.")
    parser.add_argument("kit", nargs="?")
    parser.add_argument("--out", default="device-out")
    parser.add_argument("--only", default=",".join(GROUPS))
    parser.add_argument("--seconds-budget", type=float, default=1500)
    parser.add_argument("--merge", nargs="+", metavar="JSON")
    args = parser.parse_args()
    if args.merge:
        if len(args.merge) < 2:
            parser.error("--merge: expected OUT.json IN.json..., got one file")
        return merge(args.merge[0], args.merge[1:])
    unknown = [name for name in args.only.split(",") if name not in GROUPS]
    if unknown:
        parser.error(f"--only: expected some of {', '.join(GROUPS)}, got {', '.join(unknown)}")
    if not args.kit or not os.path.exists(os.path.join(args.kit, "part-1", "kit.json")):
        parser.error(f"expected the folder of a kit (scripts/make-device-kit.sh), got {args.kit}")
    return measure(args)


if __name__ == "__main__":
    sys.exit(main())
