/**
 * What bash reads when it starts. Each command's line sets a nonce, and `__rollout_end` prints it back with status,
 * options, folder and interpreter: at the end of the command, or at the next prompt where the command was cut short
 * (C-c, an error that discards the line).
 *
 * The table of hashed commands tells what `python` is without a process, and forgets it again: it may change. That takes
 * as long as all the rest, so `__rollout_find` also writes a test, `__rollout_same`, of whether it would find the same again.
 *
 * The marker goes to where the shell reads from, the terminal, so that `exec >file` does not swallow it. Its fields end
 * with zero bytes, which no folder's name has. The nonce is forgotten once printed and never exported.
 *
 * An `echo` waits for all that stands before the `printf`, and the next command for what stands behind it: no process,
 * no file, no change of the locale, as few statements as can be, and nothing at the prompt.
 */
export const SHELL_RC = `PS1= PS2= HISTSIZE=0
unset HISTFILE
set +o history
__rollout_nonce= __rollout_status= __rollout_text= __rollout_result= __rollout_python= __rollout_path=
__rollout_prompt='{ __rollout_end; } 2>/dev/null'
__rollout_find() {
  __rollout_same() { return 1; }
  __rollout_python= __rollout_path=\${PATH-}
  if hash python; then __rollout_python=\${BASH_CMDS[python]}; hash -d python; fi
  local __rollout_test='[[ \${PATH-} == "$__rollout_path"' __rollout_rest=$__rollout_path: __rollout_file
  while [[ $__rollout_rest ]]; do
    __rollout_file=\${__rollout_rest%%:*}/python __rollout_rest=\${__rollout_rest#*:}
    [[ $__rollout_file == /*/python ]] || return 0 # It depends on the folder.
    printf -v __rollout_file %q "$__rollout_file"
    if [[ $__rollout_file == "$__rollout_python" ]]; then
      __rollout_test+=" && -f $__rollout_file && -x $__rollout_file"
      break
    fi
    __rollout_test+=" && ! -e $__rollout_file"
  done
  eval "__rollout_same() { $__rollout_test ]]; }"
}
__rollout_end() {
  __rollout_status=\${__rollout_result:-$?}
  if [[ \${__rollout_nonce-} ]]; then
    __rollout_same || __rollout_find
    printf '\\033]777;%s;%d%s\\0%s\\0%s\\0' \\
      "$__rollout_nonce" "$__rollout_status" "$-" "\${PWD-}" "$__rollout_python" >&0
  fi
  __rollout_nonce= __rollout_result= PROMPT_COMMAND= PS1= PS2=
}
__rollout_begin() {
  [[ $# = 1 ]] || IFS= read -r -d '' __rollout_text <"$2"
  return "$1"
}
PROMPT_COMMAND=$__rollout_prompt
__rollout_nonce=$ROLLOUT_NONCE
__rollout_same() { return 1; }
unset ROLLOUT_NONCE
`;
