import { concatMap, defaultIfEmpty, map, type Observable, takeUntil, tap } from 'rxjs';
import { frozen } from './frozen.js';
import type { StopChunk } from './content-through.js';
import { createDraft, type Draft } from './draft.js';
import { MillraceError } from './errors.js';
import { type AssistantMessage, toolUsesOf } from './message.js';
import type { Finish, Malformed, ModelRequest } from './model.js';
import type { Context } from './context.js';
import type { AfterModel, BeforeModel, ModifiablePayload } from './events.js';
import { isWhole, receive$, type Show } from './receive.js';
import type { OpenRun } from './run.js';
import type { Usage } from './usage.js';

/** What one message of the model came to. */
export type Asked =
  | {
      readonly status: 'answered';
      readonly message: AssistantMessage;
      readonly finish: Finish;
      readonly usage: Usage;
      /** An interceptor wants the call to end here. */
      readonly stop: boolean;
      /** An interceptor wants another message, and says why. */
      readonly again: string | undefined;
      /** Subscribers have seen something of it. */
      readonly isShown: boolean;
      /** With what a transform has ended the message, before the model did. */
      readonly halt: StopChunk | undefined;
      /** What to tell a model whose text could not be read. */
      readonly malformed: Malformed | undefined;
    }
  | {
      /** An interrupt cut it, or an interceptor would not have it. */
      readonly status: 'interrupted' | 'vetoed';
      /** As far as it had come. */
      readonly message: AssistantMessage;
      readonly usage: Usage;
    };

type Asking = Extract<ModifiablePayload, BeforeModel>;
type Answering = Extract<ModifiablePayload, AfterModel>;

/** Which events a request makes. */
export interface Stage {
  readonly before: (asked: BeforeModel) => Asking;
  readonly show: Show;
  readonly after: (answered: AfterModel, wish: Wish) => Answering;
}

/** What a transform that has ended the message wants of the call. */
export interface Wish {
  readonly stop?: boolean;
  readonly again?: string;
}

type Needs = Pick<
  Context,
  | 'call'
  | 'model'
  | 'throughLayers'
  | 'hooks'
  | 'interruption'
  | 'demand'
  | 'scheduler'
  | 'limits'
  | 'retryBudget'
  | 'toolUseIds'
>;

/** Asks the model for one message, as a step. `position` is its place in the call. */
export const ask$ = (
  context: Needs & Pick<Context, 'perform'>,
  run: Pick<OpenRun, 'iteration'>,
  stage: Stage,
  position: string,
  request: ModelRequest,
): Observable<Asked> =>
  context
    .perform({
      kind: 'model',
      id: position,
      input: request,
      run: (attempt) => request$(context, run, stage, position, request, attempt),
    })
    .pipe(
      tap(({ message }) => toolUsesOf(message).forEach(({ id }) => context.toolUseIds.add(id))),
    );

/** The id of the message that a step makes in one of its attempts. */
const messageIdAt = (stepId: string, attempt: number): string =>
  attempt === 1 ? stepId : `${stepId}~${attempt}`;

/** Asks the model for one message, through interceptors before and after. It is the only place that talks to a model. */
export const request$ = (
  context: Needs,
  run: Pick<OpenRun, 'iteration'>,
  stage: Stage,
  position: string,
  { messages, ...options }: ModelRequest,
  attempt = 1,
): Observable<Asked> => {
  const { call, hooks, interruption, toolUseIds } = context;
  const draft = createDraft({
    messageId: messageIdAt(`${call.callId}/${position}`, attempt),
    name: call.agent.at(-1) ?? '',
    iteration: run.iteration,
    isTaken: (id) => toolUseIds.has(id),
  });
  return hooks.emit$(run.iteration, stage.before({ messages, options })).pipe(
    takeUntil(interruption.cut$),
    concatMap((event) => receive$(context, run, stage.show, event, draft)),
    concatMap((finish) => answered$(context, run, stage, finish, draft)),
    defaultIfEmpty(undefined),
    map((asked) => asked ?? cutShort(context, draft)),
  );
};

const answered$ = (
  { hooks, toolUseIds }: Needs,
  { iteration }: Pick<OpenRun, 'iteration'>,
  stage: Stage,
  finish: Finish,
  draft: Draft,
): Observable<Asked> => {
  const message = frozen(draft.message());
  const payload = stage.after({ message, finish, usage: draft.usage }, wishOf(draft));
  return hooks.emit$(iteration, payload).pipe(
    map((event) => ({
      status: 'answered',
      message: sameMessage(message, event.message, toolUseIds),
      finish: event.finish,
      usage: draft.usage,
      stop: event.type === 'postReasoning' && event.stop === true,
      again: event.type === 'postReasoning' ? event.again : undefined,
      isShown: draft.deltas().length > 0,
      halt: draft.halt,
      malformed: draft.malformed,
    })),
  );
};

const wishOf = ({ halt }: Draft): Wish => {
  if (halt === undefined) return {};
  return halt.feedback === undefined ? { stop: true } : { again: halt.feedback };
};

/** An edited message is still the same one; its tool uses must stay told apart, also from those of earlier turns. */
const sameMessage = (
  message: AssistantMessage,
  edited: AssistantMessage,
  known: ReadonlySet<string>,
): AssistantMessage => {
  const { id, name } = message;
  const before = idsOf(message);
  const ids = idsOf(edited);
  const repeats = ids.some((it) => known.has(it) && !before.includes(it));
  if (repeats || new Set(ids).size < ids.length) {
    throw new MillraceError(
      'interceptor',
      `An interceptor gave a tool use of the message '${id}' an id that another one has. Give each an id of its own.`,
    );
  }
  return frozen({ ...edited, id, role: 'assistant', ...(name === undefined ? {} : { name }) });
};

const idsOf = (message: AssistantMessage): readonly string[] =>
  toolUsesOf(message).map(({ id }) => id);

const cutShort = ({ interruption }: Needs, draft: Draft): Asked => ({
  status: interruption.current !== undefined && !isWhole(draft) ? 'interrupted' : 'vetoed',
  message: draft.message(),
  usage: draft.usage,
});
