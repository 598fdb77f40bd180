/** Protocols of NeMo Gym's agents with a resources server that the kind `http` speaks. */
export type GymAgent = "simple" | "gymnasium" | "aviary";

export type NamedAgent = {
  /** The resources server of the name; null if the row names none. */
  server: string | null;
  /** Null if the agent is none of the three: `refusal` says why. */
  protocol: GymAgent | null;
  refusal: string | null;
  /** The name itself tells the protocol, or there is no name. Otherwise the operator vouches for `simple`. */
  isSaid: boolean;
};

/** Callers ask for this service by this name, which tells nothing about the row. */
const OURS = "rolloutd";

/** `gsm8k_aviary` keeps its ending: NeMo Gym's own configurations name that server so. */
const ENDING = /_(?:simple_|gymnasium_|pivot_|tool_simulation_)?agent$/;

/** Agents that do more than call a model and a resources server. Source: `responses_api_agents` of NeMo Gym. */
const OTHERS: [names: RegExp, why: string][] = [
  [/^(?:tau2|conversational_tool_use|toolsandbox)/, "a second model plays the user there"],
  [
    /tool_simulation|_pivot_agent$|single_step_tool_use|^terminal_multi_harness|^structured_outputs_v4/,
    "its tools are compared with expected calls and never run there",
  ],
  [
    /(?:^|_)(?:anyswe|anyterminal|browsecomp|claude_code|cline|codex|critpt|cvdp|finance|harbor|hermes|kilocode|langgraph|openclaw|opencode|openhands|pi|pinchbench|prime|reflection|refinement|remote|rewoo|scicode|stirrup|vcqa|verifiers)(?:_|$)|^(?:image_tools|labbench2|mini_swe|osworld|speed_bench|swe_agents|swe_pivot)/,
    "that is a program of its own",
  ],
];

/** The agent that a row of NeMo Gym's names in `agent_ref`. */
export function gymAgentOf(reference: unknown): NamedAgent {
  const { name } = (reference ?? {}) as { name?: unknown };
  if (typeof name !== "string" || name === OURS)
    return { server: null, protocol: "simple", refusal: null, isSaid: true };
  const server = name.replace(ENDING, "");
  if (/(?:^|_)gymnasium_agent$/.test(name)) return known(server, "gymnasium");
  if (/(?:^|_)aviary_agent$/.test(name)) return known(server, "aviary");
  const why = OTHERS.find(([names]) => names.test(name))?.[1];
  if (why !== undefined) {
    const refusal = `rows of "${name}" are driven by an agent of NeMo Gym's that is not supported: ${why}`;
    return { server, protocol: null, refusal, isSaid: true };
  }
  return { ...known(server, "simple"), isSaid: /(?:^|_)simple_agent$/.test(name) };
}

function known(server: string, protocol: GymAgent): NamedAgent {
  return { server, protocol, refusal: null, isSaid: true };
}
