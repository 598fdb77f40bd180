import type { Dialect, FoundCall } from "./dialect.ts";
import { callOfJson, jsonEnds } from "./json-call.ts";
import type { MarkedText } from "./marked-text.ts";

/** What stands before a call's JSON, and behind it; null where nothing does. */
export type Frame = { open: string; close: string | null };

/**
 * Calls as JSON within markers: one object, a list of them, or several one after another. Each is `{"name": …,
 * "arguments": {…}}`, with other words for both in some families.
 */
export function framedJson(...frames: Frame[]): Dialect {
  return (source, from) => {
    const found: FoundCall[] = [];
    const endOfJson = jsonEnds(source.text);
    let next = nextFrame(source, frames, from);
    while (next) {
      const calls = readFrame(source, next, endOfJson);
      found.push(...calls);
      next = nextFrame(source, frames, (calls.at(-1) as FoundCall).end);
    }
    return found;
  };
}

type Opened = { frame: Frame; start: number };

function nextFrame(source: MarkedText, frames: Frame[], from: number): Opened | null {
  let first: Opened | null = null;
  for (const frame of frames) {
    const start = source.indexOf(frame.open, from);
    if (start >= 0 && (first === null || start < first.start)) first = { frame, start };
  }
  return first;
}

type EndOfJson = (start: number) => number;

/** At least one call, of which the first begins and the last ends with the frame. */
function readFrame(source: MarkedText, { frame, start }: Opened, ends: EndOfJson): FoundCall[] {
  const { text } = source;
  const { open, close } = frame;
  const calls: FoundCall[] = [];
  const body = source.skipSpace(start + open.length);
  const isList = text[body] === "[";
  let at = isList ? source.skipSpace(body + 1) : body;
  while (text[at] === "{") {
    const json = ends(at);
    if (json < 0) {
      const end = endOfBroken(source, frame, at);
      const broken = callOfJson(text.slice(at, end).trim());
      const behind = endBehind(source, close, end);
      const status = behind > end && broken.status !== "ok" ? broken.status : "unclosed";
      calls.push({ ...broken, status, raw: text.slice(at, end), start: at, end });
      return joined(source, calls, start, behind);
    }
    const raw = text.slice(at, json);
    calls.push({ ...callOfJson(raw), raw, start: at, end: json });
    at = source.skipSpace(json);
    if (text[at] === "," || text[at] === ";") at = source.skipSpace(at + 1);
    // Without an end of its own, a frame holds one object, and prose may follow it.
    else if (close === null && !isList) return joined(source, calls, start, json);
  }
  const listed = !isList || text[at] === "]";
  if (isList && text[at] === "]") at = source.skipSpace(at + 1);
  const isClosed = close !== null && source.isAt(close, at);
  // A list that is whole may be ended by the token that ends the turn.
  const closed = close === null || isClosed || (isList && at >= source.length);
  if (listed && closed && (calls.length > 0 || isList)) {
    const end = isClosed ? at + (close?.length ?? 0) : at;
    return calls.length > 0 ? joined(source, calls, start, end) : [emptyList(source, start, end)];
  }
  const end = endOfBroken(source, frame, at);
  const behind = endBehind(source, close, end);
  const last = calls.at(-1);
  const isCut = end >= source.length || source.isAt(open, end);
  if (last) {
    if (last.status === "ok") last.status = isCut && at >= end ? "unclosed" : "malformed";
    return joined(source, calls, start, behind);
  }
  const given = text.slice(body, end).trim();
  const status = behind > end ? "invalid_json" : "unclosed";
  const raw = text.slice(start, behind);
  return [{ status, name: null, arguments: given, id: null, raw, start, end: behind }];
}

/** `[]`: the model opened its calls and made none, which it is told. */
function emptyList(source: MarkedText, start: number, end: number): FoundCall {
  const raw = source.text.slice(start, end);
  return { status: "malformed", name: null, arguments: raw, id: null, raw, start, end };
}

/** A broken call goes as far as its closing marker, the next frame, or the end. */
function endOfBroken(source: MarkedText, { open, close }: Frame, from: number): number {
  const ends = [close === null ? -1 : source.indexOf(close, from), source.indexOf(open, from)];
  return Math.min(source.length, ...ends.filter((at) => at >= 0));
}

function endBehind(source: MarkedText, close: string | null, at: number): number {
  return close !== null && source.isAt(close, at) ? at + close.length : at;
}

function joined(source: MarkedText, calls: FoundCall[], start: number, end: number): FoundCall[] {
  const [first] = calls;
  const last = calls.at(-1);
  if (first) first.start = start;
  if (last) last.end = Math.max(end, last.end);
  for (const call of calls) call.raw = source.text.slice(call.start, call.end);
  return calls;
}
