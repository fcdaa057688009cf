"""Holds values drawn under the corpus's schemas to them, with Python's jsonschema (4.18 or newer), formats included.

    LLMC_GRAMMAR_SAMPLES=/tmp/samples.jsonl build/test/runtime/grammar/llmc-grammar-tests --gtest_filter='Corpus.*'
    python3 test/runtime/grammar/judge.py /tmp/samples.jsonl
"""

import json
import os
import sys

import jsonschema


def main():
    with open(os.path.join(os.path.dirname(__file__), "data", "schemas.json"), encoding="utf-8") as file:
        schemas = {entry["name"]: entry["schema"] for entry in json.load(file)}
    validator = jsonschema.Draft202012Validator
    judged, wrong, seen = 0, 0, set()
    for line in open(sys.argv[1], encoding="utf-8"):
        sample = json.loads(line)
        seen.add(sample["name"])
        judged += 1
        try:
            validator(schemas[sample["name"]], format_checker=validator.FORMAT_CHECKER).validate(json.loads(sample["text"]))
        except (ValueError, jsonschema.ValidationError) as error:
            wrong += 1
            print(f"{sample['name']}: {sample['text']}\n  {str(error).splitlines()[0]}")
    print(json.dumps({"schemas": len(seen), "judged": judged, "wrong": wrong}))
    sys.exit(wrong != 0 or len(seen) != len(schemas))


if __name__ == "__main__":
    main()
