/**
 * Runs the Python program in `$1` apart from everything that a repository could bring. Our programs need what Python knows
 * since 3.8 and end with 8 in an older one; the tests' own may be older.
 */
export const PYTHON = `for python in /usr/bin/python3 /opt/miniconda3/bin/python3 python3; do
  command -v "$python" >/dev/null || continue
  "$python" -I -S -c "$1"; code=$?
  [ $code -eq 8 ] || exit $code
done
exit 8`;
