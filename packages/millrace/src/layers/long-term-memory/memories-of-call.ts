import {
  catchError,
  concatMap,
  defaultIfEmpty,
  defer,
  from,
  map,
  type Observable,
  of,
  reduce,
  type SchedulerLike,
  tap,
} from 'rxjs';
import { restoreAsyncContext } from '../../flow/async-context.js';
import { entry } from '../../memories/transcript.js';
import { isBesideQuestion, type Message, textOf } from '../../values/message.js';
import type { CallInfo, EndReason, Reply, ToolRun } from '../../values/reply.js';
import type { EndedRun } from '../../run.js';
import { completeTaskName } from '../planning/synthesize.js';
import { planTools } from '../planning/plan-state.js';
import { quotedName } from '../../values/quoted-text.js';
import { type MemorySettings, originIn, type ToolSummary } from './memory-settings.js';
import { memoryToolNames } from './memory-tools.js';
import type { MemoryEntry, MemoryScope, NewMemory, RecalledMemory } from './long-term-memory.js';
import type { Aim } from './format-memories.js';
import { cutText, rankedBy, rankingRequest, rankMemories as phase } from './format-memories.js';
import { isRecord } from '../../values/json.js';
import { hasFields, isArrayOf, isNumeric, isOptional, isString } from '../../values/shape.js';
import type { Consultation, Consulted } from '../../phases/consult.js';
import type { Context } from '../../seams/layer.js';
import { messageOf } from '../../values/errors.js';
import type { Usage } from '../../values/usage.js';
import { firstInTime, recallIn$ } from './memory-access.js';

const completedReasons: readonly EndReason[] = [
  'answer',
  'toolFinal',
  'maxIterations',
  'budget',
  'truncated',
];

/** Tools without findings of their own: they manage the memory, the plan or the call. */
const ownTools: readonly string[] = [
  ...memoryToolNames,
  ...planTools,
  completeTaskName,
  'read_result',
  'manage_tools',
];

/**
 * The entries to record of a call: question and answer, and each tool call, as stored in the session's memory and
 * without recalled entries. None if the call was interrupted, stopped, rejected or suspended.
 */
export const memoriesOfCall$ = (
  call: CallInfo,
  input: readonly Message[],
  run: EndedRun | undefined,
  reply: Reply,
  summaryOf$: (toolRun: ToolRun) => Observable<ToolSummary>,
): Observable<readonly NewMemory[]> => {
  if (!completedReasons.includes(reply.reason)) return of([]);
  const { callId } = call;
  const { createdAt } = reply;
  const metadata = originIn(call);
  const answerRun = answeringRun(run);
  const ofTool = (toolRun: ToolRun, text: ToolSummary): readonly NewMemory[] => {
    const id = `${callId}/memory/${toolRun.toolCallId}`;
    const about = { ...metadata, tool: toolRun.name };
    return text === undefined || text.trim() === ''
      ? []
      : [{ id, text, kind: 'toolCall', createdAt, metadata: about }];
  };
  const isOwn = ({ name, toolCallId }: ToolRun): boolean =>
    ownTools.includes(name) || toolCallId === answerRun?.toolCallId;
  const turn = formatTurn(questionIn(call, run?.messages ?? input), textOf(reply));
  const id = `${callId}/memory/conversation`;
  const conversation: readonly NewMemory[] =
    turn === '' ? [] : [{ id, text: turn, kind: 'conversation', createdAt, metadata }];
  return from(reply.toolCalls.filter((toolRun) => !isOwn(toolRun))).pipe(
    concatMap((toolRun) => summaryOf$(toolRun).pipe(map((text) => ofTool(toolRun, text)))),
    reduce((all, more) => [...all, ...more], conversation),
  );
};

/** Summarises a tool call with the function of the settings, in their time. Errors with what that throws, or `timeout`. */
export const summarising =
  (
    { summariseTool, timeoutMs }: Pick<MemorySettings, 'summariseTool' | 'timeoutMs'>,
    scheduler: SchedulerLike,
  ) =>
  (toolRun: ToolRun): Observable<ToolSummary> =>
    defer(() => {
      const made = summariseTool === false ? undefined : summariseTool(toolRun);
      if (made === undefined || typeof made === 'string') return of(made);
      return from(made).pipe(
        restoreAsyncContext(),
        firstInTime(timeoutMs, scheduler, "'summariseTool'"),
        defaultIfEmpty(undefined),
      );
    });

const maxLength = 1_000;

const answeringRun = (run: EndedRun | undefined): ToolRun | undefined => {
  if (run?.status !== 'toolFinal') return undefined;
  const answer = textOf(run.answer).slice(0, maxLength);
  const last = run.messages.findLast(({ role }) => role === 'tool');
  return run.toolRuns.find(
    ({ toolCallId, output, isError }) =>
      last?.role === 'tool' &&
      last.content.some((result) => result.toolCallId === toolCallId) &&
      !isError &&
      answer !== '' &&
      output.startsWith(answer),
  );
};

