import {
  type Input,
  type Message,
  type MessageTree,
  type MillraceError,
  suspensionsIn,
} from 'millrace';
import type { CallStore } from 'millrace/journal';
import { canonicalJson, isRecord, parsedJson, pathTo } from 'millrace/values';
import { defaultIfEmpty, defer, map, mergeMap, type Observable, of, take } from 'rxjs';
import { fieldOf, resultsIn } from '../inbound.js';
import { callOf } from './answers.js';
import { type Placing, shownPlace } from './places.js';
import type { OpenRun } from './runs.js';

/** A suspended tool call: the call that it has suspended, and its id within that. */
type Answered = readonly [callId: string, toolCallId: string];

/**
 * The suspended tool calls that an input brings results for, whether they have been answered since or not. Empty without
 * results, and if one of them was never suspended.
 */
export const answeredBy = (
  { input, shown }: Pick<Placing, 'shown'> & { readonly input: Input },
  tree: MessageTree,
  open: readonly OpenRun[],
): readonly Answered[] => {
  const brought = [...resultsIn(input)].sort();
  if (brought.length === 0) return [];
  const place = shownPlace(tree, open, shown);
  const shownRun = open.find(({ callId }) => callId === place);
  const running = shownRun ?? open.at(-1);
  const path = shownRun === undefined ? pathTo(tree, place) : [];
  const suspended = suspendingCalls(path, brought);
  const last = shown?.at(-1);
  if (last?.isOwn === true && shownRun === undefined) {
    // Such a client names the answer that has asked for its results: a later one does not take them.
    const awaited = new Set(suspensionsIn(path).map(({ toolCall }) => toolCall.id));
    if (!brought.every((id) => awaited.has(id) || suspended.get(id) === last.id)) return [];
  }
  const answered = brought.flatMap((id): readonly Answered[] => {
    // Until a call has ended, its messages are not stored.
    const callId = suspended.get(id) ?? running?.callId;
    return callId === undefined ? [] : [[callId, id]];
  });
  return answered.length < brought.length ? [] : answered;
};

/** The last call that each of these tool calls has suspended. A tool call that continues may be suspended again. */
const suspendingCalls = (
  path: readonly Message[],
  wanted: readonly string[],
): ReadonlyMap<string, string> => {
  const calls = new Map<string, string>();
  path.forEach((message, at) => {
    if (message.role !== 'tool' || message.content.every((it) => it.suspended === undefined))
      return;
    const asking = path.slice(0, at).filter(({ role }) => role === 'assistant');
    for (const { toolCall } of suspensionsIn([...asking, message])) {
      if (wanted.includes(toolCall.id)) calls.set(toolCall.id, callOf(message.id));
    }
  });
  return calls;
};

/** Emits once if a call was asked with this input, or has no record. Errors with `failure` if it was asked with another one. */
export const assertSameInput$ = (
  calls: CallStore,
  callId: string,
  input: Input,
  run: Pick<OpenRun, 'given'> | undefined,
  failure: MillraceError,
): Observable<unknown> =>
  defer(() =>
    run?.given === undefined ? recordedInput$(calls, callId, input) : of(run.given),
  ).pipe(
    map((given) => {
      if (contentsOf(given) !== contentsOf(input)) throw failure;
    }),
  );

/** The input in the first record of a call. */
const recordedInput$ = (
  { driver }: CallStore,
  callId: string,
  otherwise: Input,
): Observable<unknown> =>
  driver.read$(callId, { kind: 'step' }).pipe(
    mergeMap((records) => records),
    take(1),
    map(({ text }) => fieldOf(parsedJson(text), 'input')),
    defaultIfEmpty(otherwise),
  );

/** The results and the messages of an input, without their ids. */
const contentsOf = (input: unknown): string => {
  const parts: readonly unknown[] = Array.isArray(input) ? input : [input];
  return canonicalJson(
    parts.map((part) => {
      const content = fieldOf(part, 'content');
      if (fieldOf(part, 'role') !== 'tool' || !Array.isArray(content)) return content ?? part;
      const results = content.filter(isRecord);
      return results
        .map(({ toolCallId, content: result, isError, from }) => ({
          toolCallId,
          result,
          isError,
          from,
        }))
        .sort((a, b) => (String(a.toolCallId) < String(b.toolCallId) ? -1 : 1));
    }),
  );
};
