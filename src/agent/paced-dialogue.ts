import type { Message } from "../inference/engine.ts";
import type { TokenSegment } from "../trajectory/record.ts";
import { type Dialogue, diverged, type ModelTurn, type Told } from "./dialogue.ts";
import type { Pace } from "./pace.ts";
import { isSameObservation } from "./same-observation.ts";

/** A rollout's record until it was paused, for its dialogue to begin with. */
export type ToldTurns = { messages: readonly Message[]; turns: readonly Told[] };

/**
 * A dialogue that goes as far as its rollout may for now. Where the rollout has been paused before and had to leave
 * its sandbox, the model's turns until then are told from the record instead of being asked for again, while the loop
 * carries out their calls anew; so loop, tools and sandbox come to where they were. What the environment answers
 * has to be what it answered then.
 */
export class PacedDialogue implements Dialogue {
  readonly #inner: Dialogue;
  readonly #pace: Pace;
  readonly #told: ToldTurns | null;
  #turns = 0;

  /** @throws ServiceError `replay_diverged` where the record begins with another prompt */
  constructor(inner: Dialogue, pace: Pace, told: ToldTurns | null) {
    this.#inner = inner;
    this.#pace = pace;
    this.#told = told;
    for (const [index, message] of inner.messages.entries()) this.#expectSame(message, index);
  }

  get messages(): readonly Message[] {
    return this.#inner.messages;
  }

  get cutOff(): ModelTurn | null {
    return this.#inner.cutOff ?? null;
  }

  /** While the record is told its own messages are taken, so that the ids are the same as well. */
  add(...messages: Message[]): void {
    for (const message of messages) {
      this.#inner.add(this.#expectSame(message, this.#inner.messages.length));
    }
  }

  async next(turn: number, signal: AbortSignal): Promise<ModelTurn> {
    const told = this.#told?.turns[this.#turns];
    if (told) {
      this.#turns++;
      return await this.#inner.recall(told, signal);
    }
    await this.#pace.mayGo(signal);
    const reply = await this.#inner.next(turn, signal);
    this.#pace.spend(reply);
    return reply;
  }

  recall(told: Told, signal: AbortSignal): Promise<ModelTurn> {
    return this.#inner.recall(told, signal);
  }

  segments(): TokenSegment[] | null {
    return this.#inner.segments();
  }

  /** The record's message in this place, where the record is still told. */
  #expectSame(message: Message, index: number): Message {
    const recorded = this.#told?.messages[index];
    if (!recorded || this.#told?.turns.length === 0) return message;
    if (isSameMessage(message, recorded)) return recorded;
    throw diverged(`message ${index} is not what it was`);
  }
}

function isSameMessage(now: Message, then: Message): boolean {
  const { content, ...rest } = now;
  const { content: contentThen, ...restThen } = then;
  return Bun.deepEquals(rest, restThen) && isSameObservation(String(content), String(contentThen));
}