const formatTurn = (question: string, answer: string): string =>
  [part('user', question, maxLength), part('assistant', answer, maxLength)].join('').trimEnd();

/** Indents the text, so that no line passes for a heading. */
const part = (heading: string, text: string, length: number): string =>
  text.trim() === '' ? '' : entry(heading, cutText(text, length));

/** The question of this call; if it only brings tool results, the question before. */
const questionIn = ({ callId }: CallInfo, messages: readonly Message[]): string => {
  const isOwn = ({ id }: Message): boolean => id.startsWith(`${callId}/input/`);
  const own = messages.filter((message) => message.role !== 'tool' && isOwn(message));
  const latest = own.slice(own.findLastIndex(({ role }) => role !== 'user') + 1);
  const text = latest.map(textOf).join('\n');
  if (text.trim() !== '') return text;
  const earlier = messages.findLast(
    (message) => message.role === 'user' && !isOwn(message) && !isBesideQuestion(message),
  );
  return earlier === undefined ? '' : textOf(earlier);
};

/** The default summary of a tool call: name, input, and output or error. */
export const toolSummary = ({ name, input, output, isError }: ToolRun): string =>
  [
    part(`${quotedName(name)} was called with`, JSON.stringify(input), 500),
    part(isError ? 'it failed' : 'it returned', output, maxLength),
  ]
    .join('')
    .trimEnd();

interface Search {
  readonly scope: MemoryScope;
  readonly position: string;
  readonly iteration: number;
  readonly text: () => string;
  /** Entries that the model sees already and must not be found again. */
  readonly known: readonly MemoryEntry[];
  readonly aim: () => Aim;
  readonly consult$: (consultation: Consultation) => Observable<Consulted>;
}

interface FoundMemories {
  readonly memories: readonly RecalledMemory[];
  readonly usage?: Usage;
}

type SearchContext = Pick<Context, 'info' | 'perform' | 'hooks' | 'scheduler'>;

/** Emits the memories to show, ranked by the model if set. Failures are `warning`s; an interrupt stops waiting. */
export const findMemories$ = (
  settings: MemorySettings,
  context: SearchContext,
  search: Search,
): Observable<FoundMemories> => {
  const { rank, top, candidates, memory, timeoutMs } = settings;
  const { perform, hooks, scheduler } = context;
  const { scope, position, iteration, known } = search;
  const report = (message: string): void => hooks.report(iteration, { type: 'warning', message });
  return perform<readonly RecalledMemory[]>({
    kind: 'memory',
    id: position,
    input: known,
    run: () =>
      defer(() => {
        const text = search.text();
        const limit = rank ? Math.max(top, candidates) : top;
        return text.trim() === ''
          ? of([])
          : recallIn$(
              { memory, scope, scheduler, timeoutMs },
              { text, limit: limit + known.length, report },
            ).pipe(map((found) => without(known, found).slice(0, limit)));
      }).pipe(
        catchError((error: unknown) => {
          report(
            `Recalling memories failed, so the call continues without them: ${messageOf(error)}`,
          );
          return of([]);
        }),
      ),
    cut: () => of([]),
    form: { isWritten: isArrayOf(isRecalled) },
  }).pipe(
    concatMap((found) =>
      // No ranking if all of them can be shown.
      rank && found.length > top
        ? ranked$(settings, context, search, found)
        : of({ memories: found.slice(0, top) }),
    ),
    tap(({ memories }) => {
      if (memories.length > 0) hooks.report(iteration, { type: 'recalled', memories });
    }),
  );
};

const isRecalled = (written: unknown): boolean =>
  hasFields(written, {
    id: isString,
    text: isString,
    kind: isString,
    scope: isRecord,
    createdAt: isNumeric,
    metadata: isRecord,
    score: isOptional(isNumeric),
  });

const without = (
  known: readonly MemoryEntry[],
  found: readonly RecalledMemory[],
): readonly RecalledMemory[] =>
  found.filter(
    ({ id, scope }) => !known.some((it) => it.id === id && it.scope.sessionId === scope.sessionId),
  );

const ranked$ = (
  { top }: MemorySettings,
  { info: call, hooks }: SearchContext,
  { position: at, iteration, aim, consult$ }: Search,
  found: readonly RecalledMemory[],
): Observable<FoundMemories> => {
  const position = `${at}/rank`;
  const request = rankingRequest(`${call.callId}/${position}`, found, aim(), top);
  return consult$({ phase, position, request }).pipe(
    map((consulted) => {
      const { memories, warning } = rankedBy(consulted, found, top);
      if (warning !== undefined) hooks.report(iteration, { type: 'warning', message: warning });
      return { memories, usage: consulted.usage };
    }),
  );
};
