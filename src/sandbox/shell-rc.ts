/**
 * What bash reads when it starts. `__rollout_begin` takes the nonce that is typed with each command, and
 * `__rollout_end` prints it back with status, folder and interpreter: at the end of the command, or at the next prompt
 * where the command was cut short (C-c, an error that discards the line). The table of
 * hashed commands tells what `python` is without a process, and forgets it again: it may change.
 *
 * The marker goes to the terminal itself, so that `exec >file` does not swallow it, and says how long the
 * folder's name is, which may hold anything. The nonce is forgotten once printed and never exported.
 */
export const SHELL_RC = `PS1= PS2= HISTSIZE=0
unset HISTFILE
set +o history
__rollout_nonce= __rollout_status=0 __rollout_text=
__rollout_prompt='{ __rollout_end; } 2>/dev/null'
__rollout_end() {
  local status=$? cwd=\${PWD-}
  PS1= PS2=
  if [ -n "\${__rollout_nonce-}" ]; then
    local LC_ALL=C
    hash python || :
    local python=\${BASH_CMDS[python]-}
    hash -d python || :
    printf '\\033]777;%s;%d;%d;%s;%s\\a' "$__rollout_nonce" "$status" "\${#cwd}" "$cwd" "$python" >/dev/tty
    __rollout_nonce= __rollout_status=$status
  fi
  return 0
}
__rollout_begin() {
  PROMPT_COMMAND=$__rollout_prompt
  __rollout_nonce=$1
  IFS= read -r -d '' __rollout_text <"$2"
  return "$__rollout_status"
}
PROMPT_COMMAND=$__rollout_prompt
__rollout_nonce=$ROLLOUT_NONCE
unset ROLLOUT_NONCE
`;
