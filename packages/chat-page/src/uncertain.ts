// Tool calls that were running when their process ended: what the page shows of them, and the user's word for their outcomes.
import {
  type Message,
  MillraceError,
  suspensionsIn,
  textOf,
  toolCallsOf,
  toolOutput,
  type ToolResultBlock,
  toolResults,
} from 'millrace';
import { isUncertain } from 'millrace/journal';
import { isRecord } from 'millrace/values';
import type { Route, Visit } from '@millrace/server/chat';
import { concatMap, map, type Observable } from 'rxjs';

/** Who says how an uncertain tool call has ended. */
export type UncertainBy = 'user' | 'program';

/** `POST …/uncertain` takes the outcomes of all uncertain tool calls of a conversation, by their ids in the page. */
export const uncertainRoute = (api: string): Route => ({
  method: 'POST',
  path: `${api}/chat/:id/uncertain`,
  answer$: settled$,
});

interface Uncertain {
  readonly localId: string;
  readonly toolCallId: string;
  readonly toolName: string;
  /** The user's word, once it has come. */
  readonly outcome?: Outcome;
}

/** Those of sub-agents are not among them: their models read that the outcome is unknown. */
const uncertainIn = (messages: readonly Message[]): readonly Uncertain[] =>
  suspensionsIn(messages)
    .filter(isUncertain)
    .flatMap(({ toolCall: { id: localId, name: toolName } }) => {
      const message = messages.findLast(
        (it) => it.role === 'assistant' && toolCallsOf(it).some(({ id }) => id === localId),
      );
      if (message === undefined) return [];
      const toolCallId = `${message.id}/${localId}`;
      return [{ localId, toolCallId, toolName }];
    });

/** Those that had the user's word. A result counts only if the journal has suspended its tool call: no tool gives itself such a result. */
export const settledIn = (messages: readonly Message[]): readonly Uncertain[] => {
  const calls = new Map<string, Uncertain>();
  const waiting = new Map<string, Uncertain>();
  const settled: Uncertain[] = [];
  for (const message of messages) {
    if (message.role === 'assistant') {
      for (const { id: localId, name: toolName } of toolCallsOf(message)) {
        waiting.delete(localId);
        calls.set(localId, { localId, toolName, toolCallId: `${message.id}/${localId}` });
      }
    } else if (message.role === 'tool') {
      for (const result of message.content) {
        const { toolCallId: localId, suspended } = result;
        const call = calls.get(localId);
        const outcome = waiting.has(localId) ? outcomeOf(result) : undefined;
        if (call !== undefined && outcome !== undefined) settled.push({ ...call, outcome });
        if (call !== undefined && suspended !== undefined && isUncertain(suspended)) {
          waiting.set(localId, call);
        } else waiting.delete(localId);
      }
    }
  }
  return settled;
};

const outcomeOf = (result: ToolResultBlock): Outcome | undefined => {
  const text = result.from === undefined ? textOf(result) : '';
  return Object.keys(outcomes)
    .filter(isOutcome)
    .find((it) => outcomes[it] === text);
};

/** The chunk that shows it. */
export const chunkOf = (data: Uncertain): object => ({
  type: 'data-uncertain',
  id: data.toolCallId,
  data,
});

type Outcome = keyof typeof outcomes;

/** The results that the model reads. Only these: the user cannot make up the output of a tool. */
const outcomes = {
  again:
    'The user has found out that this has not happened. Call the tool again, with the same arguments.',
  happened: 'The user has found out that this has happened. Do not call the tool again for it.',
  failed:
    'The user has found out that this has failed. Do not call the tool again unless the user asks for it.',
};

const isOutcome = (value: unknown): value is Outcome =>
  typeof value === 'string' && Object.hasOwn(outcomes, value);

/** A tool call that has to run again has not failed. */
const resultFor = (outcome: Outcome): unknown =>
  toolOutput({ content: outcomes[outcome], isError: outcome === 'failed' });

const settled$ = ({ chat, body$, ids: { id = '' } }: Visit): Observable<Response> => {
  const { history$, start$ } = chat(id);
  return body$.pipe(
    map(outcomesIn),
    concatMap((given) =>
      history$().pipe(
        concatMap(({ messages, running }) =>
          start$({
            // At the head: a result that came before counts.
            input: toolResults(resultsOf(given, messages, running !== undefined)),
            byProgram: true,
            continues: true,
            // Another request may have come first: the outcome of both could run a tool twice.
            check: (path, isRunning) => void resultsOf(given, path, isRunning),
          }),
        ),
      ),
    ),
    map((callId) => Response.json({ callId })),
  );
};

type Outcomes = ReadonlyMap<string, Outcome>;

const outcomesIn = (body: unknown): Outcomes => {
  const given =
    isRecord(body) && isRecord(body['outcomes']) ? Object.entries(body['outcomes']) : [];
  const known = given.flatMap(([toolCallId, outcome]) =>
    isOutcome(outcome) ? [[toolCallId, outcome] as const] : [],
  );
  if (known.length === 0 || known.length < given.length) {
    throw badRequest(
      "'outcomes' must have again, happened or failed for each tool call, by its id",
    );
  }
  return new Map(known);
};

/** The results for the tool calls that wait. Throws a 409 if others are given, or not all. */
const resultsOf = (
  given: Outcomes,
  messages: readonly Message[],
  isRunning: boolean,
): Readonly<Record<string, unknown>> => {
  if (isRunning) throw conflict('An answer is running. Wait until it is complete.');
  const waiting = uncertainIn(messages);
  const ids = new Set(waiting.map(({ toolCallId }) => toolCallId));
  if (![...given.keys()].every((id) => ids.has(id))) {
    throw conflict('This tool call no longer waits for its outcome. Load the conversation again.');
  }
  const missing = waiting.filter(({ toolCallId }) => !given.has(toolCallId));
  if (missing.length > 0) {
    const names = missing.map(({ toolName }) => toolName).join(', ');
    throw conflict(`Say the outcomes of all tool calls together. Missing: ${names}.`);
  }
  return Object.fromEntries(
    waiting.flatMap(({ localId, toolCallId }) => {
      const outcome = given.get(toolCallId);
      return outcome === undefined ? [] : [[localId, resultFor(outcome)]];
    }),
  );
};

/** The error for a malformed request of the page. Its message must not quote the request. */
export const badRequest = (problem: string, status = 400): MillraceError => {
  const message = `The request is not valid: ${problem}.`;
  return new MillraceError('invalidRequest', message, { status, userMessage: message });
};

const conflict = (message: string): MillraceError =>
  new MillraceError('invalidResume', message, { status: 409, userMessage: message });
