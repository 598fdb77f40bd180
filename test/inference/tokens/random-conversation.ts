import type { Message } from "../../../src/inference/engine.ts";
import { calls, result, says, system, user } from "./models.ts";
import { randomOf } from "./simulated-engine.ts";

/** Whatever an agent and its environment may say, in one to four questions. */
export function randomConversation(seed: number): Message[] {
  const next = randomOf(seed);
  const chars = "ab c\n\n<>{}\"'\\é日🤖0123 \t";
  const words = () =>
    Array.from({ length: 1 + next() * 30 }, () => [...chars][Math.floor(next() * 24)] ?? "").join(
      "",
    );
  const messages: Message[] = next() < 0.5 ? [system(words())] : [];
  for (let turn = 0; turn < 1 + next() * 3; turn++) {
    messages.push(user(words()));
    for (let round = 0; round < Math.floor(next() * 4); round++) {
      const ids = Array.from(
        { length: 1 + next() * 3 },
        (_, index) => `id${turn}${round}${index}0000`,
      );
      const reasoning = next() < 0.5 ? `x${words()}x` : undefined;
      messages.push(calls("", ids, reasoning), ...ids.map((id) => result(id, words())));
    }
    messages.push(says(`a${words()}z`));
  }
  return messages;
}
