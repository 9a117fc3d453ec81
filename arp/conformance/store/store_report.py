"""The results of a run as JSON, for programs, and as JUnit XML, for CI systems."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from arp.conformance.store.store_suite import StoreResult


def counts(results: Sequence[StoreResult]) -> Counter[str]:
    """Return the number of results of each outcome, in the order of their first occurrence."""
    return Counter(result.outcome for result in results)


def json_report(store: str, results: Sequence[StoreResult]) -> str:
    """Return the results as a JSON object: name of the store, counts, and all cases."""
    cases = [
        {
            "name": result.case.name,
            "title": result.case.title,
            "outcome": result.outcome,
            "note": result.note,
            "seconds": round(result.seconds, 3),
        }
        for result in results
    ]
    return json.dumps({"store": store, "counts": counts(results), "cases": cases}, indent=1) + "\n"


def junit_report(store: str, results: Sequence[StoreResult]) -> str:
    """Return the results as JUnit XML: one test suite, one test per case.

    A case that is not advertised or not checked is a skipped test; a fault of the suite is an
    error.
    """
    number = counts(results)
    skipped = number["not advertised"] + number["not checked"]
    suite = ET.Element(
        "testsuite",
        name=_xml_text(f"arp conformance store: {store}"),
        tests=str(len(results)),
        failures=str(number["fail"]),
        errors=str(number["suite fault"]),
        skipped=str(skipped),
        time=f"{sum(result.seconds for result in results):.3f}",
    )
    for result in results:
        test = ET.SubElement(
            suite,
            "testcase",
            classname="arp.conformance.store",
            name=result.case.name,
            time=f"{result.seconds:.3f}",
        )
        if result.outcome != "pass":
            kind = {"fail": "failure", "suite fault": "error"}.get(result.outcome, "skipped")
            message = result.note if kind != "skipped" else f"{result.outcome}: {result.note}"
            ET.SubElement(test, kind, message=_xml_text(message)).text = result.case.title
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _xml_text(text: str) -> str:
    """Return a text with escapes instead of the characters that XML does not allow."""
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)
