# Makes the repository "tally" in $1, with a history that holds the answer in every place where git keeps something.
# Prints the commit that the task begins at.
set -euo pipefail
mkdir -p "$1" && cd "$1"
export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z'
git -c init.defaultBranch=main init -q
git config user.email a@example.org && git config user.name a
mkdir -p tally tests docs
cat >tally/__init__.py <<'END'
from .sums import mean, median, total

__all__ = ["mean", "median", "total"]
END
cat >tally/sums.py <<'END'
def total(numbers):
    return sum(numbers)


def mean(numbers):
    return total(numbers) / len(numbers)
END
printf 'from .sums import mean, total\n\n__all__ = ["mean", "total"]\n' >tally/__init__.py
printf 'from tally import mean, total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n\n\ndef test_mean():\n    assert mean([1, 2]) == 1.5\n' >tests/test_sums.py
printf '[tool:pytest]\ntestpaths = tests\n' >setup.cfg
printf 'build/\n*.pyc\n__pycache__/\n' >.gitignore
printf '\0\1\2binary' >docs/logo.bin
printf 'tally adds numbers\n' >README.md
git add -A && git commit -qm 'Add totals and means' && git tag v1
cat >>tally/sums.py <<'END'


def median(numbers):
    ordered = sorted(numbers)
    return ordered[len(ordered) // 2]
END
printf 'from .sums import mean, median, total\n\n__all__ = ["mean", "median", "total"]\n' >tally/__init__.py
cat >>tests/test_sums.py <<'END'


def test_median_of_odd_count():
    from tally import median

    assert median([3, 1, 2]) == 2
END
git add -A && git commit -qm 'Add medians'
base=$(git rev-parse HEAD)
# The future, in a branch, a tag, a remote, a stash, a worktree, the reflog, packs, and objects that nothing names.
fix() {
  sed -i 's|^    return ordered\[len(ordered) // 2\]$|    half = len(ordered) // 2\n    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2|' tally/sums.py
}
fix && git commit -qam 'Mend the median of an even count' && git tag -a v2 -m v2
future=$(git rev-parse HEAD)
git branch future && git update-ref refs/remotes/origin/main "$future" && git update-ref refs/notes/fix "$future"
git remote add origin https://example.org/tally.git
git worktree add -q .git/answer "$future" 2>/dev/null && rm -rf .git/answer
git gc -q
git reset -q --hard "$base" && fix && printf '# loose\n' >>tally/sums.py && git stash -q
fix && printf '# dropped\n' >>tally/sums.py && git commit -qam dropped && git reset -q --hard "$base"
printf '%s\n' "$future" >.git/FETCH_HEAD
printf '%s\n' "$base"
