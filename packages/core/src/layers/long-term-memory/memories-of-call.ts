import { catchError, concatMap, defer, map, type Observable, of, tap } from 'rxjs';
import { entry } from '../../memories/transcript.js';
import { type Message, textOf } from '../../values/message.js';
import type { CallInfo, EndReason, Reply, ToolRun } from '../../values/reply.js';
import type { EndedRun } from '../../run.js';
import { completeTaskName } from '../planning/synthesize.js';
import { planTools } from '../planning/plan-state.js';
import { nameOf } from '../retrieval/quoted.js';
import { type MemorySettings, originIn } from './memory-settings.js';
import { memoryToolNames } from './memory-tools.js';
import type { MemoryEntry, MemoryScope, NewMemory, RecalledMemory } from './long-term-memory.js';
import type { Aim } from './written-memories.js';
import { cutText, rankedBy, rankingRequest, rankMemories as phase } from './written-memories.js';
import { isRecord } from '../../values/json.js';
import { hasFields, isArrayOf, isNumeric, isOptional, isString } from '../../values/shape.js';
import type { Consultation, Consulted } from '../../phases/consult.js';
import type { Context } from '../../seams/context.js';
import { messageOf } from '../../values/errors.js';
import type { Usage } from '../../values/usage.js';
import { recalled$ } from './memory-access.js';

/** Ends of which something was said and answered. */
const answered: readonly EndReason[] = [
  'answer',
  'toolFinal',
  'maxIterations',
  'budget',
  'truncated',
];

/** Tools that find nothing out: they move what is there already, or steer the call. */
const ownTools: readonly string[] = [
  ...memoryToolNames,
  ...planTools,
  completeTaskName,
  'read_result',
  'manage_tools',
];

/** What is to be remembered of a call: what was said and answered, and each run of a tool, in the form that memory has them, and nothing that was recalled. Of a call that was interrupted, stopped or refused, or that still waits, nothing is. */
export const memoriesOfCall = (
  call: CallInfo,
  input: readonly Message[],
  run: EndedRun | undefined,
  reply: Reply,
  { summariseTool }: Pick<MemorySettings, 'summariseTool'>,
): readonly NewMemory[] => {
  if (!answered.includes(reply.reason)) return [];
  const { callId } = call;
  const { createdAt } = reply;
  const metadata = originIn(call);
  const answering = answeringRun(run);
  const tools = reply.toolUses.flatMap((run): readonly NewMemory[] => {
    const isOwn = ownTools.includes(run.name) || run.toolUseId === answering?.toolUseId;
    const text = summariseTool === false || isOwn ? '' : summariseTool(run);
    const id = `${callId}/memory/${run.toolUseId}`;
    const about = { ...metadata, tool: run.name };
    return text === undefined || text.trim() === ''
      ? []
      : [{ id, text, kind: 'toolCall', createdAt, metadata: about }];
  });
  const said = turnOf(askedIn(call, run?.messages ?? input), textOf(reply));
  const id = `${callId}/memory/conversation`;
  return said === ''
    ? tools
    : [{ id, text: said, kind: 'conversation', createdAt, metadata }, ...tools];
};

/** Characters of what one side says that are remembered. */
const most = 1_000;

const answeringRun = (run: EndedRun | undefined): ToolRun | undefined => {
  if (run?.status !== 'toolFinal') return undefined;
  const answer = textOf(run.answer).slice(0, most);
  const last = run.messages.findLast(({ role }) => role === 'tool');
  return run.toolRuns.find(
    ({ toolUseId, output, isError }) =>
      last?.role === 'tool' &&
      last.content.some((result) => result.toolUseId === toolUseId) &&
      !isError &&
      answer !== '' &&
      output.startsWith(answer),
  );
};

const turnOf = (asked: string, answer: string): string =>
  [part('user', asked, most), part('assistant', answer, most)].join('').trimEnd();

/** Lines of a text stand in from the margin, so that none can pass for what another has said. */
const part = (heading: string, text: string, length: number): string =>
  text.trim() === '' ? '' : entry(heading, cutText(text, length));

/** What the user has said to this call; where it only brings results, what was asked before. */
const askedIn = ({ callId }: CallInfo, messages: readonly Message[]): string => {
  const isOwn = ({ id }: Message): boolean => id.startsWith(`${callId}/input/`);
  const own = messages.filter((message) => message.role !== 'tool' && isOwn(message));
  const said = own.slice(own.findLastIndex(({ role }) => role !== 'user') + 1);
  const text = said.map(textOf).join('\n');
  if (text.trim() !== '') return text;
  const before = messages.findLast((message) => message.role === 'user' && !isOwn(message));
  return before === undefined ? '' : textOf(before);
};

/** What is remembered of one run of a tool, unless an agent says otherwise: its name, what it was asked, and what came out or went wrong. */
export const toolSummary = ({ name, input, output, isError }: ToolRun): string =>
  [
    part(`${nameOf(name)} was asked`, JSON.stringify(input), 500),
    part(isError ? 'it failed' : 'it gave', output, most),
  ]
    .join('')
    .trimEnd();

interface Search {
  readonly scope: MemoryScope;
  /** Its place in the call. */
  readonly position: string;
  readonly iteration: number;
  /** The words that are looked for; nothing, where they are blank. */
  readonly text: () => string;
  /** What the model is shown already: it is not found again. */
  readonly known: readonly MemoryEntry[];
  /** What the memories are to help with. */
  readonly aim: () => Aim;
  /** Asks the model of the call beside its loop. */
  readonly consult$: (consultation: Consultation) => Observable<Consulted>;
}

interface Found {
  readonly memories: readonly RecalledMemory[];
  /** What it has cost to choose, where the model was asked. */
  readonly usage?: Usage;
}

type Needs = Pick<Context, 'call' | 'perform' | 'hooks' | 'scheduler'>;

/** Looks for memories, and has the model choose from them where it is to. Emits once what is to be shown, and completes; what fails is a `warning`. An interrupt ends the wait. */
export const findMemories$ = (
  settings: MemorySettings,
  context: Needs,
  search: Search,
): Observable<Found> => {
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
          : recalled$(
              { memory, scope, scheduler, timeoutMs },
              { text, limit: limit + known.length, report },
            ).pipe(map((found) => without(known, found).slice(0, limit)));
      }).pipe(
        catchError((error: unknown) => {
          report(`Nothing could be recalled, so the call goes on without: ${messageOf(error)}`);
          return of([]);
        }),
      ),
    cut: () => of([]),
    form: { isWritten: isArrayOf(isRecalled) },
  }).pipe(
    concatMap((found) =>
      // There is nothing to choose from where all can be shown.
      rank && found.length > top
        ? chosen$(settings, context, search, found)
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

const chosen$ = (
  { top }: MemorySettings,
  { call, hooks }: Needs,
  { position: at, iteration, aim, consult$ }: Search,
  found: readonly RecalledMemory[],
): Observable<Found> => {
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
