import {
  type ApprovalRequest,
  type Approver,
  contextKey,
  type Layer,
  MillraceError,
  type ToolCallBlock,
  type Verdict,
} from 'millrace';
import { isRecord, isSameInput, parsedJson } from 'millrace/values';
import {
  concatMap,
  defer,
  filter,
  first,
  map,
  merge,
  mergeMap,
  type Observable,
  ReplaySubject,
  share,
  timer,
} from 'rxjs';
import type { Database, StoredMessage } from './database.js';
import { stored$ } from './errors.js';

/** A message of another process to a running call. */
export type Message =
  | { readonly kind: 'interrupt'; readonly message?: string }
  | { readonly kind: 'steer'; readonly input: string }
  /** A hint to look whether the call is still to be run. */
  | { readonly kind: 'abort' }
  | ({ readonly kind: 'decide'; readonly verdict: Verdict } & AskedCall);

/** The tool call that an approval is about. `callId` is that of the agent, which may be a sub-agent. */
export interface AskedCall {
  readonly callId: string;
  readonly toolCallId: string;
  /** The tool call that was asked about. A decision without it counts in the first round only. */
  readonly asked?: Pick<ToolCallBlock, 'name' | 'input'>;
}

/** Messages are also looked for after this time, in case a notification is lost. */
const pollMs = 5_000;

/** The messages to a call, those sent before included: to each subscriber all, once, in order. Never completes. */
export const messagesTo$ = (
  database: Database,
  callId: string,
  sent$: Observable<string>,
): Observable<Message> =>
  defer(() => {
    const seen = new Set<string>();
    return merge(timer(0, pollMs), sent$.pipe(filter((id) => id === callId || id === ''))).pipe(
      concatMap(() => stored$(() => database.messages(callId, [...seen]))),
      mergeMap((stored) => stored.filter(({ id }) => !seen.has(id) && seen.add(id))),
      mergeMap((stored) => readMessage(stored)),
    );
  }).pipe(
    share({ connector: () => new ReplaySubject<Message>(Infinity), resetOnRefCountZero: true }),
  );

/** A message that cannot be read is not ours: it is left. */
const readMessage = ({ text }: StoredMessage): readonly Message[] => {
  const message: unknown = parsedJson(text);
  return isMessage(message) ? [message] : [];
};

const isMessage = (value: unknown): value is Message => {
  if (!isRecord(value)) return false;
  switch (value['kind']) {
    case 'interrupt':
      return ['string', 'undefined'].includes(typeof value['message']);
    case 'abort':
      return true;
    case 'steer':
      return typeof value['input'] === 'string';
    case 'decide':
      return typeof value['callId'] === 'string' && typeof value['toolCallId'] === 'string';
    default:
      return false;
  }
};

export const kindOf =
  <Kind extends Message['kind']>(kind: Kind) =>
  (message: Message): message is Extract<Message, { readonly kind: Kind }> =>
    message.kind === kind;

type Decide$ = (request: ApprovalRequest) => Observable<Verdict>;

const decisions = contextKey<Decide$>('the decisions of the engine');

/** Gives `awaitDecision` the decisions that are sent to a call. */
export const decided = (messages$: Observable<Message>): Layer => ({
  name: 'decided',
  context: [
    decisions.of((request) =>
      messages$.pipe(
        filter(kindOf('decide')),
        first((it) => isOn(it, request)),
        map(({ verdict }) => verdict),
      ),
    ),
  ],
});

/** Whether a decision is on a request: on this tool call, with the input that is asked about now. */
const isOn = (
  { callId, toolCallId, asked }: AskedCall,
  { context, toolCall, round }: ApprovalRequest,
): boolean => {
  if (callId !== context.callId || toolCallId !== toolCall.id) return false;
  return asked === undefined ? round === 1 : isSameInput(asked, toolCall);
};

/**
 * An approver that waits for `decide$` of the engine, from any process: `approval(awaitDecision)`. The wait outlasts
 * the process, and holds one of the places of `concurrency`: for waits of days, use `suspend`. If no engine runs the call,
 * it errors with `config`.
 *
 * @example
 * ```ts
 * const agent = createAgent({ name: 'refunds', model, tools: [requireApproval(refund, awaitDecision)] });
 * ```
 */
export const awaitDecision: Approver = Object.assign(
  ((request) => defer(() => decideIn(request)(request))) satisfies Approver,
  { parallel: true },
);

const decideIn = ({ context }: ApprovalRequest): Decide$ => {
  try {
    return context.get(decisions);
  } catch (cause) {
    const why = 'awaitDecision needs an engine: start the call with openDbos().';
    throw new MillraceError('config', why, { cause });
  }
};
