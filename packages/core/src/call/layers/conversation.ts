import { type Eventual, made$, thenMap } from '../../flow/contained.js';
import { repaired } from '../../seams/repaired.js';
import type { Call } from '../../seams/call.js';
import type { Answer, Layer, Context } from '../../seams/layer.js';
import { trusted } from '../../seams/through.js';
import type { StepForm } from '../../step.js';
import {
  fingerprintsOf,
  toolChanges,
  type ToolFingerprints,
} from '../../tools/tool-fingerprints.js';
import type { ToolkitCell } from '../../tools/toolkit.js';
import { fatal, MillraceError, misuse } from '../../values/errors.js';
import { isRecord } from '../../values/json.js';
import { noMemory } from '../../values/memory.js';
import { type ToolMessage, withPlainResults } from '../../values/message.js';
import type { CallInfo, Reply } from '../../values/reply.js';
import {
  hasFields,
  isArrayOf,
  isMessage,
  isNumeric,
  isOptional,
  isString,
} from '../../values/shape.js';
import { type Instructions, instructionsOf, resolved } from '../instructions.js';
import type { Observable } from 'rxjs';
import { layerPlaces } from '../../seams/layer-places.js';

/** Opens a call without a history. Layers of the same name replace it. */
export const conversationLayer: Layer = trusted({
  name: 'conversation',
  priority: layerPlaces.conversation,
  single: true,
  call: (context) => (next) => (call) => {
    if (call.memory !== noMemory) throw misuse("A memory needs the layer 'conversation'.");
    const nothing = (willRun: boolean): Conversation => {
      const awaited = willRun ? splitInput(call.input).results?.content[0] : undefined;
      if (awaited !== undefined) throw notAwaited(awaited.toolCallId, []);
      return { history: repaired(call.history, context), late: call.late };
    };
    return loadConversation$(call, context, nothing, next);
  },
});

/** The initial state of a call, which is recorded for a resume. */
interface Opening extends Conversation, Pick<Call, 'instructions' | 'createdAt'> {
  /** A layer cut the step: the history is unknown, so the call must not run. */
  readonly isCut?: true;
}

/** The earlier conversation, and the part that memory does not have yet. */
export type Conversation = Pick<Call, 'after' | 'history' | 'late'>;

/** Opens a call: sets its history, instructions and start. A vetoed or interrupted call takes no results. */
export const loadConversation$ = (
  call: Call,
  context: Pick<Context, 'info' | 'interruption' | 'local' | 'perform' | 'scheduler'>,
  load: (willRun: boolean) => Eventual<Conversation>,
  next: Answer,
): Observable<Reply> => {
  const { info, interruption, local, perform, scheduler } = context;
  const willRun = call.status === 'prepared' && interruption.current === undefined;
  const { own } = local(instructionsOf);
  const openedBy$ = (load: () => Eventual<Conversation>, isCut = false): Observable<Opening> =>
    made$(() => {
      const loaded = load();
      const base = { instructions: resolved(own, info), createdAt: scheduler.now() };
      return made$(() => loaded).pipe(
        thenMap((it) => ({ ...base, ...it, ...(isCut && { isCut }) })),
      );
    });
  return perform<Opening>({
    kind: 'open',
    id: 'open',
    input: call.input,
    run: () => openedBy$(() => load(willRun)),
    cut: () => openedBy$(() => ({ history: [], late: call.late }), true),
    form: openingForm(info, own, call.toolkit),
  }).pipe(
    thenMap(({ isCut = false, ...opening }) => {
      const isOver = isCut || interruption.current !== undefined;
      const status = call.status === 'prepared' && isOver ? 'interrupted' : call.status;
      return next({ ...call, ...opening, input: splitInput(call.input).input, status });
    }),
  );
};

/** Results for earlier tool calls come first, in their own message. */
export const splitInput = (
  messages: Call['input'],
): { readonly results: ToolMessage | undefined; readonly input: Call['input'] } => {
  const [first, ...others] = messages;
  return first?.role === 'tool'
    ? { results: first, input: others }
    : { results: undefined, input: messages };
};

/** The recorded form of an opening, with the name of the agent: sub-agents have no other record. */
const openingForm = (
  call: CallInfo,
  instructions: Instructions | undefined,
  toolkit: ToolkitCell,
): StepForm<Opening> => ({
  write: ({ history, late, ...opening }) => ({
    ...opening,
    agent: call.agent.at(-1),
    tools: fingerprintsOf(toolkit.current),
    history: withPlainResults(history),
    late: withPlainResults(late),
  }),
  isWritten: (written) =>
    hasFields(written, {
      history: isArrayOf(isMessage),
      late: isArrayOf(isMessage),
      instructions: isOptional(isString),
      createdAt: isNumeric,
      agent: isOptional(isString),
      tools: isOptional((tools) => isRecord(tools) && Object.values(tools).every(isString)),
      after: isOptional((value) => value === null || isString(value)),
      isCut: isOptional((value) => value === true),
    }),
  read: (written) => {
    const { agent: name, tools: _, ...opening } = asWritten(written);
    if (name !== undefined && name !== call.agent.at(-1)) throw ofAnother(call, name);
    return { ...opening, instructions: resolved(instructions, call) };
  },
  warning: (written) => {
    const { instructions: before, tools } = asWritten(written);
    const changes = [
      ...(before === resolved(instructions, call)
        ? []
        : ['The instructions have changed since the call started.']),
      // Earlier releases did not record the tools.
      ...(tools === undefined ? [] : [toolChanges(tools, fingerprintsOf(toolkit.current)) ?? []]),
    ].flat();
    return changes.length === 0 ? undefined : changes.join(' ');
  },
});

interface WrittenOpening extends Opening {
  readonly agent?: string;
  readonly tools?: ToolFingerprints;
}

const asWritten = (written: unknown): WrittenOpening =>
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  written as WrittenOpening;

export const notAwaited = (id: string, waiting: readonly string[]): MillraceError =>
  new MillraceError(
    'invalidResume',
    `No tool call '${id}' waits for a result. Tool calls that do: ${waiting.join(', ') || 'none'}.`,
  );

const ofAnother = ({ callId, agent }: CallInfo, name: string): MillraceError =>
  fatal(
    new MillraceError(
      'invalidState',
      `The call '${callId}' was started by the agent '${name}', but '${agent.at(-1) ?? ''}' makes it now. Give parallel calls of a tool their own 'callId'.`,
    ),
  );
