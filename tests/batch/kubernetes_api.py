"""Checks Kubernetes manifests against the API's own schema, testdata/kubernetes/api-*.json.

    kubernetes_api.py SCHEMA FILE...              each fault on a line; exit 1 if there is one

FILE is YAML, or a page of the guide, whose ```yaml blocks are objects, or patches of the page's first one."""
import json
import re
import sys

import yaml

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float), "null": type(None)}


def is_of(value, name):
    return isinstance(value, TYPES[name]) and not (isinstance(value, bool) and name in ("integer", "number"))


def faults_of(value, schema, where, definitions):
    if "$ref" in schema:
        return faults_of(value, definitions[schema["$ref"].rsplit("/", 1)[1]], where, definitions)
    if "oneOf" in schema:
        return min((faults_of(value, one, where, definitions) for one in schema["oneOf"]), key=len)
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_of(value, name) for name in types):
        return [f"{where}: {value!r} is not of type {' or '.join(types)}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where}: {value!r} is not one of {schema['enum']}"]
    faults = []
    if isinstance(value, dict):
        members = schema.get("properties", {})
        faults += [f"{where}: no {name}" for name in schema.get("required", []) if name not in value]
        for name, item in value.items():
            kind = members.get(name, schema.get("additionalProperties", True))
            if kind is False:
                faults.append(f"{where}: unknown member {name}")
            elif kind is not True:
                faults += faults_of(item, kind, f"{where}.{name}", definitions)
    if isinstance(value, list) and "items" in schema:
        faults += [fault for i, item in enumerate(value) for fault in faults_of(item, schema["items"], f"{where}[{i}]", definitions)]
    return faults


def manifests(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".md"):
        text = "\n---\n".join(block for block in re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S))
    documents = [document for document in yaml.safe_load_all(text) if document]
    return [document if "kind" in document else merged(documents[0], document) for document in documents]


def merged(value, patch):
    """As the API merges a patch: items of lists by their name, or the path of a mount."""
    if isinstance(patch, dict):
        return {**value, **{name: merged(value.get(name), item) for name, item in patch.items()}} if isinstance(value, dict) else patch
    key = next((key for key in ("mountPath", "name") if isinstance(patch, list) and all(key in item for item in patch)), None)
    if not key or not isinstance(value, list):
        return patch
    found = {item[key]: item for item in value}
    return list({**found, **{item[key]: merged(found.get(item[key]), item) for item in patch}}.values())


def faults(document, definitions):
    kind = document.get("kind")
    if kind not in definitions:
        return [f"{kind}: not a kind that the schema has"]
    found = faults_of(document, definitions[kind], kind, definitions)
    wanted = {"Job": "batch/v1", "Deployment": "apps/v1", "PersistentVolumeClaim": "v1", "Secret": "v1"}[kind]
    return found + ([] if document.get("apiVersion") == wanted else [f"{kind}: apiVersion is not {wanted}"])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        definitions = json.load(file)["definitions"]
    bad = 0
    for path in sys.argv[2:]:
        documents = manifests(path)
        if not documents:
            sys.exit(f"{path}: no manifests")
        for document in documents:
            for fault in faults(document, definitions):
                print(f"{path}: {fault}")
                bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
