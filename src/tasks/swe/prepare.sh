# prepare.sh FOLDER BASE BUG TESTS: leaves the repository with its present state and nothing that gives the
# answer away: the commit that is checked out, and BASE, both without parents; no other refs, objects,
# reflogs, remotes, stashes or worktrees. BUG is a patch to be applied and committed first, TESTS a list of
# files to be removed with it. Prints the commit.
set -euo pipefail
cd "$1"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
identity=(-c user.name=rollout -c user.email=rollout@localhost -c commit.gpgSign=false)
config='[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n'
if [ ! -e .git ]; then
  git -c init.defaultBranch=main init -q
  git add -A -f
  git "${identity[@]}" commit -q --allow-empty -m base
fi
if [ ! -d .git ]; then
  echo "$1/.git is no folder" >&2
  exit 3
fi
find .git/hooks -type f -delete 2>/dev/null || true
if [ -n "$3" ]; then
  git apply --whitespace=nowarn "$3"
  git add -u
  xargs -0 -r git rm -q -f --cached --ignore-unmatch -- <"$4"
  xargs -0 -r rm -f -- <"$4"
  git "${identity[@]}" commit -q --no-verify -m "base"
fi
head=$(git rev-parse --verify 'HEAD^{commit}')
keep=("$head")
if [ -n "$2" ] && base=$(git rev-parse -q --verify "$2^{commit}") && [ "$base" != "$head" ]; then
  keep+=("$base")
fi
# A replacement or a graft would be packed in place of what it replaces.
rm -f .git/info/grafts
git for-each-ref --format='delete %(refname)' refs/replace | git update-ref --stdin
pack=$(git rev-list --objects --no-walk "${keep[@]}" | git pack-objects -q .git/objects/pack/pack)
find .git \( -type f -o -type l \) ! -path ".git/objects/pack/pack-$pack.*" -delete
# Where a layer can't remove a folder of the layer below, its name stays, and nothing in it.
find .git -mindepth 1 -type d -empty -delete 2>/dev/null || true
mkdir -p .git/objects/info .git/refs/heads
printf "$config" >.git/config
printf 'ref: refs/heads/main\n' >.git/HEAD
printf '%s\n' "$head" >.git/refs/heads/main
printf '%s\n' "${keep[@]}" >.git/shallow
git read-tree "$head"
git update-index -q --refresh >/dev/null || true
git reset -q --hard "$head"
rm -f .git/ORIG_HEAD .git/logs/HEAD
printf '%s\n' "$head"
