"""Reads a file of JUnit's XML as build servers do and prints, as JSON, what it holds."""

import json
import sys

from junitparser import JUnitXml


def failure(case):
    found = [one for one in case.result if type(one).__name__ == "Failure"]
    return found[0].text if found else None


suites = JUnitXml.fromfile(sys.argv[1])
counted = {"tests": suites.tests, "failures": suites.failures, "errors": suites.errors}
read = [
    {
        "name": suite.name,
        "tests": suite.tests,
        "failures": suite.failures,
        "cases": [{"name": c.name, "classname": c.classname, "failure": failure(c)} for c in suite],
    }
    for suite in suites
]
# What is counted must be what is there.
for suite in read:
    assert suite["tests"] == len(suite["cases"]), suite
    assert suite["failures"] == sum(case["failure"] is not None for case in suite["cases"]), suite
print(json.dumps({**counted, "suites": read}))
