# What builds and publishes is named so that nobody can change it: actions by commit, base images by digest, rights
# for each workflow, build tools by hash. What the wheel carries is listed with the versions that dpkg has.
cat >check.py <<'PY'
import pathlib, re, sys

root = pathlib.Path(sys.argv[1])
bad = []
pins = {}
IMAGE = r"(?:[\w.]+/)*[\w-]+:[\w.-]+@sha256:[0-9a-f]{64}"


def check_images(path, pattern):
    """Images by digest, and one digest for each name; stages of the file itself apart."""
    text, found = path.read_text(), {}
    stages = set(re.findall(r"(?m)^FROM \S+ AS (\w+)$", text))
    images = [image for image in re.findall(pattern, text) if image not in stages]
    for image in images:
        if not re.fullmatch(IMAGE, image):
            bad.append(f"{path.name}: {image}: not by digest")
        elif found.setdefault(image.split("@")[0], image) != image:
            bad.append(f"{path.name}: {image}: another digest than elsewhere")
    return images


if not check_images(root / "scripts/container/Containerfile", r"(?m)^FROM (\S+)"):
    bad.append("Containerfile: no image")
for path in sorted(root.glob(".github/workflows/*.yml")):
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        used = re.match(r"\s*(?:- )?uses: (.*)$", line)
        if used:
            pin = re.fullmatch(r"([\w./-]+)@([0-9a-f]{40})  # (v\d+\.\d+\.\d+)", used[1])
            if not pin:
                bad.append(f"{path.name}:{number}: {used[1]}: not a commit with its tag behind it")
            elif pins.setdefault(pin[1], pin.group(2, 3)) != pin.group(2, 3):
                bad.append(f"{path.name}:{number}: {pin[1]}: another commit than elsewhere")
    if not any(line == "permissions:" for line in lines):
        bad.append(f"{path.name}: no permissions")
    text = path.read_text()
    check_images(path, r"(?m)^ *(?:container|image): (\S+)$")
    for job in re.split(r"(?m)^  (?=[\w-]+:$)", text)[1:]:
        publishes, others = "pypi-publish" in job, re.search(r"- run:|contents: write|packages: write", job)
        if publishes and (others or "id-token: write" not in job):
            bad.append(f"{path.name}: the job that publishes on the index does more than that")
        if "\n    container:" in job and not re.search(r"apt-get install .*\bgit\b", job.split("uses: ")[0]):
            bad.append(f"{path.name}: a job's checkout has no git, so it gives no history")
        if re.search(r"sbom:|provenance:", job) and "buildx create --use\n" not in job.split("uses: docker/build")[0]:
            bad.append(f"{path.name}: the runner's own builder makes neither sbom nor provenance")

requirements = (root / "scripts/python/build-tools.txt").read_text()
entries = re.split(r"(?m)^(?=[\w-]+==)", re.sub(r"(?m)^#.*\n", "", requirements))[1:]
for entry in entries:
    if not re.fullmatch(r"[\w-]+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+\n", entry):
        bad.append(f"build-tools.txt: {entry.splitlines()[0]}: no hashes")
named = {entry.split("==")[0] for entry in entries}
bad += [f"build-tools.txt: {tool} is missing" for tool in (root / "scripts/python/build-tools.in").read_text().split()
        if tool not in named]
print("\n".join(bad))
sys.exit(bool(bad))
PY
expect_exit 0 "$python" check.py "$SOURCE_DIR"

# The list of what the wheel carries, for the packages of wheel.cmake.
command -v dpkg-query >/dev/null || skip 'no dpkg here'
read -ra packages <<<"$(sed -n '/^set(CARRIED/,/)/p' "$SOURCE_DIR/scripts/cmake/wheel.cmake" | tr '()\n' '   ' | sed 's/set *CARRIED//')"
[ "${#packages[@]}" -ge 9 ] || fail "packages: ${packages[*]}"
expect_exit 0 "$SOURCE_DIR/scripts/make-sbom" 1.2.3 "${packages[@]}"
cp stdout bill
expect_exit 0 "$SOURCE_DIR/scripts/make-sbom" 1.2.3 "${packages[@]}"
cmp -s bill stdout || fail 'another list the second time'
"$python" - "${packages[@]}" <<'PY'
import json, subprocess, sys
bill = json.load(open("bill"))
assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
assert bill["metadata"]["component"]["version"] == "1.2.3"
listed = {each["name"]: each for each in bill["components"]}
assert listed.keys() == set(sys.argv[1:]) == set(bill["dependencies"][0]["dependsOn"])
for name, each in listed.items():
    told = subprocess.run(["dpkg-query", "-W", "-f=${Version}\n", name], capture_output=True, text=True, check=True)
    assert each["version"] in told.stdout.split(), (each, told.stdout)
    assert each["purl"].startswith(f"pkg:deb/") and f"/{name}@" in each["purl"], each
PY
expect_exit 1 "$SOURCE_DIR/scripts/make-sbom" 1.2.3 libzstd-dev no-such-package
