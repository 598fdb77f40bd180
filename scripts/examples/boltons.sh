# boltons.sh FOLDER: makes a repository in FOLDER of the released archives in /tmp/sdists, one commit for each in
# the order of their versions, finds out which tests the release after BASE mends and which it must not break, and
# prints that as a row.
set -euo pipefail
base=24.0.0
next=24.1.0
mkdir -p "$1" && cd "$1"
git -c init.defaultBranch=main init -q
git config user.email packages@example.org && git config user.name 'Released packages'
declare -A commits
for version in $(ls /tmp/sdists | sed 's/^boltons-//; s/\.tar\.gz$//' | sort -V); do
  git ls-files -z | xargs -0 -r rm -f
  tar -xzf "/tmp/sdists/boltons-$version.tar.gz" --strip-components=1 --no-same-owner
  rm -rf ./*.egg-info
  git add -A && git commit -qm "Release $version" && git tag "v$version"
  commits[$version]=$(git rev-parse HEAD)
done
git diff "v$base" "v$next" -- boltons >/tmp/solution.patch
git diff "v$base" "v$next" -- tests >/tmp/tests.patch
files=$(git diff --name-only --diff-filter=AM "v$base" "v$next" -- tests | grep '\.py$')
run() { { python -m pytest -rA $files 2>&1 || true; } | sed -n 's/^PASSED \([^ ]*\)$/\1/p' | sort -u; }
git checkout -q "v$base" && git apply /tmp/tests.patch
run >/tmp/before
git apply /tmp/solution.patch
run >/tmp/after
git checkout -q -f main && git reset -q --hard "v$base"
python - "${commits[$base]}" "$next" <<'END'
import json
import sys

before, after = (set(open(f"/tmp/{name}").read().split()) for name in ("before", "after"))
print(json.dumps({
    "data_source": "swebench",
    "instance_id": "mahmoud__boltons-" + sys.argv[2],
    "repo": "mahmoud/boltons",
    "version": sys.argv[2],
    "base_commit": sys.argv[1],
    "problem_statement": f"Bring the library to what release {sys.argv[2]} does.",
    "patch": open("/tmp/solution.patch").read(),
    "test_patch": open("/tmp/tests.patch").read(),
    "FAIL_TO_PASS": sorted(after - before),
    "PASS_TO_PASS": sorted(after & before),
    "test_cmd": "python -m pytest -rA",
    "log_parser": "pytest",
}))
END
