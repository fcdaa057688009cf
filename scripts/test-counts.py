#!/usr/bin/env python3
"""Counts tests for test.sh; prints "PASSED FAILED".

  test-counts.py gtest DIR CTEST_LOG    the XML files that GoogleTest wrote into DIR, and the binaries that ctest calls
                                        failed although they wrote none (a crash)
  test-counts.py lit REPORT.json        the file of lit --output
"""
import glob
import json
import os
import re
import sys
import xml.etree.ElementTree as tree


def gtest(folder, log):
    passed = failed = 0
    written = set()
    for path in glob.glob(os.path.join(folder, "*.xml")):
        root = tree.parse(path).getroot()
        tests, bad = int(root.get("tests")), int(root.get("failures")) + int(root.get("errors"))
        skipped = sum(1 for case in root.iter("testcase") if case.get("status") == "notrun" or case.find("skipped") is not None)
        passed, failed = passed + tests - bad - skipped, failed + bad
        if bad:
            written.add(os.path.splitext(os.path.basename(path))[0])
    text = open(log, encoding="utf-8", errors="replace").read()
    for name in re.findall(r"^\s*\d+ - (\S+) \(.*\)\s*$", text.split("The following tests FAILED:")[-1], re.M) \
            if "The following tests FAILED:" in text else []:
        failed += name not in written
    return passed, failed


def lit(report):
    codes = [test["code"] for test in json.load(open(report, encoding="utf-8"))["tests"]]
    good = sum(code in ("PASS", "XFAIL", "FLAKYPASS") for code in codes)
    return good, sum(code not in ("PASS", "XFAIL", "FLAKYPASS", "UNSUPPORTED", "SKIPPED", "EXCLUDED") for code in codes)


print(*{"gtest": gtest, "lit": lit}[sys.argv[1]](*sys.argv[2:]))
