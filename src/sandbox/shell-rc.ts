/**
 * What bash reads when it starts. `__rollout_begin` takes the nonce that is typed with each command, and
 * `__rollout_end` prints it back with status, folder and interpreter: at the end of the command, or at the next prompt
 * where the command was cut short (C-c, an error that discards the line). The table of
 * hashed commands tells what `python` is without a process, and forgets it again: it may change.
 *
 * The marker goes to where the shell reads from, the terminal, so that `exec >file` does not swallow it. Its fields end
 * with zero bytes, which no folder's name has. The nonce is forgotten once printed and never exported.
 *
 * An `echo` waits for all of this, and so does the next command for what the prompt does: no process, no file, no
 * change of the locale, and nothing at the prompt once the marker is out.
 */
export const SHELL_RC = `PS1= PS2= HISTSIZE=0
unset HISTFILE
set +o history
__rollout_nonce= __rollout_status=0 __rollout_text= __rollout_result=
__rollout_prompt='{ __rollout_end; } 2>/dev/null'
__rollout_end() {
  local status=\${__rollout_result:-$?} cwd=\${PWD-}
  PS1= PS2=
  if [ -n "\${__rollout_nonce-}" ]; then
    local python=
    if hash python; then python=\${BASH_CMDS[python]}; hash -d python; fi
    printf '\\033]777;%s;%d\\0%s\\0%s\\0' "$__rollout_nonce" "$status" "$cwd" "$python" >&0
    __rollout_nonce= __rollout_status=$status PROMPT_COMMAND=
  fi
  return 0
}
__rollout_begin() {
  PROMPT_COMMAND=$__rollout_prompt
  __rollout_nonce=$1 __rollout_result=
  if [ $# = 2 ]; then __rollout_text=$2; else IFS= read -r -d '' __rollout_text <"$3"; fi
  return "$__rollout_status"
}
PROMPT_COMMAND=$__rollout_prompt
__rollout_nonce=$ROLLOUT_NONCE
unset ROLLOUT_NONCE
`;
