# prepare.sh FOLDER BASE BUG TESTS MAX_FILE_KIB: leaves the repository with its present state and nothing that gives the
# answer away: the commit that is checked out, and BASE, both without parents; no other refs, objects,
# reflogs, remotes, stashes or worktrees. BUG is a patch to be applied first, TESTS a list of files to be removed with
# it. The files as they lie here are the state that the task begins with: where the commit differs from them, a commit
# with them takes its place. Prints the commit.
set -euo pipefail
cd "$1"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_ATTR_NOSYSTEM=1
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
find .git/hooks .git/info -type f -delete 2>/dev/null || true
if [ -n "$3" ]; then
  git apply --whitespace=nowarn "$3"
  xargs -0 -r rm -f -- <"$4"
fi
head=$(git rev-parse --verify 'HEAD^{commit}')
base=
if [ -n "$2" ]; then base=$(git rev-parse -q --verify "$2^{commit}") || base=; fi
# A replacement would be packed in place of what it replaces.
git for-each-ref --format='delete %(refname)' refs/replace | git update-ref --stdin
rm -f .git/index .git/index.lock .git/config.worktree
printf "$config" >.git/config
mkdir -p .git/info
# Bytes as they are: no ends of lines, filters and encodings.
attributes='* -text !eol -filter -ident !working-tree-encoding !diff\n'
printf "$attributes" >.git/info/attributes
git read-tree "$head"
# Large files are no source code: they stay out, unless they are the repository's own.
find . -path ./.git -prune -o -type f -size "+$5k" -print0 |
  sed -z 's/[][*?\\!# ]/\\&/g; s/^\.//' | tr '\0' '\n' >.git/info/exclude
# A file that can't be read is left out, as it is when the change is taken.
git -c advice.addEmbeddedRepo=false add -A --ignore-errors 2>/dev/null || true
# A repository in a folder counts as plain files, unless it is a submodule of the commit.
find . -mindepth 2 -name .git -prune -printf '%P\0' | while IFS= read -r -d '' inner; do
  inner=${inner%/.git}
  if git ls-tree "$head" -- "$inner" | grep -q '^160000'; then continue; fi
  git update-index --force-remove -- "$inner"
  { git -C "$inner" ls-files -z -co --exclude-standard 2>/dev/null || true; } |
    sed -z "s|^|${inner//[\\&|]/\\&}/|" | git update-index --add --remove -z --stdin 2>/dev/null || true
done
if ! git diff-index --cached --quiet --ignore-submodules=none "$head"; then
  date=$(git show -s --format=%ad --date=raw "$head")
  head=$(GIT_AUTHOR_DATE=$date GIT_COMMITTER_DATE=$date git "${identity[@]}" commit-tree -m base "$(git write-tree)")
fi
keep=("$head")
if [ -n "$base" ] && [ "$base" != "$head" ]; then keep+=("$base"); fi
pack=$(git rev-list --objects --no-walk "${keep[@]}" | git pack-objects -q .git/objects/pack/pack)
find .git \( -type f -o -type l \) ! -path ".git/objects/pack/pack-$pack.*" -delete
# Where a layer can't remove a folder of the layer below, its name stays, and nothing in it.
find .git -mindepth 1 -type d -empty -delete 2>/dev/null || true
mkdir -p .git/objects/info .git/refs/heads .git/info
printf "$config" >.git/config
printf "$attributes" >.git/info/attributes
printf 'ref: refs/heads/main\n' >.git/HEAD
printf '%s\n' "$head" >.git/refs/heads/main
printf '%s\n' "${keep[@]}" >.git/shallow
git read-tree "$head"
git update-index -q --refresh >/dev/null || true
printf '%s\n' "$head"
