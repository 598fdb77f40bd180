# extract.sh FOLDER BASE OUT MAX_FILE_KIB: writes the difference between BASE and the working tree to OUT as a patch of
# text files. The agent may have changed everything here, git included: what this writes is taken as the
# agent's own claim. What is reset below keeps honest work whole: its git settings, its index, a repository in a folder.
set -euo pipefail
cd "$1"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_LITERAL_PATHSPECS=1 GIT_ATTR_NOSYSTEM=1
# Files that the agent has added although a rule ignores them: only its index and its commits tell.
forced=$(mktemp) && trap 'rm -f "$forced"' EXIT
{ git ls-files -z && git ls-tree -r -z --name-only HEAD; } >"$forced" 2>/dev/null || true
# In the layer below a folder can't be removed, but what is in it can.
find . -mindepth 2 -name .git -prune -exec sh -c 'rm -rf "$@" 2>/dev/null || find "$@" -type f -delete' sh {} +
find .git/hooks .git/info .git/refs/replace -type f -delete 2>/dev/null || true
rm -f .git/index .git/index.lock .git/config.worktree
mkdir -p .git/info
printf '[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tquotePath = false\n' >.git/config
# Bytes as they are: no ends of lines, filters and encodings.
printf '* -text !eol -filter -ident !working-tree-encoding !diff\n' >.git/info/attributes
git read-tree "$2"
# Large files are no source code: they stay out, unless they are the repository's own.
find . -path ./.git -prune -o -type f -size "+$4k" -print0 |
  sed -z 's/[][*?\\!# ]/\\&/g; s/^\.//' | tr '\0' '\n' >.git/info/exclude
git -c advice.addEmbeddedRepo=false add -A --ignore-errors 2>/dev/null || true
git ls-files -z | LC_ALL=C sort -z | LC_ALL=C comm -z -13 - <(LC_ALL=C sort -zu "$forced") | while IFS= read -r -d '' path; do
  if [ -f "$path" ] && [ ! -L "$path" ] && [ "$(stat -c %s -- "$path")" -le "$(($4 * 1024))" ]; then printf '%s\0' "$path"; fi
done | git add -f --ignore-errors --pathspec-from-file=- --pathspec-file-nul 2>/dev/null || true
git diff --cached --numstat -z --no-renames --no-ext-diff --no-textconv "$2" | while IFS=$'\t' read -r -d '' added deleted path; do
  if [ "$added" = - ] && [ "$deleted" = - ]; then
    printf 'binary %s\n' "$path" >&2
    git reset -q "$2" -- "$path" 2>/dev/null || git rm -q --cached -- "$path"
  fi
done
git diff --cached --no-color --no-ext-diff --no-textconv --no-renames --ignore-submodules=all --full-index \
  --src-prefix=a/ --dst-prefix=b/ "$2" >"$3"
