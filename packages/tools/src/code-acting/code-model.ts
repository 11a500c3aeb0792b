import { type Model, type ModelChunk, textOf, type ToolMessage } from 'millrace';
import { isRecord, parsedJson } from 'millrace/values';
import { defer, filter, from, merge, mergeMap, type Observable, scan, take, tap } from 'rxjs';
import { notInstalled, type Outcome, tooSlow$ } from '../javascript/sandbox.js';
import type { SandboxCall, SandboxMessage, SandboxResults } from '../javascript/sandbox.worker.js';

interface CodeModelOptions {
  readonly name: string;
  /** The tool call that runs the code. Those of the code have ids below its id. */
  readonly toolCallId: string;
  readonly timeoutMs: number;
  /** The results so far, by round, as the tools returned them: those of a request have notes for a model. */
  readonly rounds: () => readonly ToolMessage[];
  /** Passes results to the code. Ignored unless the code waits for that round. */
  readonly answer: (results: SandboxResults) => void;
}

interface Progress {
  readonly logged: string;
  readonly message: SandboxMessage;
}

/**
 * Code as the model of a call: the tool calls that it waits for are a message, its end is the answer. A request comes
 * after a number of rounds, so in a resumed call, whose first messages are recorded, the code catches up with them.
 */
export const codeModel = (
  message$: Observable<SandboxMessage>,
  { name, toolCallId, timeoutMs, rounds, answer }: CodeModelOptions,
): Model => ({
  name,
  stream$: (_request, { scheduler }) =>
    defer(() => {
      const answered = rounds();
      return merge(message$, tooSlow$(timeoutMs, scheduler)).pipe(
        scan(advance, { logged: '', message: { type: 'log', text: '' } }),
        tap(({ message }) => {
          if (message.type === 'notInstalled') throw notInstalled('codeActing()');
          if (message.type !== 'calls') return;
          const results = answered[message.round];
          if (results !== undefined) answer(resultsOf(message, results, toolCallId));
        }),
        filter(({ message }) => isDue(message, answered.length)),
        take(1),
        mergeMap(({ message, logged }) => from(chunksOf(message, logged, toolCallId))),
      );
    }),
});

const advance = ({ logged }: Progress, message: SandboxMessage): Progress => ({
  logged: message.type === 'log' ? logged + message.text : logged,
  message,
});

const isDue = (message: SandboxMessage, round: number): boolean =>
  message.type === 'calls' ? message.round === round : message.type !== 'log';

const idOf = (toolCallId: string, { id }: Pick<SandboxCall, 'id'>): string => `${toolCallId}.${id}`;

const resultsOf = (
  { round, calls }: Extract<SandboxMessage, { type: 'calls' }>,
  { content }: ToolMessage,
  toolCallId: string,
): SandboxResults => ({
  round,
  results: calls.map(({ id }) => {
    const result = content.find((it) => it.toolCallId === idOf(toolCallId, { id }));
    return result === undefined
      ? { id, text: 'The code ran differently when its call was resumed.', isError: true }
      : { id, text: textOf(result), isError: result.isError };
  }),
});

const chunksOf = (
  message: SandboxMessage,
  logged: string,
  toolCallId: string,
): readonly ModelChunk[] => {
  const finish = { type: 'finish', finish: 'stop' } as const;
  switch (message.type) {
    case 'calls':
      return [
        ...message.calls.map((call, index): ModelChunk => ({
          type: 'toolCall',
          index,
          id: idOf(toolCallId, call),
          name: call.name,
          json: call.input,
        })),
        finish,
      ];
    case 'result':
    case 'failure': {
      const outcome: Outcome = { type: message.type, text: message.text, logged };
      return [{ type: 'text', text: JSON.stringify(outcome) }, finish];
    }
    case 'notInstalled':
    case 'log':
      return [];
  }
};

/** Reads the answer of a code model. */
export const outcomeIn = (answer: string): Outcome | undefined => {
  const outcome = parsedJson(answer);
  if (!isRecord(outcome)) return undefined;
  const { type, text, logged } = outcome;
  const isOutcome = type === 'result' || type === 'failure';
  return isOutcome && typeof text === 'string' && typeof logged === 'string'
    ? { type, text, logged }
    : undefined;
};
