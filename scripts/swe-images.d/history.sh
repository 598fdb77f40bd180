# history.sh BEFORE AFTER: makes the repository /testbed of two released archives in /tmp/sdists, tagged v1 and v2 and with
# v1 checked out, and with what /tmp/extra has, which releases leave out, and prints its commit.
set -euo pipefail
mkdir -p /testbed && cd /testbed
git -c init.defaultBranch=main init -q
git config user.email packages@example.org && git config user.name 'Released packages'
export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z'
tag=1
for version in "$@"; do
  git ls-files -z | xargs -0 -r rm -f
  tar -xf /tmp/sdists/*-"$version".tar.* --strip-components=1 --no-same-owner
  find . -name '*.egg-info' -prune -exec rm -rf {} + ; rm -f PKG-INFO
  if [ -d /tmp/extra ]; then cp -a /tmp/extra/. .; fi
  git add -A -f && git commit -qm "Release $version" && git tag "v$tag"
  tag=2
done
git checkout -q v1 && git branch -qf main v1 && git checkout -q main
git rev-parse HEAD
