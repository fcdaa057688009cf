#!/usr/bin/env python3
"""Counts tests for test.sh; prints "PASSED FAILED".

  test-counts.py ctest JUNIT.xml DIR    what ctest --output-junit wrote; a test that left DIR/NAME.xml (GoogleTest) counts
                                        as its cases, any other as one
  test-counts.py lit REPORT.json        the file of lit --output
"""
import json
import os
import sys
import xml.etree.ElementTree as tree


def cases(path):
    """(passed, failed) of a GoogleTest report."""
    root = tree.parse(path).getroot()
    bad = int(root.get("failures")) + int(root.get("errors"))
    skipped = sum(case.get("status") == "notrun" or case.find("skipped") is not None for case in root.iter("testcase"))
    return int(root.get("tests")) - bad - skipped, bad


def ctest(junit, folder):
    passed = failed = 0
    for test in tree.parse(junit).getroot().iter("testcase"):
        good = test.get("status") == "run"
        report = os.path.join(folder, test.get("name") + ".xml")
        inner = cases(report) if os.path.exists(report) else (int(good), 0)
        passed += inner[0]
        failed += inner[1] if good else max(inner[1], 1)  # one that crashed has no report, or one without failures
    return passed, failed


def lit(report):
    with open(report, encoding="utf-8") as file:
        codes = [test["code"] for test in json.load(file)["tests"]]
    good = sum(code in ("PASS", "XFAIL", "FLAKYPASS") for code in codes)
    return good, sum(code not in ("PASS", "XFAIL", "FLAKYPASS", "UNSUPPORTED", "SKIPPED", "EXCLUDED") for code in codes)


print(*{"ctest": ctest, "lit": lit}[sys.argv[1]](*sys.argv[2:]))
